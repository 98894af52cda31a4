package acl

import (
	"slices"
	"strings"
)

// Command is what rules refer to.
type Command struct {
	Name       string   // in lower case; of a subcommand with its container: client|list
	Categories []string // without the @
	Open       bool     // every user may run it: AUTH, HELLO, QUIT, RESET
}

// Categories are the names of all categories in the order of Redis, followed by ratelimit, which
// has the commands of this server's own.
var Categories = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo", "stream",
	"pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting", "ratelimit",
}

// Matcher reports whether a pattern in the notation of KEYS matches all of a name.
type Matcher func(pattern, name []byte) bool

// Catalog holds the commands that rules refer to. It is immutable.
type Catalog struct {
	commands   []Command
	match      Matcher
	index      map[string]int
	subs       map[int][]int // the subcommands of a container
	categories map[string]bits
	order      []int // all commands by name
}

// NewCatalog returns a catalog of commands. The index of a command is its place in the list; one
// without a name does not exist for rules.
// Categories that are not in Categories are ignored.
func NewCatalog(commands []Command, match Matcher) *Catalog {
	c := &Catalog{
		commands: commands, match: match,
		index: make(map[string]int), subs: make(map[int][]int), categories: make(map[string]bits),
	}
	for i, cmd := range commands {
		if cmd.Name == "" {
			continue
		}
		c.index[cmd.Name] = i
		c.order = append(c.order, i)
	}
	for _, name := range Categories {
		c.categories[name] = newBits(len(commands))
	}
	for i, cmd := range commands {
		if container, _, sub := strings.Cut(cmd.Name, "|"); sub {
			at := c.index[container]
			c.subs[at] = append(c.subs[at], i)
		}
		for _, name := range cmd.Categories {
			if set, known := c.categories[name]; known {
				set.set(i, true)
			}
		}
	}
	slices.SortFunc(c.order, func(a, b int) int { return strings.Compare(commands[a].Name, commands[b].Name) })
	return c
}

// find returns the index of a command by its name in any case, or -1.
func (c *Catalog) find(name string) int {
	if i, ok := c.index[strings.ToLower(name)]; ok {
		return i
	}
	return -1
}

// In returns the names of the commands in a category, sorted. ok is false for an unknown category.
func (c *Catalog) In(category string) (names []string, ok bool) {
	set, ok := c.categories[strings.ToLower(category)]
	for _, i := range c.order {
		if ok && set.has(i) {
			names = append(names, c.commands[i].Name)
		}
	}
	return names, ok
}

// bits is a set of commands by their indexes.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bits) set(i int, yes bool) {
	if yes {
		b[i/64] |= 1 << (i % 64)
	} else {
		b[i/64] &^= 1 << (i % 64)
	}
}

func (b bits) fill(yes bool) {
	for i := range b {
		b[i] = 0
		if yes {
			b[i] = ^uint64(0)
		}
	}
}
