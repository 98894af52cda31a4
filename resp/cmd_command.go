package resp

import (
	"maps"
	"slices"
	"strings"

	"rlserver/engine"
)

func init() {
	const open = loading | stale
	register(
		&command{name: "command", arity: -1, flags: open, group: "server", since: "2.8.13", categories: "connection",
			tips:       "nondeterministic_output_order",
			complexity: "O(N) where N is the total number of Redis commands",
			summary:    "Get array of Redis command details", run: commandAll,
			subs: []*command{
				{name: "count", arity: 2, flags: open, group: "server", since: "2.8.13", categories: "connection", complexity: "O(1)",
					summary: "Get total number of Redis commands", run: commandCount},
				{name: "docs", arity: -2, flags: open, group: "server", since: "7.0.0", categories: "connection",
					tips:   "nondeterministic_output_order",
					syntax: "[command-name [command-name ...]]", complexity: "O(N) where N is the number of commands to look up",
					summary: "Get array of specific Redis command documentation", run: commandDocs},
				{name: "getkeys", arity: -4, flags: open, group: "server", since: "2.8.13", categories: "connection",
					syntax:     "command [arg [arg ...]]",
					complexity: "O(N) where N is the number of arguments to the command",
					summary:    "Extract keys given a full Redis command", run: commandGetKeys},
				{name: "getkeysandflags", arity: -4, flags: open, group: "server", since: "7.0.0", categories: "connection",
					syntax:     "command [arg [arg ...]]",
					complexity: "O(N) where N is the number of arguments to the command",
					summary:    "Extract keys and access flags given a full Redis command", run: commandGetKeysAndFlags},
				{name: "help", arity: 2, flags: open, group: "server", since: "5.0.0", categories: "connection", complexity: "O(1)",
					summary: "Show helpful text about the different subcommands", run: help},
				{name: "info", arity: -2, flags: open, group: "server", since: "2.8.13", categories: "connection",
					tips:   "nondeterministic_output_order",
					syntax: "[command-name [command-name ...]]", complexity: "O(N) where N is the number of commands to look up",
					summary: "Get array of specific Redis command details, or all when no argument is given.", run: commandInfo},
				{name: "list", arity: -2, flags: open, group: "server", since: "7.0.0", categories: "connection",
					tips:       "nondeterministic_output_order",
					syntax:     "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
					complexity: "O(N) where N is the total number of Redis commands",
					summary:    "Get an array of Redis command names", run: commandList},
			}},
	)
}

const (
	errNoSuchCommand = engine.Error("ERR Invalid command specified")
	errNoKeys        = engine.Error("ERR The command has no key arguments")
	errKeyArity      = engine.Error("ERR Invalid number of arguments specified for command")
	errKeyArguments  = engine.Error("ERR Invalid arguments specified for command")
)

// sorted gives the commands by name.
func (t table) sorted() []*command {
	return slices.SortedFunc(maps.Values(t), func(a, b *command) int { return strings.Compare(a.name, b.name) })
}

// named finds a command by the name that COMMAND tells: client, or client|list.
func (t table) named(name []byte) *command {
	parent, sub, has := strings.Cut(string(name), "|")
	c := t.find([]byte(parent))
	if has && c != nil {
		c = c.sub([]byte(sub))
	}
	return c
}

// commandAll handles COMMAND.
func commandAll(c *call) error {
	all := commands.sorted()
	c.reply.array(len(all))
	for _, each := range all {
		c.reply.commandInfo(each)
	}
	return nil
}

func commandCount(c *call) error {
	c.reply.count(len(commands))
	return nil
}

// commandInfo handles COMMAND INFO [command-name [command-name ...]].
func commandInfo(c *call) error {
	if !c.args.more() {
		return commandAll(c)
	}
	c.reply.array(c.args.left())
	for c.args.more() {
		if each := commands.named(c.args.next()); each != nil {
			c.reply.commandInfo(each)
		} else {
			c.reply.null()
		}
	}
	return nil
}

