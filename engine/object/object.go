package object

import (
	"unsafe"

	"rlserver/engine/effect"
	"rlserver/engine/eviction"
)

// Type says what a key holds, in the word of the TYPE command.
type Type string

// The types. Each limiter with a state of its own has one more, see State.
const (
	TypeNone   Type = "none" // no such key
	TypeString Type = "string"
	TypeHash   Type = "hash"
	TypeZSet   Type = "zset"
)

func (t Type) String() string { return string(t) }

// Object is what a key holds, together with its name and its deadline: one allocation for a
// limiter. Each type is its own struct. What all types must have is a method here, so that a new
// type which lacks its weight, its part in snapshots, its content, its digest or its encoding does
// not compile.
type Object interface {
	Head() *Header
	Kind() Type

	Weight() int64 // bytes, without the name; it depends only on what effects change

	// save adds the effects that rebuild it; f has the database and the key. A large collection is
	// postponed, to be saved in parts: then it is not whole.
	save(b *Batch, f effect.Effect) (whole bool)

	Content(c *Content)        // sets what DUMP writes
	digest(d *Digest)          // mixes in what it holds
	Encoding(p Packing) string // for OBJECT ENCODING

	Accessed() uint32
	Touch(stamp uint32)
	Pressure() eviction.Pressure
	SetPressure(eviction.Pressure)
	Clone(name string) Object
}

// Header begins every object.
type Header struct {
	Name     string
	ExpireAt int64 // Unix ms; 0: never
}

func (h *Header) Head() *Header { return h }

// Expired reports whether the deadline is past at now (Unix ms).
func (h *Header) Expired(now int64) bool { return h.ExpireAt != 0 && now > h.ExpireAt }

// Clock remembers the second of the last access, in 24 bits as Redis' LRU clock does: it wraps
// after 194 days. Under a policy that counts accesses the bits are Redis' too, see frequency. Above
// them is the pressure of a limiter.
type Clock struct{ bits uint32 }

func (c *Clock) Accessed() uint32            { return c.bits & eviction.ClockMask }
func (c *Clock) Touch(stamp uint32)          { c.bits = c.bits&^eviction.ClockMask | stamp&eviction.ClockMask }
func (c *Clock) Pressure() eviction.Pressure { return eviction.Pressure(c.bits >> eviction.ClockBits) }
func (c *Clock) SetPressure(s eviction.Pressure) {
	c.bits = c.bits&eviction.ClockMask | uint32(s)<<eviction.ClockBits
}

// State is a limiter whose state is a few numbers. An effect sets them all.
type State interface {
	Object
	// Numbers is the state, for Content; Restored reads it. The order is the format of DUMP:
	// never reorder.
	Numbers() [4]int64
	// store makes the effect the one that sets this state, except for its key and ExpireAt
	store(f *effect.Effect)
	// Refund is store for the state with up to n hits less; used: any hits are left
	Refund(f *effect.Effect, now, n int64) (back int64, used bool)
	// MoveBack is store for a state that lies in the future, moved back as by MoveBack
	MoveBack(f *effect.Effect, present, by int64) (moved bool)
}

// withName allocates an object together with the text of its name, if that is as short as names
// are: one allocation, and no further memory to be fetched to see that a key is the one that was
// asked for. A token bucket with a name of 16 bytes fills one cache line.
func withName[T any](name []byte) (o *T, text string) {
	switch {
	case len(name) <= 16:
		both := new(struct {
			text   [16]byte
			object T
		})
		return &both.object, unsafe.String(&both.text[0], copy(both.text[:], name))
	case len(name) <= 32:
		both := new(struct {
			text   [32]byte
			object T
		})
		return &both.object, unsafe.String(&both.text[0], copy(both.text[:], name))
	}
	return new(T), string(name)
}

// BytesOf looks at a string's bytes, which must not be written to.
func BytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// TypeOf is the type of an object, TypeNone for a missing key.
func TypeOf(o Object) Type {
	if o == nil {
		return TypeNone
	}
	return o.Kind()
}

func is[T Object](o Object) bool {
	_, ok := o.(T)
	return ok
}

// MissingOr reports whether an object is of the type T, or missing.
func MissingOr[T Object](o Object) bool { return o == nil || is[T](o) }
