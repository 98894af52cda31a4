package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rlserver/engine"
	"rlserver/internal/grammar"
	"rlserver/resp/glob"
	"rlserver/resp/wire"
)

func init() {
	const open = Loading | Stale
	Register("server",
		&Command{Name: "command", Arity: -1, Flags: open, Categories: "connection", Run: commandAll, Subs: []*Command{
			{Name: "count", Arity: 2, Flags: open, Categories: "connection", Run: commandCount},
			{Name: "docs", Arity: -2, Flags: open, Categories: "connection", Run: commandDocs},
			{Name: "getkeys", Arity: -4, Flags: open, Categories: "connection", Syntax: "command [arg [arg ...]]",
				Run: commandGetKeys},
			{Name: "getkeysandflags", Arity: -4, Flags: open, Categories: "connection",
				Syntax: "command [arg [arg ...]]", Run: commandGetKeys},
			{Name: "help", Arity: 2, Flags: open, Categories: "connection", Run: Help},
			{Name: "info", Arity: -2, Flags: open, Categories: "connection", Run: commandInfo},
			{Name: "list", Arity: -2, Flags: open, Categories: "connection", Run: commandList},
		}},
	)
}

const (
	errNoSuchCommand = engine.Error("ERR Invalid command specified")
	errNoKeys        = engine.Error("ERR The command has no key arguments")
	errKeyArity      = engine.Error("ERR Invalid number of arguments specified for command")
	errKeyArguments  = engine.Error("ERR Invalid arguments specified for command")
)