// commandDocs handles COMMAND DOCS [command-name [command-name ...]]. Names that are unknown are left out.
func commandDocs(c *call) error {
	list := commands.sorted()
	if c.args.more() {
		list = list[:0]
		for c.args.more() {
			if each := commands.named(c.args.next()); each != nil {
				list = append(list, each)
			}
		}
	}
	c.reply.mapping(len(list))
	for _, each := range list {
		c.reply.bulkString(each.fullName())
		c.reply.commandDocs(each)
	}
	return nil
}

// commandList handles COMMAND LIST [FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>].
func commandList(c *call) error {
	means := func(*command) bool { return true }
	if c.args.more() {
		means = c.args.commandFilter()
	}
	if err := c.args.end(); err != nil {
		return err
	}

	var names []string
	for _, each := range commands.sorted() {
		for _, one := range append([]*command{each}, each.subs...) {
			if means(one) {
				names = append(names, one.fullName())
			}
		}
	}

	if err := c.args.end(); err != nil { // of the filter
		return err
	}

	c.reply.array(len(names))
	for _, name := range names {
		c.reply.bulkString(name)
	}
	return nil
}

func (a *args) commandFilter() func(*command) bool {
	if !a.word("FILTERBY") || a.left() != 2 {
		a.fail(engine.ErrSyntax)
	}
	switch {
	case a.word("MODULE"): // there are none
		a.next()
		return func(*command) bool { return false }
	case a.word("ACLCAT"):
		category := strings.ToLower(string(a.next()))
		return func(c *command) bool { return slices.Contains(c.accessCategories(), category) }
	case a.word("PATTERN"):
		pattern := newGlob(a.next(), true)
		return func(c *command) bool {
			matches := pattern.match([]byte(c.fullName()))
			a.fail(pattern.err())
			return matches
		}
	}
	a.fail(engine.ErrSyntax)
	return nil
}

// commandGetKeys handles COMMAND GETKEYS command [arg [arg ...]].
func commandGetKeys(c *call) error {
	words := c.words[2:]
	keys, err := keysOf(words)
	if err != nil {
		return err
	}
	c.reply.array(len(keys))
	for _, k := range keys {
		c.reply.bulk(words[k.at])
	}
	return nil
}

// commandGetKeysAndFlags handles COMMAND GETKEYSANDFLAGS command [arg [arg ...]].
func commandGetKeysAndFlags(c *call) error {
	words := c.words[2:]
	keys, err := keysOf(words)
	if err != nil {
		return err
	}
	c.reply.array(len(keys))
	for _, k := range keys {
		c.reply.array(2)
		c.reply.bulk(words[k.at])
		c.reply.words(k.spec.accessOf(words))
	}
	return nil
}

// keyAt is where a key stands in a call, and by which specification.
type keyAt struct {
	at   int
	spec *keySpec
}

// keysOf finds the keys in a call that somebody asks about.
func keysOf(words [][]byte) (keys []keyAt, err error) {
	c := commands.find(words[0])
	if c != nil && len(c.subs) > 0 && len(words) > 1 {
		c = c.sub(words[1])
	}
	switch {
	case c == nil:
		return nil, errNoSuchCommand
	case len(c.keys) == 0:
		return nil, errNoKeys
	case c.rejects(len(words)):
		return nil, errKeyArity
	}
	for i := range c.keys {
		spec := &c.keys[i]
		if !spec.complete(words) {
			return nil, errKeyArguments
		}
		spec.positions(words, func(at int) { keys = append(keys, keyAt{at, spec}) })
	}
	return keys, nil
}

// complete tells whether a call has all the keys that its number of keys promises.
func (k *keySpec) complete(words [][]byte) bool {
	if !k.counted {
		return true
	}
	n, ok := parseInt(words[k.begin])
	return ok && n > 0 && n <= int64(len(words)-k.begin-1)
}

