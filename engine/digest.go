package engine

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Digest stands for what keys hold: equal contents have equal digests, in whatever order their parts have come. It is that of Redis, to the
// bit, for the types that Redis has.
type Digest [sha1.Size]byte

// The numbers by which Redis knows its types. Ours are known by their names.
const (
	digestString = 0
	digestZSet   = 3
	digestHash   = 4
)

// add mixes data in so that the order of what is added makes no difference.
func (d *Digest) add(data []byte) {
	for i, b := range sha1.Sum(data) {
		d[i] ^= b
	}
}

// mix mixes data in so that the order makes a difference.
func (d *Digest) mix(data []byte) {
	d.add(data)
	*d = sha1.Sum(d[:])
}

func (d *Digest) mixNumber(n int) { d.mix(binary.BigEndian.AppendUint32(nil, uint32(n))) }

// DigestAll is the digest of all databases. It is for a call on the whole keyspace.
func (tx *Tx) DigestAll() (all Digest) {
	for db := range tx.e.databases {
		begun := false
		for _, sh := range tx.locked {
			keys := sh.dbs[db].keys
			if keys == nil {
				continue
			}
			for o := range keys.All() {
				if o.head().expired(tx.now) {
					continue
				}
				if !begun {
					all.mixNumber(db)
					begun = true
				}
				var one Digest
				one.mix([]byte(o.head().name))
				one.object(o)
				all.add(one[:])
			}
		}
	}
	return all
}

// Digest is the digest of what a key holds, without its name; that of a missing key is all zeros.
func (tx *Tx) Digest(k Key) (d Digest) {
	if o := tx.peek(k); o != nil {
		d.object(o)
	}
	return d
}

func (d *Digest) object(o object) {
	o.digest(d)
	if o.head().expireAt != 0 {
		d.add([]byte("!!expire!!"))
	}
}

func (o *stringObject) digest(d *Digest) {
	d.mixNumber(digestString)
	d.mix(o.value)
}

func (o *hashObject) digest(d *Digest) {
	d.mixNumber(digestHash)
	for field, value := range o.fields.all() {
		d.pair([]byte(field), []byte(value))
	}
}

func (o *zsetObject) digest(d *Digest) {
	d.mixNumber(digestZSet)
	for member, score := range o.set.Ascend(0, o.set.Len()) {
		d.pair(member, scoreText(score))
	}
}

// state mixes in a limiter's state.
func (d *Digest) state(o stateObject) {
	d.mix([]byte(o.kind()))
	d.mix(stateText(o))
}

// pair adds one of the parts of a collection, whose order makes no difference.
func (d *Digest) pair(name, value []byte) {
	var one Digest
	one.mix(name)
	one.mix(value)
	d.add(one[:])
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
func stateText(o object) []byte {
	var b batch
	b.add(0, o)
	f := b.effects[0]
	return fmt.Appendf(nil, "%v %v", f.Tokens, f.Count)
}
