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

// packed is two numbers of a limiter's state together with its marks, which are in spare bits: a is below 1<<53, as
// limit.MaxCount is, and b below 1<<40, as any duration in ms is. Millions of limiters are what a server is full of.
type packed struct {
	low  uint64 // a · 8 bits to spare · standing
	high uint64 // b · access clock
}

const spareBits = 8

func (p *packed) accessed() uint32   { return uint32(p.high & clockMask) }
func (p *packed) touch(stamp uint32) { p.high = p.high&^clockMask | uint64(stamp&clockMask) }
func (p *packed) standing() standing { return standing(p.low & standingMask) }
func (p *packed) stand(s standing)   { p.low = p.low&^standingMask | uint64(s) }

func (p *packed) a() int64      { return int64(p.low >> (spareBits + standingBits)) }
func (p *packed) b() int64      { return int64(p.high >> clockBits) }
func (p *packed) spare() uint64 { return p.low >> standingBits & (1<<spareBits - 1) }
func (p *packed) set(a, b int64, spare uint64) {
	p.low = uint64(a)<<(spareBits+standingBits) | spare<<standingBits | p.low&standingMask
	p.high = uint64(b)<<clockBits | p.high&clockMask
}

// tokenObject is a token bucket, in 48 bytes. a is what is missing. The 64 bits of the Fraction are in b, in the spare bits and in the
// low 16 bits of since; between these and the time since, Unix ms, one bit tells that b is Earned instead.
type tokenObject struct {
	header
	packed
	since uint64
}

const (
	sinceBits   = 47 // up to the year 6429
	sinceShift  = 64 - sinceBits
	earnedBit   = 1 << 16
	latestSince = 1<<sinceBits - 1
)

func (*tokenObject) kind() Type { return TypeToken }
func (o *tokenObject) clone(name string) object {
	c := *o
	c.name = name
	return &c
}

// tokens is the state of the bucket; nil is a full one.
func (o *tokenObject) tokens() limit.Tokens {
	if o == nil {
		return limit.Tokens{}
	}
	t := limit.Tokens{Missing: o.a(), Since: int64(o.since >> sinceShift)}
	if o.since&earnedBit != 0 {
		t.Earned = o.b()
	} else {
		t.Fraction = uint64(o.b())<<24 | o.spare()<<16 | o.since&0xffff
	}
	return t
}
func (o *tokenObject) setTokens(t limit.Tokens) {
	since := uint64(min(max(t.Since, 0), latestSince)) << sinceShift
	if t.Earned > 0 {
		o.set(t.Missing, t.Earned, 0)
		o.since = since | earnedBit
		return
	}
	o.set(t.Missing, int64(t.Fraction>>24), t.Fraction>>16&0xff)
	o.since = since | t.Fraction&0xffff
}

// fixedObject is a fixed window. a is the hits used, b the window's length.
type fixedObject struct {
	header
	packed
	start int64
}

func (*fixedObject) kind() Type { return TypeFixed }
func (o *fixedObject) clone(name string) object {
	c := *o
	c.name = name
	return &c
}

// count is the state of the window; nil is an unused one.
func (o *fixedObject) count() limit.Count {
	if o == nil {
		return limit.Count{}
	}
	return limit.Count{Start: o.start, Length: o.b(), Used: o.a()}
}
func (o *fixedObject) setCount(c limit.Count) {
	o.set(c.Used, c.Length, 0)
	o.start = c.Start
}
