package object

import (
	"rlserver/engine/effect"
	"rlserver/zset"
)

// Content is what a key holds, to be written down elsewhere.
type Content struct {
	Type    Type
	Text    []byte    // of a string: stays valid
	Hash    HashView  // valid until the key's next change or the Tx's end
	ZSet    zset.View // stays valid, for one goroutine
	Numbers [4]int64  // of a limiter with a state
}

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
	f := effect.Effect{}
	at, known := PutNumbers(&f, r.Type, r.Numbers)
	return known && Fits(&f, nil) && 0 <= at && at <= latestSince
}

// Packing is up to which sizes Redis packs collections: hash-max-listpack-entries and so on.
type Packing struct {
	HashEntries, HashValue int64 // fields, and bytes of the longest field or value
	ZSetEntries, ZSetValue int64 // members, and bytes of the longest
}

// DefaultPacking is that of Redis.
var DefaultPacking = Packing{HashEntries: 512, HashValue: 64, ZSetEntries: 128, ZSetValue: 64}