// commandInfo answers with what COMMAND tells of one command.
func (r *reply) commandInfo(c *command) {
	first, last, step, _ := c.keyRange()
	r.array(10)
	r.bulkString(c.fullName())
	r.count(c.arity)
	r.words(strings.Join(c.flagWords(), " "))
	r.count(first)
	r.count(last)
	r.count(step)
	categories := c.accessCategories()
	r.set(len(categories))
	for _, name := range categories {
		r.status("@" + name)
	}
	tips := strings.Fields(c.tips)
	r.set(len(tips))
	for _, tip := range tips {
		r.bulkString(tip)
	}
	r.set(len(c.keys))
	for i := range c.keys {
		r.keySpec(&c.keys[i])
	}
	r.array(len(c.subs))
	for _, sub := range c.subs {
		r.commandInfo(sub)
	}
}

// words answers with a set of words that programs know.
func (r *reply) words(text string) {
	list := strings.Fields(text)
	r.set(len(list))
	for _, w := range list {
		r.status(w)
	}
}

func (r *reply) keySpec(k *keySpec) {
	r.mapping(3)
	r.bulkString("flags")
	r.words(k.access)
	r.bulkString("begin_search")
	if k.begin == 0 {
		r.typed("unknown", nil, nil)
	} else {
		r.typed("index", []string{"index"}, []int{k.begin})
	}
	r.bulkString("find_keys")
	switch {
	case k.begin == 0:
		r.typed("unknown", nil, nil)
	case k.counted:
		r.typed("keynum", []string{"keynumidx", "firstkey", "keystep"}, []int{0, 1, k.step})
	case k.rules:
		r.typed("unknown", nil, nil) // COMMAND GETKEYS knows
	default:
		r.typed("range", []string{"lastkey", "keystep", "limit"}, []int{k.last, k.step, 0})
	}
}

func (r *reply) typed(kind string, names []string, values []int) {
	r.mapping(2)
	r.bulkString("type")
	r.bulkString(kind)
	r.bulkString("spec")
	r.mapping(len(names))
	for i, name := range names {
		r.bulkString(name)
		r.count(values[i])
	}
}

// flagWords are the flags as clients know them. That keys are movable shows in where they are.
func (c *command) flagWords() (words []string) {
	flags := c.flags
	if _, _, _, all := c.keyRange(); !all {
		flags |= movableKeys
	}
	for _, known := range flagNames {
		if flags&known.flag != 0 {
			words = append(words, known.name)
		}
	}
	return words
}

// keyRange describes the keys in the old way, by the first, the last (negative: from the end) and the step. all is false if that way does
// not cover all keys: those that are counted, or in ranges that do not follow each other.
func (c *command) keyRange() (first, last, step int, all bool) {
	if len(c.keys) == 1 && !c.keys[0].counted {
		k := c.keys[0]
		return k.begin, k.end(), k.step, !k.rules
	}
	all = true
	for _, k := range c.keys {
		if k.begin == 0 || k.counted || k.step != 1 || last != 0 && last != k.begin-1 {
			all = false
			continue
		}
		if first == 0 {
			first, step = k.begin, 1
		}
		last = k.end()
	}
	return first, last, step, all
}

// end is the index of the last key; negative: from the end of the call.
func (k *keySpec) end() int {
	if k.last < 0 {
		return k.last
	}
	return k.begin + k.last
}

// categoryOfGroup names the access categories that Redis names otherwise than the group of its manual.
var categoryOfGroup = map[string]string{"generic": "keyspace", "sorted-set": "sortedset", "server": "", "transactions": "transaction"}

// categoryOrder is the order in which Redis tells categories.
var categoryOrder = []string{"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo", "stream",
	"pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting", "ratelimit"}

