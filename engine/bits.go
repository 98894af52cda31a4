package engine

import (
	"rlserver/engine/object"
	"rlserver/internal/bitmap"
)

// Bit 0 of a string is the highest bit of its first byte. Bits behind its end are 0.

// SetBit sets or clears a bit of a string, which it lengthens if necessary, and reports whether the
// bit was set. A missing key is an empty string. The offset is below 8 * MaxString.
func (tx *Tx) SetBit(k Key, offset int64, on bool) (was bool, err error) {
	o, value, err := tx.stretchable(k, offset>>3+1)
	if err != nil {
		return false, err
	}
	was = bitmap.Bit(value, offset)
	at := int(offset >> 3)
	if was == on && at < len(value) {
		return was, nil
	}
	tx.splice(k, o, at, bitmap.With(value, offset, on))
	return was, nil
}

// stretchable looks up a string that will have at least length bytes. It returns ErrOutOfMemory if
// there is not enough memory for them.
func (tx *Tx) stretchable(k Key, length int64) (o object.Object, value []byte, err error) {
	o = tx.lookup(k)
	s, err := as[*object.String](o)
	if err != nil {
		return o, nil, err
	}
	if s != nil {
		value = s.Value
	}
	if !tx.e.RoomFor(length - int64(len(value))) {
		return o, nil, ErrOutOfMemory
	}
	return o, value, nil
}

// MayStretch returns why a string cannot be lengthened to length bytes.
func (tx *Tx) MayStretch(k Key, length int64) error {
	_, _, err := tx.stretchable(k, length)
	return err
}

// Stretch adds zeros to the end of a string until it has at least length bytes. A missing key is
// an empty string.
func (tx *Tx) Stretch(k Key, length int64) error {
	o, value, err := tx.stretchable(k, length)
	if err == nil && (o == nil || int64(len(value)) < length) {
		tx.splice(k, o, int(length)-1, bitmap.Single(0))
	}
	return err
}

// ChangeBits changes a bit field of a string; MayStretch has returned nil for its end. It returns
// the field's old and new values; ok is false if the change failed and the field keeps its value.
func (tx *Tx) ChangeBits(k Key, c bitmap.Change) (old, now int64, ok bool, err error) {
	o := tx.lookup(k)
	s, err := as[*object.String](o)
	if err != nil {
		return 0, 0, false, err
	}
	var value []byte
	if s != nil {
		value = s.Value
	}
	old = c.In(value)
	if now, ok = c.Result(old); ok && now != old {
		tx.splice(k, o, int(c.Offset>>3), c.With(value, now))
	}
	return old, now, ok, nil
}

// BitOp stores the result of an operation on strings under dst, replacing its value, and returns
// its length in bytes: that of the longest string. If it is 0, dst is deleted. A missing key is an
// empty string.
func (tx *Tx) BitOp(op bitmap.Operation, dst Key, sources []Key) (length int, err error) {
	values := make([][]byte, len(sources))
	for i, k := range sources {
		if values[i], _, err = tx.Get(k); err != nil {
			return 0, err
		}
		length = max(length, len(values[i]))
	}
	if length == 0 {
		tx.Delete(dst)
		return 0, nil
	}
	if !tx.e.RoomFor(int64(length)) {
		return 0, ErrOutOfMemory
	}
	tx.Set(dst, op.Apply(make([]byte, length), values), SetMode{})
	return length, nil
}
