package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Argument is a node of the tree of arguments in COMMAND DOCS. It is parsed from a syntax in the
// notation of Redis' manual:
//
//	key                 an argument: a word in lower case
//	COST cost           a token, which is sent literally, and its argument
//	[ … ]               optional
//	<a | b>, [a | b]    one of these
//	member [member ...] one or more
//	[LIMIT offset count]  several under one token
type Argument struct {
	Name string // the word; of a token its own, in lower case; of a group those of its parts
	// in Redis' words: key, string, integer, double, pattern, unix-time, pure-token, oneof or block
	Kind     string
	Token    string
	Optional bool
	Multiple bool
	Again    bool // the token is repeated with each value
	Parts    []Argument
}

// The kinds of arguments that consist of others, or of a token alone.
const (
	PureToken = "pure-token"
	OneOf     = "oneof"
	Block     = "block"
)

// kinds maps the name of an argument to its kind, if that is not string.
var kinds = map[string]string{
	"key": "key", "key1": "key", "key2": "key", "newkey": "key", "source": "key", "destination": "key", "src": "key",
	"dst": "key", "destkey": "key",
	"pattern": "pattern", "unix-time-seconds": "unix-time", "unix-time-milliseconds": "unix-time",
	"bit": "integer", "port": "integer", "cluster_bus_port": "integer",
	"score": "double", "min": "double", "max": "double",
	"client-id": "integer", "count": "integer", "cursor": "integer", "db": "integer", "decrement": "integer",
	"destination-db": "integer",
	"end":            "integer", "frequency": "integer", "increment": "integer", "index": "integer",
	"index1": "integer", "index2": "integer", "limit": "integer",
	"milliseconds": "integer", "numkeys": "integer", "numreplicas": "integer", "numfields": "integer",
	"version": "integer",
	"maxage":  "integer", "offset": "integer", "protover": "integer", "seconds": "integer", "start": "integer",
	"stop": "integer", "weight": "integer", "capacity": "integer", "refill": "integer", "cost": "integer",
	"rate": "integer", "queue": "integer", "hits": "integer", "max_burst": "integer", "quantity": "integer",
	"max-burst": "integer", "tokens-per-period": "integer", "bits": "integer",
}

// otherKinds maps a command and an argument to a kind, if it differs from kinds.
var otherKinds = map[string]string{
	"gcra period": "double", "cl.throttle period": "integer", "throttle period": "integer",
	"incrbyfloat increment": "double", "hincrbyfloat increment": "double",
	"zlexcount min": "string", "zlexcount max": "string", "zrangebylex min": "string", "zrangebylex max": "string",
	"zremrangebylex min": "string", "zremrangebylex max": "string", "zrevrangebylex min": "string",
	"zrevrangebylex max": "string",
	"lcs len":            "integer", "lpos len": "integer", "lpos rank": "integer", "lpos num-matches": "integer",
	"restore ttl": "integer", "setbit value": "integer", "bitfield value": "integer",
	"bzpopmin timeout": "double", "bzpopmax timeout": "double", "bzmpop timeout": "double", "blpop timeout": "double",
	"brpop timeout": "double", "blmove timeout": "double", "brpoplpush timeout": "double", "blmpop timeout": "double",
	"wait timeout":  "integer",
	"pause timeout": "integer", "keyslot key": "string", "getkeysinslot slot": "integer",
	"countkeysinslot slot": "integer",
	"rl.check id":          "key", "rl.usage id": "key", "rl.unban id": "key", "rl.reset id": "key",
	"zrangestore min": "string", "zrangestore max": "string", "zrange start": "string",
	"zrange stop": "string",
}

// Arguments parses the command's syntax. The result is not cached, as it is rarely needed.
func (c *Command) Arguments() []Argument {
	args, err := ParseSyntax(c.Quoted().Syntax)
	if err != nil {
		// a test parses every syntax
		panic(fmt.Sprintf("resp: syntax of %s: %v", c.FullName(), err))
	}
	c.setKinds(args)
	return args
}

func (c *Command) setKinds(args []Argument) {
	for i := range args {
		a := &args[i]
		c.setKinds(a.Parts)
		if a.Kind == "" {
			a.Kind = cmp.Or(cmp.Or(otherKinds[c.Name+" "+a.Name], kinds[a.Name]), "string")
		}
	}
}

// ParseSyntax parses a sequence of arguments.
func ParseSyntax(text string) ([]Argument, error) {
	for _, mark := range []string{"[", "]", "<", ">", "|"} {
		text = strings.ReplaceAll(text, mark, " "+mark+" ")
	}
	p := syntaxParser{words: strings.Fields(text)}
	args := p.sequence("")
	if p.err == nil && p.choose != nil {
		p.fail("'%s ...' does not repeat the alternatives before it", p.choose.notation())
	}
	if p.err == nil && len(p.words) > 0 {
		p.fail("unexpected '%s'", p.words[0])
	}
	return args, p.err
}

type syntaxParser struct {
	words  []string  // not parsed yet
	choose *Argument // the last of several alternatives ends with this repetition of all of them
	err    error
}

func (p *syntaxParser) fail(format string, a ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, a...)
	}
	p.words = nil
}

