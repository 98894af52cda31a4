package events

import (
	"slices"
	"strings"

	"rlserver/engine/change"
	"rlserver/engine/effect"
	"rlserver/internal/grammar"
)

// Name gives the changes of a call their events, and returns what takes their place. command is the
// name of the command; empty: no call has made them.
func Name(command string, words [][]byte, list []change.Change) (named []change.Change) {
	n := namer{quiet: strings.HasPrefix(command, "object|") || command == "memory|usage"}
	if command != "" {
		n.rule = ruleOf(command, words)
		if command == "bitop" {
			n.target = string(word(words, 2))
		}
	}
	if n.rule.how&reversed != 0 {
		list = slices.Clone(list)
		slices.Reverse(list)
	}
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && n.joins(&list[i], &list[j]) {
			j++
		}
		n.group(list[i:j])
		i = j
	}
	return n.named
}

// namer names the changes of one call.
type namer struct {
	rule   rule
	target string // the key that is stored
	quiet  bool   // it is no event that the call has not found a key
	named  []change.Change
}

// joins reports whether two changes of a call, one after the other, have one event.
func (n *namer) joins(a, b *change.Change) bool {
	if a.Reason == change.Missed && b.Reason == change.Missed { // the call has looked it up twice
		return n.rule.how&each == 0 && a.DB == b.DB && a.Key == b.Key
	}
	return a.Reason == change.Called && b.Reason == change.Called && n.rule.how&each == 0 &&
		a.DB == b.DB && a.Key == b.Key && b.Kind.ChangesKey() && a.Kind != effect.Rename && a.Kind != effect.Move &&
		!b.Kind.HasTo() && !a.Kind.HasTo() && b.Kind != effect.Move &&
		(n.rule.take == "" || takes(a.Kind) == takes(b.Kind))
}

func takes(k effect.Kind) bool { return k == effect.RemoveSpan || k == effect.Remove }

// add adds an event of a change. It follows the reply if the rule says so of one of these cases.
func (n *namer) add(c *change.Change, class change.Class, event string, cases how) {
	named := *c
	named.Class, named.Event, named.Late = class, event, n.rule.how&cases != 0
	n.named = append(n.named, named)
}

// group adds the events of changes to one key.
func (n *namer) group(list []change.Change) {
	first, last := &list[0], &list[len(list)-1]
	switch {
	case first.Reason == change.Expired:
		n.add(first, change.Expiry, "expired", 0)
	case first.Reason == change.Evicted:
		n.add(first, change.Eviction, "evicted", 0)
	case first.Reason == change.Missed:
		if !n.quiet && (!first.Writing || n.rule.how&reads != 0 && first.Key != n.target) {
			n.add(first, change.Miss, "keymiss", 0)
		}
	case !first.Kind.ChangesKey():
		n.add(first, 0, "", 0)
	case first.Kind.HasTo() || first.Kind == effect.Move:
		n.moved(*first)
	default:
		n.changed(first, last, kindsOf(list))
	}
}

// moved adds the events of RENAME, COPY and MOVE.
func (n *namer) moved(from change.Change) {
	to := from
	if from.Kind == effect.Rename {
		to.Key = from.To
		n.add(&to, change.New, "new", 0)
		n.add(&from, change.Generic, "rename_from", 0)
		n.add(&to, change.Generic, "rename_to", 0)
		return
	}
	to.DB = from.ToDB
	if from.Kind == effect.Copy {
		to.Key = from.To
		n.add(&to, change.New, "new", 0)
		n.add(&to, change.Generic, "copy_to", 0)
		return
	}
	n.add(&to, change.New, "new", 0)
	n.add(&from, change.Generic, "move_from", 0)
	n.add(&to, change.Generic, "move_to", 0)
}

// kinds are which kinds of effects changes have.
type kinds struct{ value, deadline, deleted bool }

func kindsOf(list []change.Change) (k kinds) {
	for i := range list {
		switch list[i].Kind {
		case effect.Delete:
			k.deleted = true
		case effect.Expire:
			k.deadline = true
		default:
			k.value = true
		}
	}
	return k
}

