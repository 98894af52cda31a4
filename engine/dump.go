package engine

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"rlserver/dict"
	"rlserver/zset"
)

// Content is what a key holds, to be written down elsewhere.
type Content struct {
	Type    Type
	Text    []byte    // of a string: stays valid
	Hash    Hash      // valid until the key's next change or the Tx's end
	ZSet    zset.View // stays valid, for one goroutine
	Numbers [4]int64  // of a limiter with a state
}

// Content is what a key holds; ok is false for a missing key.
func (tx *Tx) Content(k Key) (c Content, ok bool) {
	o := tx.lookup(k)
	if o == nil {
		return c, false
	}
	c.Type = o.kind()
	o.content(&c)
	return c, true
}

func (o *stringObject) content(c *Content) { c.Text = o.share() }
func (o *hashObject) content(c *Content)   { c.Hash = hashIn(o) }
func (o *zsetObject) content(c *Content)   { c.ZSet = zset.ViewOf(o.set.Clone()) }

// Restored is what a key is to hold.
type Restored struct {
	Type    Type
	Text    []byte        // of a string
	Pairs   [][]byte      // of a hash: its fields, all different, and their values by turns
	Members []zset.Member // of a sorted set: all different
	Numbers [4]int64      // of a limiter with a state, as Content has them

	Weight   int64 // roughly what it takes
	ExpireAt int64 // Unix ms; 0: never
	Idle     int64 // seconds since its last use; negative: unknown
	// how often it is used, by the logarithmic counter of the policies that go by that; negative:
	// unknown
	Uses int64
}

// Valid reports whether a key can hold this.
func (r *Restored) Valid() bool {
	switch r.Type {
	case TypeString:
		return true
	case TypeHash:
		return len(r.Pairs) > 0
	case TypeZSet:
		return len(r.Members) > 0
	}
	f := Effect{}
	at, known := f.putNumbers(r.Type, r.Numbers)
	return known && f.fits(nil) && 0 <= at && at <= latestSince
}

// Restore stores what was valid under a key, in place of what it held. If it has expired already
// the key is gone.
func (tx *Tx) Restore(k Key, r *Restored) error {
	if !tx.e.roomFor(r.Weight) {
		return ErrOutOfMemory
	}
	tx.Delete(k)
	if r.ExpireAt != 0 && r.ExpireAt <= tx.now {
		return nil
	}
	o := tx.restore(k, r)
	if r.ExpireAt != 0 && o.head().expireAt != r.ExpireAt {
		tx.apply(o, &Effect{Kind: EffectExpire, Key: k, ExpireAt: r.ExpireAt})
	}
	switch counts := tx.e.memory.frequency.Load(); {
	case counts && r.Uses >= 0:
		o.touch(minuteOf(tx.now)<<8 | uint32(r.Uses))
	case !counts && r.Idle >= 0:
		o.touch(uint32(tx.now/1000 - min(r.Idle, clockMask)))
	}
	return nil
}

func (tx *Tx) restore(k Key, r *Restored) (o object) {
	switch r.Type {
	case TypeString:
		return tx.apply(nil, &Effect{Kind: EffectString, Key: k, Value: r.Text, ExpireAt: r.ExpireAt})
	}
	f := Effect{Key: k, ExpireAt: r.ExpireAt}
	if _, limiter := f.putNumbers(r.Type, r.Numbers); limiter {
		return tx.apply(nil, &f)
	}
	for i := 0; i+1 < len(r.Pairs); i += 2 {
		o = tx.apply(o, &Effect{Kind: EffectHashSet, Key: k, Field: r.Pairs[i], Value: r.Pairs[i+1]})
	}
	for _, m := range r.Members {
		o = tx.apply(o, &Effect{Kind: EffectAdd, Key: k, Field: m.Member, Score: kept(m.Score)})
	}
	return o
}

// Digest is a hash of what keys hold: equal contents have equal digests, in whatever order their
// parts have come. It is that of Redis, to the bit, for the types that Redis has.
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

// Reload makes all keys anew from the effects that a snapshot and its loading would go through:
// what these cannot tell is lost. Keys whose time has come stay until they are deleted. It is for a
// call on the whole keyspace that is not writing: nothing changes, so the journal gets nothing.
func (tx *Tx) Reload() (keys int) {
	for _, sh := range tx.locked {
		for db := range sh.dbs {
			old := sh.dbs[db].keys
			if old == nil {
				continue
			}
			sh.flush(db)
			keys += old.Len()
			tx.e.reload(db, old)
		}
	}
	return keys
}

func (e *Engine) reload(db int, old *dict.Dict[object]) {
	var b batch
	restore := func(effects []Effect) {
		for i := range effects {
			f := &effects[i]
			f.Key = e.Key(f.Key.Name)
			e.apply(e.shardOf(f.Key).find(f.DB, f.Key), f)
		}
	}
	for o := range old.All() {
		b.add(db, o)
		for _, l := range b.large {
			for more := true; more; {
				more = l.part(&b)
				b.visit(restore)
				b.effects, b.ends, b.text, b.weight = b.effects[:0], b.ends[:0], b.text[:0], 0
			}
			l.close()
		}
		b.visit(restore)
		b.reset()
	}
}