func (p *syntaxParser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

// take reads the next word if it is this one.
func (p *syntaxParser) take(word string) bool {
	if p.peek() != word || word == "" {
		return false
	}
	p.words = p.words[1:]
	return true
}

func (p *syntaxParser) expect(word string) {
	if !p.take(word) {
		p.fail("'%s' is missing before '%s'", word, strings.Join(p.words, " "))
	}
}

// sequence parses arguments up to the end of their group or its next alternative. token is the
// token before them, or "".
func (p *syntaxParser) sequence(token string) (args []Argument) {
	for len(p.words) > 0 && !strings.Contains("|>].", p.peek()[:1]) {
		switch {
		case p.take("<"):
			args = append(args, p.choice())
			p.expect(">")
		case p.take("["):
			inner := p.choice()
			if p.take("...") {
				args = p.repeat(args, inner, token)
			} else {
				inner.Optional = true
				args = append(args, inner)
			}
			p.expect("]")
		default:
			args = append(args, p.single())
		}
	}
	return args
}

// single parses an argument, with its token if it has one.
func (p *syntaxParser) single() Argument {
	word := p.words[0]
	p.words = p.words[1:]
	switch next := p.peek(); {
	case !isToken(word):
		return Argument{Name: word}
	case next == "<":
		p.take("<")
		a := p.choice()
		a.Token = word
		p.expect(">")
		return a
	case next != "" && !isToken(next) && !strings.ContainsAny(next, "[]<>|."):
		p.take(next)
		return Argument{Name: next, Token: word}
	}
	return Argument{Name: strings.ToLower(word), Kind: PureToken, Token: word}
}

func isToken(word string) bool {
	return word == strings.ToUpper(word) && !strings.ContainsAny(word, "[]<>|.")
}

// choice parses alternatives. A single alternative is returned as it is.
func (p *syntaxParser) choice() Argument {
	list := []Argument{p.alternative()}
	for p.take("|") {
		list = append(list, p.alternative())
	}
	if len(list) == 1 {
		return list[0]
	}
	all := group(OneOf, list)
	if p.choose != nil && p.choose.bare() == all.bare() {
		all.Multiple, p.choose = true, nil
	}
	return all
}

// alternative parses a sequence as one argument. A token at its beginning applies to all of it.
func (p *syntaxParser) alternative() Argument {
	token := p.peek()
	if !isToken(token) {
		return p.one(p.sequence(""))
	}
	p.take(token)
	rest := p.sequence(token)
	switch {
	case len(rest) == 0:
		return Argument{Name: strings.ToLower(token), Kind: PureToken, Token: token}
	case len(rest) == 1 && rest[0].Token == "" && !rest[0].Optional:
		rest[0].Token = token
		return rest[0]
	}
	a := group(Block, rest)
	a.Token = token
	return a
}

func (p *syntaxParser) one(args []Argument) Argument {
	switch len(args) {
	case 0:
		p.fail("an argument is missing before '%s'", strings.Join(p.words, " "))
		return Argument{}
	case 1:
		return args[0]
	}
	return group(Block, args)
}

func group(kind string, parts []Argument) Argument {
	names := make([]string, len(parts))
	for i := range parts {
		names[i] = parts[i].Name
	}
	return Argument{Name: strings.Join(names, "_"), Kind: kind, Parts: parts}
}

// repeat marks the last of the parsed arguments as repeatable. inner is the repetition in brackets:
// what it repeats, and with or without the token.
func (p *syntaxParser) repeat(args []Argument, inner Argument, token string) []Argument {
	n := 1
	switch {
	case inner.Kind == OneOf && len(args) > 0 && inner.Parts[len(inner.Parts)-1].notation() == p.one(args).notation():
		p.choose = &inner
		return args
	case inner.Kind == Block && (inner.Token == "" || inner.Token == token):
		n = len(inner.Parts)
	}
	if len(args) < n {
		p.fail("'%s ...' has nothing to repeat", inner.notation())
		return args
	}
	last := slices.Clone(args[len(args)-n:])
	repeated := p.one(last)
	switch {
	case inner.notation() == repeated.notation():
		repeated.Again = repeated.Token != ""
	case inner.Token == token && token != "" && inner.bare() == repeated.notation():
		repeated.Again = true
	case inner.notation() != repeated.bare():
		p.fail("'%s ...' repeats something other than '%s'", inner.notation(), repeated.notation())
	}
	repeated.Multiple = true
	return append(args[:len(args)-n], repeated)
}

// notation formats an argument as ParseSyntax reads it.
func (a Argument) notation() string {
	text := a.bare()
	if a.Kind == OneOf && !(a.Optional && a.Token == "") {
		text = "<" + text + ">"
	}
	once := text
	if a.Token != "" && a.Kind != PureToken {
		text = a.Token + " " + text
	}
	if a.Multiple {
		if a.Again {
			once = text
		}
		text += " [" + once + " ...]"
	}
	if a.Optional {
		text = "[" + text + "]"
	}
	return text
}

// bare formats an argument without its token, and without the marks of optional and repeated
// arguments.
func (a Argument) bare() string {
	switch a.Kind {
	case PureToken:
		return a.Token
	case OneOf:
		return Join(a.Parts, " | ")
	case Block:
		return Join(a.Parts, " ")
	}
	return a.Name
}

// Join returns the notations of arguments, separated by between.
func Join(args []Argument, between string) string {
	texts := make([]string, len(args))
	for i := range args {
		texts[i] = args[i].notation()
	}
	return strings.Join(texts, between)
}
