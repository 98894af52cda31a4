package acl

import (
	"slices"
	"strings"
)

// Command is a command or subcommand that rules can allow or deny.
type Command struct {
	// in lower case; a subcommand has its container's name in front: client|list
	Name       string
	Categories []string // without the @
	Open       bool     // every user may run it: AUTH, HELLO, QUIT, RESET
	Absent     bool     // only rules name it: it cannot be called, and In does not return it
	Own        bool     // Redis does not have it
}

// Categories are the names of all categories, in the order of Redis. The last one, ratelimit, has
// this server's own commands.
var Categories = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo", "stream",
	"pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting", ownCategory,
}

const ownCategory = "ratelimit"

// Matcher reports whether a glob pattern, as KEYS takes it, matches the whole name.
type Matcher func(pattern, name []byte) bool

// Catalog holds the commands that rules refer to. It is immutable.
type Catalog struct {
	commands   []Command
	match      Matcher
	index      map[string]int
	subs       map[int][]int // the subcommands of a container
	categories map[string]bits
	order      []int // all commands by name
	textSize   int   // bytes of rules that name every command and every category
}

// NewCatalog returns a catalog of commands. A command's position in the list is its index; rules
// cannot refer to an element without a name. Unknown categories are ignored.
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
		c.textSize += len("+ ") + len(cmd.Name)
	}
	for _, name := range Categories {
		c.categories[name] = newBits(len(commands))
		c.textSize += len("+@ ") + len(name)
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

// Absent returns the index and the name of the command of a call that only Redis has. ok is false
// if there is none.
func (c *Catalog) Absent(words [][]byte) (index int, name string, ok bool) {
	index = c.find(string(words[0]))
	if len(words) > 1 && len(c.subs[index]) > 0 {
		index = c.find(string(words[0]) + "|" + string(words[1]))
	}
	if index < 0 || !c.commands[index].Absent || len(c.subs[index]) > 0 {
		return 0, "", false
	}
	return index, c.commands[index].Name, true
}

// In returns the names of the commands in a category that can be called, sorted. ok is false for an
// unknown category.
func (c *Catalog) In(category string) (names []string, ok bool) {
	set, ok := c.categories[strings.ToLower(category)]
	for _, i := range c.order {
		if ok && set.has(i) && !c.commands[i].Absent {
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
