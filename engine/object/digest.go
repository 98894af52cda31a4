package object

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"rlserver/engine/effect"
)

// Digest is a hash of the values of keys: equal values have equal digests, regardless of the order
// in which their parts were added. For the types that Redis has it equals the digest of Redis.
type Digest [sha1.Size]byte

// Add adds data so that the order of calls makes no difference.
func (d *Digest) Add(data []byte) {
	for i, b := range sha1.Sum(data) {
		d[i] ^= b
	}
}

// Combine adds the sum of what Add has added to another digest.
func (d *Digest) Combine(sum Digest) {
	for i, b := range sum {
		d[i] ^= b
	}
}

// Mix adds data so that the order of calls makes a difference.
func (d *Digest) Mix(data []byte) {
	d.Add(data)
	*d = sha1.Sum(d[:])
}

// MixNumber is Mix for a number, encoded as Redis encodes types and databases.
func (d *Digest) MixNumber(n int) { d.Mix(binary.BigEndian.AppendUint32(nil, uint32(n))) }

// Object adds the value of an object and whether it has a deadline, but not its name.
func (d *Digest) Object(o Object) {
	o.digest(d)
	if o.Deadline() != 0 {
		d.Add([]byte("!!expire!!"))
	}
}

// Key adds an object with its name.
func (d *Digest) Key(o Object) {
	var one Digest
	one.Mix([]byte(o.Name()))
	one.Object(o)
	d.Add(one[:])
}

// state adds a limiter's state.
func (d *Digest) state(o State) {
	d.Mix([]byte(o.Kind()))
	d.Mix(stateText(o))
}

// pair adds one element of a collection; the order of elements makes no difference.
func (d *Digest) pair(name, value []byte) {
	var one Digest
	one.Mix(name)
	one.Mix(value)
	d.Add(one[:])
}

// scoreText formats a score as C's %.17g does.
func scoreText(score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return []byte("inf")
	case math.IsInf(score, -1):
		return []byte("-inf")
	}
	return strconv.AppendFloat(nil, score, 'g', 17, 64)
}

// stateText returns the state of a limiter, as in its effect.
func stateText(o Object) []byte {
	var f effect.Effect
	o.(State).store(&f)
	if f.Kind == effect.Counter {
		return fmt.Append(nil, f.Counts)
	}
	return fmt.Appendf(nil, "%v %v", f.Tokens, f.Count)
}
