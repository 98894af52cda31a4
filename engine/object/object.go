package object

import (
	"unsafe"

	"rlserver/engine/effect"
	"rlserver/engine/eviction"
)

// Type is the type of a key's value, as the TYPE command returns it.
type Type string

// Object is the value of a key, together with the key's name and deadline: one allocation for a
// limiter. Each type is its own struct. Everything that all types need is a method here, so that a
// new type without weight, save, content, digest or encoding does not compile.
type Object interface {
	Name() string // of the key; valid until the key is deleted or renamed
	Kind() Type

	Deadline() int64 // Unix ms; 0: none
	SetDeadline(at int64)
	Expired(now int64) bool // the deadline is past at now (Unix ms)

	// Weight is in bytes, without the name, except that of a record; it depends only on what
	// effects change.
	Weight() int64
	overhead() int64 // what Weigh adds to it

	// save adds the effects that rebuild the object; f has the database and the key. A large
	// collection is postponed, to be saved in parts: whole is then false.
	save(b *Batch) (whole bool)

	Content(c *Content)        // sets how DUMP writes the value
	digest(d *Digest)          // adds the value
	Encoding(p Packing) string // for OBJECT ENCODING

	Accessed() uint32
	Touch(stamp uint32)
	Pressure() eviction.Pressure
	SetPressure(eviction.Pressure)
	Clone(name string) Object
}

// Header begins every object that is no record: its key's name and deadline.
type Header struct {
	name     string
	ExpireAt int64 // Unix ms; 0: never
}

func (h *Header) Name() string         { return h.name }
func (h *Header) Deadline() int64      { return h.ExpireAt }
func (h *Header) SetDeadline(at int64) { h.ExpireAt = at }

func (h *Header) Expired(now int64) bool { return h.ExpireAt != 0 && now > h.ExpireAt }

func (h *Header) setName(name string) { h.name = name }

func (h *Header) overhead() int64 { return entryWeight + nameWeight(h.name) }

// Clock is the access clock: the second of the last access in 24 bits, like Redis' LRU clock, which
// wraps after 194 days, or an eviction.Frequency under a policy that counts accesses. Above these
// bits is the pressure of a limiter.
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
	// Numbers returns the state, for Content and Restored. The order is the format of DUMP: never
	// reorder.
	Numbers() [4]int64
	// store makes the effect set this state, except for its key and ExpireAt
	store(f *effect.Effect)
	// Refund is store for the state with up to n hits removed; used: hits remain
	Refund(f *effect.Effect, now, n int64) (back int64, used bool)
	// MoveBack is store for a state in the future that is moved back, see engine.MoveBack
	MoveBack(f *effect.Effect, present, by int64) (moved bool)
}

// withName allocates an object together with its name, if that has at most 32 bytes: one
// allocation, and comparing the name reads no further cache line.
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

// Rename returns the object for another key: itself, but a copy of a record.
func Rename(o Object, name string) Object {
	if h, ok := o.(interface{ setName(string) }); ok {
		h.setName(name)
		return o
	}
	return o.Clone(name)
}

// BytesOf returns a string's bytes without copying them. They must not be written to.
func BytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// TypeOf returns the type of an object; TypeNone for a missing key.
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
