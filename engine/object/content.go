package object

import (
	"iter"
	"math"

	"rlserver/engine/ban"
	"rlserver/engine/effect"
	"rlserver/engine/reserve"
	"rlserver/engine/rule"
	"rlserver/internal/rdb"
	"rlserver/zset"
)

// Content is the value of a key, for DUMP. Append appends it in the format of package rdb: before
// the key changes and the Tx ends or, if it is Lasting, at any time, in one goroutine.
type Content struct {
	Append  func(b []byte) []byte
	Lasting bool
	Many    bool // too many hits to be written out: Append must not be called
}

// numbersContent sets the content of a State.
func numbersContent(c *Content, t Type, n [4]int64) {
	c.Append, c.Lasting = func(b []byte) []byte { return rdb.AppendLimiter(b, rdb.Kind(t), n) }, true
}

// Restored is the value that RESTORE stores under a key.
type Restored struct {
	Type Type
	Text []byte // of a string
	// of a list; of a set: all different; of a hash: alternating fields, all different, and values
	Elements [][]byte
	Members  []zset.Member // of a sorted set: all different
	Numbers  [4]int64      // of a limiter without a log, as Content has them

	// of a limiter, which may be a sorted set without members then
	Reservations []reserve.Reservation
	Terms        []byte // as effect.Terms has them
	Ban          []byte // as effect.Ban has it; nil: none

	Weight   int64 // bytes in memory, roughly
	ExpireAt int64 // Unix ms; 0: never
	Idle     int64 // seconds since its last use; negative: unknown
	// the logarithmic access counter of the LFU policies; negative: unknown
	Uses int64
}

// Extension returns the effects that restore reservations and bans under a key.
func (r *Restored) Extension(k effect.Key) iter.Seq[effect.Effect] {
	return func(yield func(effect.Effect) bool) {
		f := effect.Effect{Kind: effect.Reserve, Key: k, Hi: int(FormNamed(r.Type)), ExpireAt: r.ExpireAt}
		for _, one := range r.Reservations {
			f.Field, f.Hold = one.Call, effect.Hold{Amount: one.Amount, Until: one.Until}
			yield(f)
		}
		if r.Ban != nil {
			yield(effect.Effect{Kind: effect.Ban, Key: k, Hi: f.Hi, ExpireAt: r.ExpireAt, Value: r.Ban})
		}
		if len(r.Reservations) > 0 && len(r.Terms) > 0 {
			yield(effect.Effect{Kind: effect.Terms, Key: k, Value: r.Terms})
		}
	}
}

// Valid reports whether a key can hold the value.
func (r *Restored) Valid() bool {
	if (len(r.Reservations) > 0 || r.Ban != nil) && !r.validExtension() {
		return false
	}
	switch r.Type {
	case TypeString:
		return true
	case TypeHash:
		return len(r.Elements) > 0
	case TypeZSet:
		return len(r.Members)+len(r.Reservations) > 0 || r.Ban != nil
	}
	if inserted[r.Type] != nil {
		return len(r.Elements) > 0
	}
	f := effect.Effect{}
	at, known := PutNumbers(&f, r.Type, r.Numbers)
	return known && Fits(&f, nil) && 0 <= at && at <= latestSince
}

// validExtension reports whether reservations and bans are those of a limiter. The sum of the
// reservations is an int64.
func (r *Restored) validExtension() bool {
	if r.Ban != nil && (!(*ban.State)(nil).Fits(0, r.Ban) || (*ban.State)(nil).Apply(0, r.Ban) == nil) {
		return false
	}
	if len(r.Terms) > 0 {
		if _, err := rule.ParseRules(r.Terms); err != nil {
			return false
		}
	}
	sum := int64(0)
	for _, one := range r.Reservations {
		if !isCount(one.Amount) || one.Amount > math.MaxInt64-sum {
			return false
		}
		sum += one.Amount
	}
	return r.Type == TypeZSet || FormNamed(r.Type) != 0
}

// Packing has the sizes up to which Redis encodes collections as listpacks:
// hash-max-listpack-entries and so on.
type Packing struct {
	HashEntries, HashValue int64 // fields, and bytes of the longest field or value
	ZSetEntries, ZSetValue int64 // members, and bytes of the longest
	SetInts                int64 // members of a set of integers
}

// DefaultPacking has the defaults of Redis.
var DefaultPacking = Packing{HashEntries: 512, HashValue: 64, ZSetEntries: 128, ZSetValue: 64, SetInts: 512}