// accessCategories are those of access lists, most of which follow from the group and the flags.
func (c *command) accessCategories() (names []string) {
	names = strings.Fields(c.categories)
	group, special := categoryOfGroup[c.group]
	if !special {
		group = c.group
	}
	if c.name == "wait" { // of the group generic, but not of the keyspace
		group = ""
	}
	if group != "" && len(c.subs) == 0 && c.reaches == nil { // SORT is of no group
		names = append(names, group)
	}
	for _, implied := range []struct {
		flag flags
		name string
	}{{write, "write"}, {readonly, "read"}, {admin, "admin"}, {admin, "dangerous"}, {fast, "fast"}, {blocking, "blocking"}} {
		if c.flags&implied.flag != 0 {
			names = append(names, implied.name)
		}
	}
	if c.flags&fast == 0 {
		names = append(names, "slow")
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Index(categoryOrder, a) - slices.Index(categoryOrder, b) })
	return slices.Compact(names)
}

// field is one of a reply that is made of those that a command has.
type docField struct {
	name string
	tell func()
}

// commandDocs answers with what COMMAND DOCS tells of one command.
func (r *reply) commandDocs(c *command) {
	text := func(s string) func() { return func() { r.bulkString(s) } }
	fields := []docField{{"summary", text(c.summary)}, {"since", text(c.since)}, {"group", text(c.group)}, {"complexity", text(c.complexity)}}
	if c.deprecated != "" {
		fields = append(fields, docField{"doc_flags", func() { r.words("deprecated") }},
			docField{"deprecated_since", text(c.deprecated)}, docField{"replaced_by", text(c.replacedBy)})
	}
	if c.syntax != "" {
		fields = append(fields, docField{"arguments", func() { r.arguments(c.arguments(), c.syntaxKeys()) }})
	}
	if len(c.subs) > 0 {
		fields = append(fields, docField{"subcommands", func() {
			r.mapping(len(c.subs))
			for _, sub := range c.subs {
				r.bulkString(sub.fullName())
				r.commandDocs(sub)
			}
		}})
	}
	r.mapping(len(fields))
	for _, f := range fields {
		r.bulkString(f.name)
		f.tell()
	}
}

// syntaxKeys tells by which specifications the keys in a syntax are found.
type syntaxKeys struct {
	next     []int // of those that are still to come
	patterns int   // of those that are made of patterns; -1: there are none
}

func (c *command) syntaxKeys() *syntaxKeys {
	keys := &syntaxKeys{patterns: -1}
	for i := range c.keys {
		if c.keys[i].patterns {
			keys.patterns = i
		}
		for range c.keys[i].arguments() {
			keys.next = append(keys.next, i)
		}
	}
	return keys
}

// of is the specification of an argument; -1: it is no key.
func (k *syntaxKeys) of(a *argument) (spec int) {
	switch a.kind {
	case "key":
		spec, k.next = k.next[0], k.next[1:]
		return spec
	case "pattern":
		return k.patterns
	}
	return -1
}

// arguments is how many a specification has in the syntax.
func (k *keySpec) arguments() int {
	switch {
	case k.patterns:
		return 0
	case k.last > 0:
		return k.last/k.step + 1
	}
	return 1
}

// arguments answers with a tree of arguments.
func (r *reply) arguments(list []argument, keys *syntaxKeys) {
	r.array(len(list))
	for _, a := range list {
		text := func(s string) func() { return func() { r.bulkString(s) } }
		fields := []docField{{"name", text(a.name)}, {"type", text(a.kind)}}
		if index := keys.of(&a); index >= 0 {
			fields = append(fields, docField{"key_spec_index", func() { r.count(index) }})
		}
		if a.token != "" {
			fields = append(fields, docField{"token", text(a.token)})
		}
		if flags := a.flagWords(); flags != "" {
			fields = append(fields, docField{"flags", func() { r.words(flags) }})
		}
		if len(a.parts) > 0 {
			fields = append(fields, docField{"arguments", func() { r.arguments(a.parts, keys) }})
		}
		r.mapping(len(fields))
		for _, f := range fields {
			r.bulkString(f.name)
			f.tell()
		}
	}
}

func (a *argument) flagWords() string {
	var words []string
	if a.optional {
		words = append(words, "optional")
	}
	if a.multiple {
		words = append(words, "multiple")
	}
	if a.again {
		words = append(words, "multiple_token")
	}
	return strings.Join(words, " ")
}
