package engine

import (
	"bytes"

	"rlserver/engine/effect"
	"rlserver/engine/eviction"
	"rlserver/engine/object"
)

// Get returns the value of a string; ok is false for a missing key. The bytes belong to the
// keyspace and are valid until the key's next change.
func (tx *Tx) Get(k Key) (value []byte, ok bool, err error) {
	s, err := tx.String(k)
	if s == nil {
		return nil, false, err
	}
	return s.Value, true, nil
}

// String returns the string under a key, for Replace; nil for a missing key.
func (tx *Tx) String(k Key) (*object.String, error) { return as[*object.String](tx.lookup(k)) }

// Share is Get for callers that use the value after the Tx has ended: its bytes do not change.
func (tx *Tx) Share(k Key) (value []byte, ok bool, err error) {
	s, err := as[*object.String](tx.lookup(k))
	if s == nil {
		return nil, false, err
	}
	return s.Share(), true, nil
}

// StringLength returns the length of the string under a key, in bytes; 0 if the key holds no
// string, or if a script holds the key for long. It takes the key's lock itself.
func (e *Engine) StringLength(db int, k Key) int64 {
	sh, ok := e.lockFree(k.Hash)
	if !ok {
		return 0
	}
	defer sh.mu.Unlock()
	if s, ok := sh.find(db, k).(*object.String); ok {
		return int64(len(s.Value))
	}
	return 0
}

// SetMode are the options of Set. The zero value sets always, and removes the key's deadline.
type SetMode struct {
	NX       bool  // only a missing key
	XX       bool  // only an existing key
	KeepTTL  bool  // the key keeps its deadline; ExpireAt is for a key without one
	ExpireAt int64 // the new deadline, Unix ms; 0: none; with one in the past the key has expired
}

// Set stores a string under a key, replaces any value, and reports whether it was done: false if NX
// or XX did not hold.
func (tx *Tx) Set(k Key, value []byte, m SetMode) bool {
	o := tx.lookup(k)
	if m.NX && o != nil || m.XX && o == nil {
		return false
	}
	if m.KeepTTL && o != nil && o.Deadline() != 0 {
		m.ExpireAt = o.Deadline()
	}
	tx.set(k, o, value, m.ExpireAt)
	return true
}

// Replace sets the value of a string that String has just returned, which keeps its deadline.
func (tx *Tx) Replace(k Key, s *object.String, value []byte) {
	tx.set(k, s, value, s.ExpireAt)
}

// set applies the cheapest effect: none if nothing changes, and a Splice if the value has the old
// one's length. Most counters keep their length, and so do values that a client writes repeatedly.
func (tx *Tx) set(k Key, o object.Object, value []byte, expireAt int64) {
	s, _ := o.(*object.String)
	switch {
	case s == nil || s.ExpireAt != expireAt || len(s.Value) != len(value) || s.Raw:
		tx.apply(o, &effect.Effect{Kind: effect.String, Key: k, Value: value, ExpireAt: expireAt})
	case !bytes.Equal(s.Value, value):
		tx.apply(o, &effect.Effect{Kind: effect.Splice, Key: k, Value: value})
	default:
		tx.Rewrote(k, effect.String)
	}
	if o != nil {
		o.SetPressure(eviction.Unused) // a denied client has room again
	}
}

// Append appends bytes to a string and returns its new length. A missing key becomes an empty
// string, even if nothing is appended. Over many calls, the time is linear in the bytes appended.
func (tx *Tx) Append(k Key, added []byte) (length int, err error) {
	o := tx.lookup(k)
	s, err := as[*object.String](o)
	if err != nil {
		return 0, err
	}
	if s != nil {
		length = len(s.Value)
	}
	if tooLong(int64(length), added) {
		return 0, ErrStringTooLong
	}
	switch {
	case s == nil:
		tx.set(k, nil, added, 0)
	case len(added) > 0:
		tx.splice(k, o, length, added)
	default:
		s.Raw = true
		tx.Rewrote(k, effect.Splice)
	}
	return length + len(added), nil
}

// SetRange overwrites a string from an offset on, which is not negative, and returns the string's
// new length. A gap between its end and the offset is filled with zeros. A missing key is an empty
// string. An empty value changes nothing.
func (tx *Tx) SetRange(k Key, offset int64, value []byte) (length int, err error) {
	o := tx.lookup(k)
	s, err := as[*object.String](o)
	if err != nil {
		return 0, err
	}
	if s != nil {
		length = len(s.Value)
	}
	if len(value) == 0 {
		return length, nil
	}
	if tooLong(offset, value) {
		return 0, ErrStringTooLong
	}
	// the zeros before the value were not sent by the client
	if !tx.e.RoomFor(offset - int64(length)) {
		return 0, ErrOutOfMemory
	}
	tx.splice(k, o, int(offset), value)
	return max(length, int(offset)+len(value)), nil
}

// splice overwrites the bytes of a string from an offset on, and makes it raw, as in Redis.
func (tx *Tx) splice(k Key, o object.Object, at int, value []byte) {
	o = tx.apply(o, &effect.Effect{Kind: effect.Splice, Key: k, Lo: at, Value: value})
	o.(*object.String).Raw = true // not said by an effect on all bytes, as set makes it
}

// tooLong reports whether a string would exceed MaxString if a value were written at an offset.
func tooLong(offset int64, value []byte) bool { return offset > object.MaxString-int64(len(value)) }
