package engine

import (
	"rlserver/engine/limit"
	"rlserver/zset"
)

// Type says what a key holds.
type Type uint8

// The types, in the words of the TYPE command.
const (
	TypeNone Type = iota // no such key
	TypeString
	TypeHash
	TypeZSet
	TypeToken
	TypeFixed
)

var typeNames = [...]string{"none", "string", "hash", "zset", "rl.token", "rl.fixed"}

func (t Type) String() string { return typeNames[t] }

// object is what a key holds, together with its name and its deadline: one allocation for a limiter.
// Each type is its own struct; a type switch tells them apart.
type object interface {
	head() *header
	kind() Type
	accessed() uint32
	touch(stamp uint32)
	standing() standing
	stand(standing)
	clone(name string) object
}

// header begins every object.
type header struct {
	name     string
	expireAt int64 // Unix ms; 0: never
}

func (h *header) head() *header { return h }

func (h *header) expired(now int64) bool { return h.expireAt != 0 && now > h.expireAt }

// clock remembers the second of the last access, in 24 bits as Redis' LRU clock does: it wraps after 194 days. Under a policy that
// counts accesses the bits are Redis' too, see frequency. Above them is the standing of a limiter.
type clock struct{ bits uint32 }

const (
	clockBits = 24
	clockMask = 1<<clockBits - 1
)

func (c *clock) accessed() uint32   { return c.bits & clockMask }
func (c *clock) touch(stamp uint32) { c.bits = c.bits&^clockMask | stamp&clockMask }
func (c *clock) standing() standing { return standing(c.bits >> clockBits) }
func (c *clock) stand(s standing)   { c.bits = c.bits&clockMask | uint32(s)<<clockBits }

type stringObject struct {
	header
	value []byte
	clock
	shared bool // a snapshot or an answer that is being written may be looking at value: its bytes are not written over, but copied first
}

func (*stringObject) kind() Type { return TypeString }
func (o *stringObject) clone(name string) object {
	return &stringObject{header: header{name, o.expireAt}, value: append([]byte(nil), o.value...), clock: o.clock}
}

type hashObject struct {
	header
	clock
	fields hash
}

func (*hashObject) kind() Type { return TypeHash }
func (o *hashObject) clone(name string) object {
	return &hashObject{header: header{name, o.expireAt}, clock: o.clock, fields: o.fields.clone()}
}

type zsetObject struct {
	header
	clock
	set zset.Set // in place: one step less to the log of a limiter
}

func (*zsetObject) kind() Type { return TypeZSet }
func (o *zsetObject) clone(name string) object {
	return &zsetObject{header: header{name, o.expireAt}, clock: o.clock, set: *o.set.Clone()}
}

// tokenObject is a token bucket. Millions of them are what a server is full of, so it is packed to fill 48 bytes exactly:
// the units earned toward the next token are fewer than a period has milliseconds, which is below 1<<40, and leave 24 bits
// of their word to the access clock; and what is missing, at most limit.MaxCount, is below 1<<53 and leaves room for the standing.
type tokenObject struct {
	header
	missingAndStanding uint64
	since              int64
	earnedAndClock     uint64
}

func (*tokenObject) kind() Type { return TypeToken }
func (o *tokenObject) clone(name string) object {
	c := *o
	c.name = name
	return &c
}
func (o *tokenObject) accessed() uint32 { return uint32(o.earnedAndClock & clockMask) }
func (o *tokenObject) touch(stamp uint32) {
	o.earnedAndClock = o.earnedAndClock&^clockMask | uint64(stamp&clockMask)
}
func (o *tokenObject) standing() standing { return standing(o.missingAndStanding & standingMask) }
func (o *tokenObject) stand(s standing) {
	o.missingAndStanding = o.missingAndStanding&^standingMask | uint64(s)
}

// tokens is the state of the bucket; nil is a full one.
func (o *tokenObject) tokens() limit.Tokens {
	if o == nil {
		return limit.Tokens{}
	}
	return limit.Tokens{
		Missing: int64(o.missingAndStanding >> standingBits), Earned: int64(o.earnedAndClock >> clockBits), Since: o.since,
	}
}
func (o *tokenObject) set(t limit.Tokens) {
	o.missingAndStanding, o.since = uint64(t.Missing)<<standingBits|o.missingAndStanding&standingMask, t.Since
	o.earnedAndClock = uint64(t.Earned)<<clockBits | o.earnedAndClock&clockMask
}

type fixedObject struct {
	header
	count limit.Count
	clock
}

func (*fixedObject) kind() Type { return TypeFixed }
func (o *fixedObject) clone(name string) object {
	c := *o
	c.name = name
	return &c
}

// used is the state of the window; nil is an unused one.
func (o *fixedObject) used() limit.Count {
	if o == nil {
		return limit.Count{}
	}
	return o.count
}