// changed adds the events of a key that a call has changed.
func (n *namer) changed(first, last *change.Change, k kinds) {
	r := &n.rule
	if k.deleted && !k.value && !k.deadline && r.how&always == 0 {
		n.add(last, change.Generic, "del", lateDel)
		return
	}
	if k.value && (first.Created || r.how&replaces != 0) {
		n.add(last, change.New, "new", lateNew)
	}
	ends := late | lateDel
	switch {
	case r.take != "" && takes(first.Kind):
		n.add(last, r.class, r.take, lateTake)
		ends |= lateTake
	case r.name != "" && (k.value || k.deleted || r.how&only != 0):
		n.add(last, r.class, r.name, late)
		if r.how&expires != 0 && last.ExpireAt != 0 {
			n.add(last, change.Generic, "expire", late)
		}
	case k.deadline && last.ExpireAt == 0:
		n.add(last, change.Generic, "persist", lateDeadline)
	case k.deadline:
		n.add(last, change.Generic, "expire", lateDeadline)
	default: // a change that no command has an event for
		n.add(last, 0, "", 0)
	}
	if last.Gone {
		n.add(last, change.Generic, "del", ends)
	}
}

// rule says what events the changes of a command have.
type rule struct {
	class change.Class
	name  string // of the change to a value
	take  string // of what is taken from a list, if that is another event
	how   how
}

// how are properties of a rule.
type how uint16

const (
	each     how = 1 << iota // each change or miss has its event, also of the same key
	expires                  // expire follows if the key has a deadline then
	replaces                 // the old value is deleted before: a key always counts as new
	always                   // a key that is only deleted has the event as well
	only                     // deadlines have no event of their own
	reversed                 // the last key comes first
	reads                    // a key that is missing has the event keymiss, though the call writes

	// These events follow the reply: that of the value and those after it, new, take, del of what
	// is only deleted or was popped, and those of deadlines.
	late
	lateNew
	lateTake
	lateDel
	lateDeadline
)

// rules are those of Redis' commands, and of commands like them. A command without one changes
// only whole keys: it deletes, moves or expires them.
var rules = map[string]rule{
	"set":         {class: change.String, name: "set", how: expires},
	"setex":       {class: change.String, name: "set", how: expires},
	"psetex":      {class: change.String, name: "set", how: expires},
	"setnx":       {class: change.String, name: "set"},
	"getset":      {class: change.String, name: "set", how: late | lateNew | reads},
	"mset":        {class: change.String, name: "set", how: each},
	"msetnx":      {class: change.String, name: "set", how: each},
	"append":      {class: change.String, name: "append"},
	"setrange":    {class: change.String, name: "setrange"},
	"setbit":      {class: change.String, name: "setbit"},
	"bitfield":    {class: change.String, name: "setbit", how: late},
	"bitop":       {class: change.String, name: "set", how: reads},
	"incr":        {class: change.String, name: "incrby"},
	"decr":        {class: change.String, name: "incrby"},
	"incrby":      {class: change.String, name: "incrby"},
	"decrby":      {class: change.String, name: "incrby"},
	"incrbyfloat": {class: change.String, name: "incrbyfloat"},
	"increx":      {class: change.String, name: "incrby", how: expires},

	"hset":         {class: change.Hash, name: "hset", how: late},
	"hmset":        {class: change.Hash, name: "hset", how: late},
	"hsetnx":       {class: change.Hash, name: "hset", how: late},
	"hincrby":      {class: change.Hash, name: "hincrby", how: late},
	"hincrbyfloat": {class: change.Hash, name: "hincrbyfloat", how: late},
	"hdel":         {class: change.Hash, name: "hdel"},
	"hgetdel":      {class: change.Hash, name: "hdel"},

	"lpush":      {class: change.List, name: "lpush", how: late},
	"lpushx":     {class: change.List, name: "lpush", how: late},
	"rpush":      {class: change.List, name: "rpush", how: late},
	"rpushx":     {class: change.List, name: "rpush", how: late},
	"linsert":    {class: change.List, name: "linsert"},
	"lset":       {class: change.List, name: "lset", how: late},
	"lrem":       {class: change.List, name: "lrem"},
	"ltrim":      {class: change.List, name: "ltrim"},
	"lpop":       {class: change.List, name: "lpop", how: late},
	"blpop":      {class: change.List, name: "lpop", how: late},
	"rpop":       {class: change.List, name: "rpop", how: late},
	"brpop":      {class: change.List, name: "rpop", how: late},
	"rpoplpush":  {class: change.List, name: "lpush", take: "rpop", how: lateTake},
	"brpoplpush": {class: change.List, name: "lpush", take: "rpop", how: lateTake},
	"sort":       {class: change.List, name: "sortstore", how: reads},

	"sadd":        {class: change.Set, name: "sadd"},
	"srem":        {class: change.Set, name: "srem"},
	"spop":        {class: change.Set, name: "spop", how: lateDel | always},
	"smove":       {class: change.Set, name: "sadd", take: "srem", how: reversed},
	"sinterstore": {class: change.Set, name: "sinterstore", how: reads | late | lateDel},
	"sunionstore": {class: change.Set, name: "sunionstore", how: reads | late | lateDel},
	"sdiffstore":  {class: change.Set, name: "sdiffstore", how: reads | late | lateDel},

	"zadd":             {class: change.ZSet, name: "zadd", how: late},
	"zincrby":          {class: change.ZSet, name: "zincr", how: late},
	"zrem":             {class: change.ZSet, name: "zrem"},
	"zremrangebyscore": {class: change.ZSet, name: "zremrangebyscore"},
	"zremrangebyrank":  {class: change.ZSet, name: "zremrangebyrank"},
	"zremrangebylex":   {class: change.ZSet, name: "zremrangebylex"},
	"zunionstore":      {class: change.ZSet, name: "zunionstore", how: reads | late | lateDel},
	"zinterstore":      {class: change.ZSet, name: "zinterstore", how: reads | late | lateDel},
	"zdiffstore":       {class: change.ZSet, name: "zdiffstore", how: reads | late | lateDel},
	"zrangestore":      {class: change.ZSet, name: "zrangestore", how: late | lateDel | reads},
	"zpopmin":          {class: change.ZSet, name: "zpopmin", how: late},
	"bzpopmin":         {class: change.ZSet, name: "zpopmin", how: late},
	"zpopmax":          {class: change.ZSet, name: "zpopmax", how: late},
	"bzpopmax":         {class: change.ZSet, name: "zpopmax", how: late},

	"getex":     {how: lateDeadline | lateDel | reads},
	"getdel":    {how: lateDel | reads},
	"copy":      {how: reads},
	"exists":    {how: each},
	"touch":     {how: each},
	"mget":      {how: each},
	"expire":    {how: lateDeadline},
	"expireat":  {how: lateDeadline},
	"pexpire":   {how: lateDeadline},
	"pexpireat": {how: lateDeadline},

	"restore": {class: change.Generic, name: "restore", how: replaces | only},

	"gcra":        {class: change.Module, name: "gcra", how: only},
	"throttle":    {class: change.Module, name: "throttle", how: only},
	"cl.throttle": {class: change.Module, name: "cl.throttle", how: only},
}

