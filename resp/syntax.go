package resp

import (
	"fmt"
	"slices"
	"strings"
)

// argument is a node of the tree that COMMAND DOCS tells of a command's arguments, read off its syntax. That is written as in Redis' manual:
//
//	key                 an argument: a word in lower case
//	COST cost           a token, which is sent as it stands, and the argument that goes with it
//	[ … ]               may be left out
//	<a | b>, [a | b]    one of these
//	member [member ...] as many as wanted, and at least one
//	[LIMIT offset count]  several under one token
type argument struct {
	name     string // the word; of a token its own, in lower case; of a group those of its parts
	kind     string // in Redis' words: key, string, integer, double, pattern, unix-time, pure-token, oneof or block
	token    string
	optional bool
	multiple bool
	again    bool // the token is repeated with each
	parts    []argument
}

// The kinds of argument that are made of others or of nothing.
const (
	pureToken = "pure-token"
	oneOf     = "oneof"
	block     = "block"
)

// kinds are those of arguments that are not just strings, by their word.
var kinds = map[string]string{
	"key": "key", "key1": "key", "key2": "key", "newkey": "key", "source": "key", "destination": "key", "src": "key", "dst": "key", "destkey": "key",
	"pattern": "pattern", "unix-time-seconds": "unix-time", "unix-time-milliseconds": "unix-time",
	"bit":   "integer",
	"score": "double", "min": "double", "max": "double",
	"client-id": "integer", "count": "integer", "cursor": "integer", "db": "integer", "decrement": "integer", "destination-db": "integer",
	"end": "integer", "frequency": "integer", "increment": "integer", "index": "integer", "index1": "integer", "index2": "integer", "limit": "integer",
	"milliseconds": "integer", "numkeys": "integer", "numreplicas": "integer", "numfields": "integer", "maxage": "integer", "offset": "integer", "protover": "integer", "seconds": "integer", "start": "integer",
	"stop": "integer", "weight": "integer", "capacity": "integer", "refill": "integer", "cost": "integer",
	"rate": "integer", "queue": "integer", "hits": "integer", "max_burst": "integer", "quantity": "integer",
	"max-burst": "integer", "tokens-per-period": "integer",
}

// otherKinds are those of words that mean something else in some command.
var otherKinds = map[string]string{
	"gcra period": "double", "cl.throttle period": "integer", "throttle period": "integer",
	"incrbyfloat increment": "double", "hincrbyfloat increment": "double",
	"zlexcount min": "string", "zlexcount max": "string", "zrangebylex min": "string", "zrangebylex max": "string",
	"zremrangebylex min": "string", "zremrangebylex max": "string", "zrevrangebylex min": "string", "zrevrangebylex max": "string",
	"lcs len": "integer", "restore ttl": "integer", "setbit value": "integer", "bitfield value": "integer",
	"bzpopmin timeout": "double", "bzpopmax timeout": "double", "bzmpop timeout": "double", "wait timeout": "integer",
	"rl.check id": "key", "zrangestore min": "string", "zrangestore max": "string", "zrange start": "string", "zrange stop": "string",
}

// arguments reads the command's syntax. It is asked for seldom and by people, so nothing is kept of it.
func (c *command) arguments() []argument {
	args, err := parseSyntax(c.syntax)
	if err != nil {
		panic(fmt.Sprintf("resp: syntax of %s: %v", c.fullName(), err)) // a test goes through all
	}
	c.setKinds(args)
	return args
}

func (c *command) setKinds(args []argument) {
	for i := range args {
		a := &args[i]
		c.setKinds(a.parts)
		if a.kind == "" {
			a.kind = or(or(otherKinds[c.name+" "+a.name], kinds[a.name]), "string")
		}
	}
}

// parseSyntax reads a sequence of arguments.
func parseSyntax(text string) ([]argument, error) {
	for _, mark := range []string{"[", "]", "<", ">", "|"} {
		text = strings.ReplaceAll(text, mark, " "+mark+" ")
	}
	p := syntaxParser{words: strings.Fields(text)}
	args := p.sequence("")
	if p.err == nil && p.choose != nil {
		p.fail("'%s ...' repeats something other than what it stands in", p.choose.notation())
	}
	if p.err == nil && len(p.words) > 0 {
		p.fail("'%s' closes nothing", p.words[0])
	}
	return args, p.err
}

