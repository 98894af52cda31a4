package object

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Digest is a hash of what keys hold: equal contents have equal digests, in whatever order their
// parts have come. It is that of Redis, to the bit, for the types that Redis has.
type Digest [sha1.Size]byte

// The numbers by which Redis knows its types. Ours are known by their names.
const (
	digestString = 0
	digestZSet   = 3
	digestHash   = 4
)

// Add mixes data in so that the order of what is added makes no difference.
func (d *Digest) Add(data []byte) {
	for i, b := range sha1.Sum(data) {
		d[i] ^= b
	}
}

// Mix mixes data in so that the order makes a difference.
func (d *Digest) Mix(data []byte) {
	d.Add(data)
	*d = sha1.Sum(d[:])
}

// MixNumber is Mix for a number, as Redis mixes in types and databases.
func (d *Digest) MixNumber(n int) { d.Mix(binary.BigEndian.AppendUint32(nil, uint32(n))) }

// Object mixes in what an object holds and whether it has a deadline, but not its name.
func (d *Digest) Object(o Object) {
	o.digest(d)
	if o.Head().ExpireAt != 0 {
		d.Add([]byte("!!expire!!"))
	}
}

// state mixes in a limiter's state.
func (d *Digest) state(o State) {
	d.Mix([]byte(o.Kind()))
	d.Mix(stateText(o))
}

// pair adds one of the parts of a collection, whose order makes no difference.
func (d *Digest) pair(name, value []byte) {
	var one Digest
	one.Mix(name)
	one.Mix(value)
	d.Add(one[:])
}

// scoreText writes a score as C's %.17g does.
func scoreText(score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return []byte("inf")
	case math.IsInf(score, -1):
		return []byte("-inf")
	}
	return strconv.AppendFloat(nil, score, 'g', 17, 64)
}

// stateText is the state of a limiter, as its effect has it.
func stateText(o Object) []byte {
	var b Batch
	b.Add(0, o)
	f := b.Effects[0]
	return fmt.Appendf(nil, "%v %v", f.Tokens, f.Count)
}