// Sorted returns the commands by name.
func (t table) Sorted() []*Command {
	return slices.SortedFunc(maps.Values(t), func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
}

// Named returns the command of a name as COMMAND reports it: client, or client|list.
func (t table) Named(name []byte) *Command {
	parent, sub, has := strings.Cut(string(name), "|")
	c := t.Find([]byte(parent))
	if has && c != nil {
		if c = c.Sub([]byte(sub)); c != nil && c.inRules() != c {
			return nil
		}
	}
	return c
}

// listedSubs returns the subcommands that COMMAND lists: not those of DEBUG, as in Redis, so that
// tools which try all commands do not call DEBUG SLEEP.
func (c *Command) listedSubs() []*Command {
	if c.SubsAreArguments {
		return nil
	}
	return c.Subs
}

func commandAll(c *Call) error {
	all := Table.Sorted()
	c.Reply.Array(len(all))
	for _, each := range all {
		writeCommandInfo(&c.Reply, each)
	}
	return nil
}

func commandCount(c *Call) error {
	return c.ReplyCount(len(Table), nil)
}

func commandInfo(c *Call) error {
	if !c.Args.More() {
		return commandAll(c)
	}
	c.Reply.Array(c.Args.Left())
	for c.Args.More() {
		if each := Table.Named(c.Args.Next()); each != nil {
			writeCommandInfo(&c.Reply, each)
		} else {
			c.Reply.Null()
		}
	}
	return nil
}

// Commands takes names of commands, and returns the commands; without names, all. Unknown names are
// skipped.
func (a *Args) Commands() (list []*Command) {
	if !a.More() {
		return Table.Sorted()
	}
	for a.More() {
		if c := Table.Named(a.Next()); c != nil {
			list = append(list, c)
		}
	}
	return list
}

func commandDocs(c *Call) error {
	list := c.Args.Commands()
	c.Reply.Mapping(len(list))
	for _, each := range list {
		c.Reply.BulkString(each.FullName())
		writeCommandDocs(&c.Reply, each)
	}
	return nil
}

func commandList(c *Call) error {
	means := func(*Command) bool { return true }
	if c.Args.More() {
		means = c.Args.commandFilter()
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	var names []string
	for _, each := range Table.Sorted() {
		for _, one := range append([]*Command{each}, each.listedSubs()...) {
			if means(one) {
				names = append(names, one.FullName())
			}
		}
	}

	if err := c.Args.End(); err != nil { // of the filter
		return err
	}

	return c.ReplyStrings(names)
}

func (a *Args) commandFilter() func(*Command) bool {
	if !a.Word("FILTERBY") || a.Left() != 2 {
		a.Fail(engine.ErrSyntax)
	}
	switch {
	case a.Word("MODULE"): // there are none
		a.Next()
		return func(*Command) bool { return false }
	case a.Word("ACLCAT"):
		category := strings.ToLower(string(a.Next()))
		return func(c *Command) bool { return slices.Contains(c.accessCategories(), category) }
	case a.Word("PATTERN"):
		pattern := glob.New(a.Next(), true)
		return func(c *Command) bool {
			matches := pattern.Match([]byte(c.FullName()))
			a.Fail(pattern.Err())
			return matches
		}
	}
	a.Fail(engine.ErrSyntax)
	return nil
}

// commandGetKeys handles COMMAND GETKEYS and COMMAND GETKEYSANDFLAGS command [arg [arg ...]].
func commandGetKeys(c *Call) error {
	words, flags := c.Words[2:], c.Command.Name == "getkeysandflags"
	keys, err := keysOf(words)
	if err != nil {
		return err
	}
	c.Reply.Array(len(keys))
	for _, k := range keys {
		if flags {
			c.Reply.Array(2)
		}
		c.Reply.Bulk(words[k.at])
		if flags {
			writeWords(&c.Reply, k.spec.accessOf(words))
		}
	}
	return nil
}

// keyAt is the index of a key in a call, and its specification.
type keyAt struct {
	at   int
	spec *KeySpec
}

// keysOf returns the keys of a call that is described and not run.
func keysOf(words [][]byte) (keys []keyAt, err error) {
	c := Table.Find(words[0])
	if c != nil && len(c.listedSubs()) > 0 && len(words) > 1 {
		c = c.Sub(words[1])
	}
	switch {
	case c == nil:
		return nil, errNoSuchCommand
	case len(c.Keys) == 0:
		return nil, errNoKeys
	case c.Rejects(len(words)):
		return nil, errKeyArity
	}
	for i := range c.Keys {
		spec := &c.Keys[i]
		if !spec.complete(words) {
			return nil, errKeyArguments
		}
		spec.positions(words, func(at int) { keys = append(keys, keyAt{at, spec}) })
	}
	return keys, nil
}

// complete reports whether a call has as many keys as its number of keys says.
func (k *KeySpec) complete(words [][]byte) bool {
	if !k.Counted {
		return true
	}
	n, ok := grammar.ParseInt(words[k.Begin])
	return ok && n > 0 && n <= int64(len(words)-k.Begin-1)
}

func writeCommandInfo(r *wire.Reply, c *Command) {
	first, last, step, _ := c.keyRange()
	r.Array(10)
	r.BulkString(c.FullName())
	r.Count(c.Arity)
	writeWords(r, strings.Join(c.flagWords(), " "))
	r.Count(first)
	r.Count(last)
	r.Count(step)
	categories := c.accessCategories()
	r.Set(len(categories))
	for _, name := range categories {
		r.Status("@" + name)
	}
	tips := strings.Fields(c.Quoted().Tips)
	r.Set(len(tips))
	for _, tip := range tips {
		r.BulkString(tip)
	}
	r.Set(len(c.Keys))
	for i := range c.Keys {
		writeKeySpec(r, &c.Keys[i])
	}
	subs := c.listedSubs()
	r.Array(len(subs))
	for _, sub := range subs {
		writeCommandInfo(r, sub)
	}
}

// writeWords writes a set of words, as status replies.
func writeWords(r *wire.Reply, text string) {
	list := strings.Fields(text)
	r.Set(len(list))
	for _, w := range list {
		r.Status(w)
	}
}

func writeKeySpec(r *wire.Reply, k *KeySpec) {
	typed := func(kind string, spec ...any) func() {
		return func() { Fields(r, "type", kind, "spec", func() { Fields(r, spec...) }) }
	}
	begin, find := typed("unknown"), typed("unknown")
	if k.Begin != 0 {
		begin = typed("index", "index", k.Begin)
	}
	switch {
	case k.Begin == 0:
	case k.Counted:
		find = typed("keynum", "keynumidx", 0, "firstkey", 1, "keystep", k.Step)
	case k.next == nil: // otherwise COMMAND GETKEYS returns the keys
		find = typed("range", "lastkey", k.Last, "keystep", k.Step, "limit", 0)
	}
	Fields(r, "flags", func() { writeWords(r, k.Access) }, "begin_search", begin, "find_keys", find)
}

// Fields replies with a mapping of names, each followed by its value: a string, strings, an
// integer, or what writes it.
func Fields(r *wire.Reply, list ...any) {
	r.Mapping(len(list) / 2)
	for _, v := range list {
		switch v := v.(type) {
		case string:
			r.BulkString(v)
		case []string:
			r.Array(len(v))
			for _, s := range v {
				r.BulkString(s)
			}
		case int:
			r.Count(v)
		case int64:
			r.Integer(v)
		case func():
			v()
		default:
			panic(fmt.Sprintf("command: no reply has a %T", v))
		}
	}
}

// flagWords returns the flags by their names in Redis. Whether keys are movable follows from their
// specifications.
func (c *Command) flagWords() (words []string) {
	flags := c.Flags
	if _, _, _, all := c.keyRange(); !all {
		flags |= MovableKeys
	}
	for _, known := range flagNames {
		if flags&known.flag != 0 {
			words = append(words, known.name)
		}
	}
	return words
}

// keyRange describes the keys in the old format, by the first, the last (negative: from the end)
// and the step. all is false if that does not cover all keys: those that are counted, or in ranges
// that do not follow each other.
func (c *Command) keyRange() (first, last, step int, all bool) {
	if len(c.Keys) == 1 && !c.Keys[0].Counted {
		k := c.Keys[0]
		return k.Begin, k.end(), k.Step, k.next == nil
	}
	all = true
	for _, k := range c.Keys {
		if k.Begin == 0 || k.Counted || k.Step != 1 || last != 0 && last != k.Begin-1 {
			all = false
			continue
		}
		if first == 0 {
			first, step = k.Begin, 1
		}
		last = k.end()
	}
	return first, last, step, all
}

// end returns the index of the last key; negative: from the end of the call.
func (k *KeySpec) end() int {
	if k.Last < 0 {
		return k.Last
	}
	return k.Begin + k.Last
}

// categoryOfGroup maps a group of the manual to its access category, if the names differ.
var categoryOfGroup = map[string]string{
	"cluster": "", "server": "", "pubsub": "", // by the flag
	"generic": "keyspace", "sorted-set": "sortedset", "transactions": "transaction",
}

// categoryOrder is the order in which Redis lists categories.
var categoryOrder = strings.Fields(`keyspace read write set sortedset list hash string bitmap hyperloglog geo stream
	pubsub admin fast slow blocking dangerous connection transaction scripting ratelimit`)

// accessCategories returns the access categories. Most follow from the group and the flags.
func (c *Command) accessCategories() (names []string) {
	names = strings.Fields(c.Categories)
	group, special := categoryOfGroup[c.Group]
	if !special {
		group = c.Group
	}
	if c.Name == "wait" { // its group is generic, but it is not in category keyspace
		group = ""
	}
	if group != "" && len(c.Subs) == 0 && c.Reaches == nil { // SORT is in no category of its group
		names = append(names, group)
	}
	for _, implied := range []struct {
		flag Flags
		name string
	}{{Write, "write"}, {Readonly, "read"}, {Admin, "admin"}, {Admin, "dangerous"}, {Fast, "fast"},
		{Blocking, "blocking"}, {PubSub, "pubsub"}} {
		// scripts are in no category of reads, as in Redis
		if c.Flags&implied.flag != 0 && (implied.flag != Readonly || c.Flags&AnyKeys == 0) {
			names = append(names, implied.name)
		}
	}
	if c.Flags&Fast == 0 {
		names = append(names, "slow")
	}
	at := func(name string) int { return slices.Index(categoryOrder, name) }
	slices.SortFunc(names, func(a, b string) int { return at(a) - at(b) })
	return slices.Compact(names)
}

// docFields are the fields of a mapping in a COMMAND DOCS reply. Those that do not apply are left
// out.
type docFields []any

func (f *docFields) add(applies bool, name string, value any) {
	if applies {
		*f = append(*f, name, value)
	}
}

func (f *docFields) text(name, value string) { f.add(value != "", name, value) }

func writeCommandDocs(r *wire.Reply, c *Command) {
	c = c.Quoted()
	f, subs := docFields{}, c.listedSubs()
	f.text("summary", c.Summary)
	f.text("since", c.Since)
	f.text("group", c.Group)
	f.text("complexity", c.Complexity)
	f.add(c.DocFlags != "", "doc_flags", func() { writeWords(r, c.DocFlags) })
	f.text("deprecated_since", c.Deprecated)
	f.text("replaced_by", c.ReplacedBy)
	f.add(c.Syntax != "", "arguments", func() { writeArguments(r, c.Arguments(), c.SyntaxKeys()) })
	f.add(len(subs) > 0, "subcommands", func() {
		r.Mapping(len(subs))
		for _, sub := range subs {
			r.BulkString(sub.FullName())
			writeCommandDocs(r, sub)
		}
	})
	Fields(r, f...)
}

// syntaxKeys assigns the keys in a syntax to the key specifications, in order.
type syntaxKeys struct {
	Next     []int // of the keys that are left
	patterns int   // of the pattern arguments; -1: there are none
}

func (c *Command) SyntaxKeys() *syntaxKeys {
	keys := &syntaxKeys{patterns: -1}
	for i := range c.Keys {
		if c.Keys[i].Patterns {
			keys.patterns = i
		}
		for range c.Keys[i].arguments() {
			keys.Next = append(keys.Next, i)
		}
	}
	return keys
}

// of returns the index of the specification of an argument, or -1 if it is not a key.
func (k *syntaxKeys) of(a *Argument) (spec int) {
	switch a.Kind {
	case "key":
		spec, k.Next = k.Next[0], k.Next[1:]
		return spec
	case "pattern":
		return k.patterns
	}
	return -1
}

// arguments returns how many arguments of the syntax a specification covers.
func (k *KeySpec) arguments() int {
	switch {
	case k.Patterns:
		return 0
	case k.Last > 0:
		return k.Last/k.Step + 1
	}
	return 1
}

func writeArguments(r *wire.Reply, list []Argument, keys *syntaxKeys) {
	r.Array(len(list))
	for _, a := range list {
		f, index, flags := docFields{}, keys.of(&a), a.flagWords()
		f.text("name", a.Name)
		f.text("type", a.Kind)
		f.add(index >= 0, "key_spec_index", index)
		f.text("token", a.Token)
		f.add(flags != "", "flags", func() { writeWords(r, flags) })
		f.add(len(a.Parts) > 0, "arguments", func() { writeArguments(r, a.Parts, keys) })
		Fields(r, f...)
	}
}

func (a *Argument) flagWords() string {
	var words []string
	if a.Optional {
		words = append(words, "optional")
	}
	if a.Multiple {
		words = append(words, "multiple")
	}
	if a.Again {
		words = append(words, "multiple_token")
	}
	return strings.Join(words, " ")
}