type syntaxParser struct {
	words  []string  // what is still to be read
	choose *argument // the last of several alternatives ends with this repetition of all of them
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

// sequence reads arguments up to what closes their group or begins its next alternative. token is the one they stand under, if any.
func (p *syntaxParser) sequence(token string) (args []argument) {
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
				inner.optional = true
				args = append(args, inner)
			}
			p.expect("]")
		default:
			args = append(args, p.single())
		}
	}
	return args
}

// single reads an argument, with its token if it has one.
func (p *syntaxParser) single() argument {
	word := p.words[0]
	p.words = p.words[1:]
	switch next := p.peek(); {
	case !isToken(word):
		return argument{name: word}
	case next == "<":
		p.take("<")
		a := p.choice()
		a.token = word
		p.expect(">")
		return a
	case next != "" && !isToken(next) && !strings.ContainsAny(next, "[]<>|."):
		p.take(next)
		return argument{name: next, token: word}
	}
	return argument{name: strings.ToLower(word), kind: pureToken, token: word}
}

func isToken(word string) bool {
	return word == strings.ToUpper(word) && !strings.ContainsAny(word, "[]<>|.")
}

// choice reads alternatives. A single one is itself.
func (p *syntaxParser) choice() argument {
	list := []argument{p.alternative()}
	for p.take("|") {
		list = append(list, p.alternative())
	}
	if len(list) == 1 {
		return list[0]
	}
	all := group(oneOf, list)
	if p.choose != nil && p.choose.bare() == all.bare() {
		all.multiple, p.choose = true, nil
	}
	return all
}

// alternative reads a sequence that is one argument. A token at its beginning stands for all of it.
func (p *syntaxParser) alternative() argument {
	token := p.peek()
	if !isToken(token) {
		return p.one(p.sequence(""))
	}
	p.take(token)
	rest := p.sequence(token)
	switch {
	case len(rest) == 0:
		return argument{name: strings.ToLower(token), kind: pureToken, token: token}
	case len(rest) == 1 && rest[0].token == "" && !rest[0].optional:
		rest[0].token = token
		return rest[0]
	}
	a := group(block, rest)
	a.token = token
	return a
}

func (p *syntaxParser) one(args []argument) argument {
	switch len(args) {
	case 0:
		p.fail("nothing stands before '%s'", strings.Join(p.words, " "))
		return argument{}
	case 1:
		return args[0]
	}
	return group(block, args)
}

func group(kind string, parts []argument) argument {
	names := make([]string, len(parts))
	for i := range parts {
		names[i] = parts[i].name
	}
	return argument{name: strings.Join(names, "_"), kind: kind, parts: parts}
}

// repeat marks the last of the arguments that were read as one that may be given again, which is what inner says.
func (p *syntaxParser) repeat(args []argument, inner argument, token string) []argument {
	n := 1
	switch {
	case inner.kind == oneOf && len(args) > 0 && inner.parts[len(inner.parts)-1].notation() == p.one(args).notation():
		p.choose = &inner
		return args
	case inner.kind == block && (inner.token == "" || inner.token == token):
		n = len(inner.parts)
	}
	if len(args) < n {
		p.fail("'%s ...' repeats nothing", inner.notation())
		return args
	}
	last := slices.Clone(args[len(args)-n:])
	repeated := p.one(last)
	switch {
	case inner.notation() == repeated.notation():
		repeated.again = repeated.token != ""
	case inner.token == token && token != "" && inner.bare() == repeated.notation():
		repeated.again = true
	case inner.notation() != repeated.bare():
		p.fail("'%s ...' repeats something other than '%s'", inner.notation(), repeated.notation())
	}
	repeated.multiple = true
	return append(args[:len(args)-n], repeated)
}

// notation writes an argument as it is read.
func (a argument) notation() string {
	text := a.bare()
	if a.kind == oneOf && !(a.optional && a.token == "") {
		text = "<" + text + ">"
	}
	once := text
	if a.token != "" && a.kind != pureToken {
		text = a.token + " " + text
	}
	if a.multiple {
		if a.again {
			once = text
		}
		text += " [" + once + " ...]"
	}
	if a.optional {
		text = "[" + text + "]"
	}
	return text
}

// bare is an argument without its token, and without what says whether and how often it is given.
func (a argument) bare() string {
	switch a.kind {
	case pureToken:
		return a.token
	case oneOf:
		return join(a.parts, " | ")
	case block:
		return join(a.parts, " ")
	}
	return a.name
}

func join(args []argument, between string) string {
	texts := make([]string, len(args))
	for i := range args {
		texts[i] = args[i].notation()
	}
	return strings.Join(texts, between)
}