func ruleOf(command string, words [][]byte) rule {
	if strings.HasPrefix(command, "rl.") {
		return rule{class: change.Module, name: command, how: only}
	}
	r := rules[command]
	switch command {
	case "set":
		r.how &^= unless(from(words, 3), expires, "EX", "PX", "EXAT", "PXAT")
		r.how |= (late | lateNew | reads) &^ unless(from(words, 3), late|lateNew|reads, "GET")
	case "increx":
		r.how &^= unless(from(words, 2), expires, "EX", "PX", "EXAT", "PXAT")
	case "zadd":
		for i := 2; i < len(words) && isOneOf(words[i], "NX", "XX", "GT", "LT", "CH", "INCR"); i++ {
			if grammar.EqualFold(words[i], "INCR") {
				r.name = "zincr"
			}
		}
	case "lmove", "blmove":
		r = rule{class: change.List, name: end(word(words, 4), "lpush", "rpush"),
			take: end(word(words, 3), "lpop", "rpop"), how: lateTake}
	case "lmpop", "zmpop":
		r = popped(command, words, 1)
	case "blmpop", "bzmpop":
		r = popped(command, words, 2)
	}
	return r
}

// popped returns the rule of LMPOP and commands like it, whose number of keys is at an index.
func popped(command string, words [][]byte, at int) rule {
	keys, _ := grammar.ParseInt(word(words, at))
	where := word(words, at+1+int(keys))
	if strings.HasSuffix(command, "lmpop") {
		return rule{class: change.List, name: end(where, "lpop", "rpop"), how: late}
	}
	if grammar.EqualFold(where, "MAX") {
		return rule{class: change.ZSet, name: "zpopmax", how: late}
	}
	return rule{class: change.ZSet, name: "zpopmin", how: late}
}

// word returns a word of a call, nil if there are fewer: to name an event never panics.
func word(words [][]byte, at int) []byte {
	if at < 0 || at >= len(words) {
		return nil
	}
	return words[at]
}

func from(words [][]byte, at int) [][]byte { return words[min(at, len(words)):] }

func end(word []byte, left, right string) string {
	if grammar.EqualFold(word, "RIGHT") {
		return right
	}
	return left
}

// unless returns 0 if a call has one of the options, and otherwise bits.
func unless(options [][]byte, bits how, names ...string) how {
	for _, word := range options {
		if isOneOf(word, names...) {
			return 0
		}
	}
	return bits
}

func isOneOf(word []byte, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return grammar.EqualFold(word, name) })
}
