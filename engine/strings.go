package engine

import (
	"bytes"

	"rlserver/engine/effect"
	"rlserver/engine/eviction"
	"rlserver/engine/object"
)

// Get is the value of a string; ok is false for a missing key. The bytes are the keyspace's: they
// hold until the key's next change.
func (tx *Tx) Get(k Key) (value []byte, ok bool, err error) {
	s, err := as[*object.String](tx.lookup(k))
	if s == nil {
		return nil, false, err
	}
	return s.Value, true, nil
}

// Share is Get for callers that use the value after the Tx has ended: its bytes stay as they are.
func (tx *Tx) Share(k Key) (value []byte, ok bool, err error) {
	s, err := as[*object.String](tx.lookup(k))
	if s == nil {
		return nil, false, err
	}
	return s.Share(), true, nil
}

// StringLength is how many bytes the string has that a key holds; 0 if it holds none. It takes the
// key's lock itself.
func (e *Engine) StringLength(db int, k Key) int64 {
	sh := e.shardOf(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s, ok := sh.find(db, k).(*object.String); ok {
		return int64(len(s.Value))
	}
	return 0
}

// SetMode is how Set sets. The zero value: always, and the key loses its deadline.
type SetMode struct {
	NX       bool  // only a missing key
	XX       bool  // only a key that holds something
	KeepTTL  bool  // a deadline that the key has stays; ExpireAt is for a key without one
	ExpireAt int64 // the new deadline, Unix ms; 0: none; one in the past leaves a hidden key
}

// Set stores a string under a key, whatever it held, and reports whether it was done: not if the
// mode forbade it.
func (tx *Tx) Set(k Key, value []byte, m SetMode) bool {
	o := tx.lookup(k)
	if m.NX && o != nil || m.XX && o == nil {
		return false
	}
	if m.KeepTTL && o != nil && o.Head().ExpireAt != 0 {
		m.ExpireAt = o.Head().ExpireAt
	}
	tx.set(k, o, value, m.ExpireAt)
	if o != nil {
		o.SetPressure(eviction.Unused) // a denied client has room again
	}
	return true
}

// set applies the effect that takes least: nothing if nothing changes, and a value of the old one's
// length is written in its place. Counters mostly keep their length, and so do the values that
// a client writes over and over.
func (tx *Tx) set(k Key, o object.Object, value []byte, expireAt int64) {
	s, _ := o.(*object.String)
	switch {
	case s == nil || s.ExpireAt != expireAt || len(s.Value) != len(value):
		tx.apply(o, &effect.Effect{Kind: effect.String, Key: k, Value: value, ExpireAt: expireAt})
	case !bytes.Equal(s.Value, value):
		tx.apply(o, &effect.Effect{Kind: effect.Splice, Key: k, Value: value})
	}
}

// Append adds bytes to the end of a string and returns how many it has then. A missing key is an
// empty string, which becomes even if nothing is added. The time it takes, over many calls, is that
// of copying what is added.
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
	if s == nil || len(added) > 0 {
		tx.apply(o, &effect.Effect{Kind: effect.Splice, Key: k, Lo: length, Value: added})
	}
	return length + len(added), nil
}

// SetRange writes bytes over a string from an offset on, which is not negative, and returns how
// many it has then. Between its end and the offset come zeros. A missing key is an empty string; to
// write nothing changes nothing, wherever.
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
	if !tx.e.roomFor(offset - int64(length)) { // what comes before the value was not sent
		return 0, ErrOutOfMemory
	}
	tx.apply(o, &effect.Effect{Kind: effect.Splice, Key: k, Lo: int(offset), Value: value})
	return max(length, int(offset)+len(value)), nil
}

// tooLong reports whether a string would outgrow MaxString by what is written from an offset on.
func tooLong(offset int64, value []byte) bool { return offset > object.MaxString-int64(len(value)) }
