package engine

import "rlserver/zset"

// Type says what a key holds, in the word of the TYPE command.
type Type string

// The types. Each limiter with a state of its own has one more, see stateObject.
const (
	TypeNone   Type = "none" // no such key
	TypeString Type = "string"
	TypeHash   Type = "hash"
	TypeZSet   Type = "zset"
)

func (t Type) String() string { return string(t) }

// object is what a key holds, together with its name and its deadline: one allocation for a
// limiter. Each type is its own struct. What all types must have is a method here, so that a new
// type which lacks its weight, its part in snapshots, its content, its digest or its encoding does
// not compile.
type object interface {
	head() *header
	kind() Type

	weight() int64 // bytes, without the name; it depends only on what apply changes

	// save adds the effects that rebuild it; f has the database and the key. A large collection is
	// postponed, to be saved in parts: then it is not whole.
	save(b *batch, f Effect) (whole bool)

	content(c *Content)        // sets what DUMP writes
	digest(d *Digest)          // mixes in what it holds
	encoding(p Packing) string // for OBJECT ENCODING

	accessed() uint32
	touch(stamp uint32)
	pressure() pressure
	setPressure(pressure)
	clone(name string) object
}

// header begins every object.
type header struct {
	name     string
	expireAt int64 // Unix ms; 0: never
}

func (h *header) head() *header { return h }

func (h *header) expired(now int64) bool { return h.expireAt != 0 && now > h.expireAt }

// clock remembers the second of the last access, in 24 bits as Redis' LRU clock does: it wraps
// after 194 days. Under a policy that counts accesses the bits are Redis' too, see frequency. Above
// them is the pressure of a limiter.
type clock struct{ bits uint32 }

const (
	clockBits = 24
	clockMask = 1<<clockBits - 1
)

func (c *clock) accessed() uint32       { return c.bits & clockMask }
func (c *clock) touch(stamp uint32)     { c.bits = c.bits&^clockMask | stamp&clockMask }
func (c *clock) pressure() pressure     { return pressure(c.bits >> clockBits) }
func (c *clock) setPressure(s pressure) { c.bits = c.bits&clockMask | uint32(s)<<clockBits }

type stringObject struct {
	header
	value []byte
	clock
	// a snapshot or an answer that is being written may be looking at value: its bytes are not
	// written over, but copied first
	shared bool
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

// stateObject is a limiter whose state is a few numbers. An effect sets them all.
type stateObject interface {
	object
	// numbers is the state, for Content; putNumbers reads it. The order is the format of DUMP:
	// never reorder.
	numbers() [4]int64
	// store makes the effect the one that sets this state, except for its key and ExpireAt
	store(f *Effect)
	// refund is store for the state with up to n hits less; used: any hits are left
	refund(f *Effect, now, n int64) (back int64, used bool)
	// moveBack is store for a state that lies in the future, moved back as by MoveBack
	moveBack(f *Effect, present, by int64) (moved bool)
}

// packed is two numbers of a limiter's state together with its marks, which are in spare bits: a is
// below 1<<53, as limit.MaxCount is, and b below 1<<40, as any duration in ms is. Millions of
// limiters are what a server is full of.
type packed struct {
	low  uint64 // a · 8 bits to spare · pressure
	high uint64 // b · access clock
}

const spareBits = 8

func (p *packed) accessed() uint32       { return uint32(p.high & clockMask) }
func (p *packed) touch(stamp uint32)     { p.high = p.high&^clockMask | uint64(stamp&clockMask) }
func (p *packed) pressure() pressure     { return pressure(p.low & pressureMask) }
func (p *packed) setPressure(s pressure) { p.low = p.low&^pressureMask | uint64(s) }

// encoding is "packed" for what Redis lacks.
func (*packed) encoding(Packing) string { return "packed" }

func (p *packed) a() int64      { return int64(p.low >> (spareBits + pressureBits)) }
func (p *packed) b() int64      { return int64(p.high >> clockBits) }
func (p *packed) spare() uint64 { return p.low >> pressureBits & (1<<spareBits - 1) }
func (p *packed) set(a, b int64, spare uint64) {
	p.low = uint64(a)<<(spareBits+pressureBits) | spare<<pressureBits | p.low&pressureMask
	p.high = uint64(b)<<clockBits | p.high&clockMask
}
