package engine

import (
	"rlserver/zset"
)

// ZBy says what the two ends of a ZRange are.
type ZBy uint8

const (
	ZByRank ZBy = iota
	ZByScore
	ZByLex
)

// ZRange says which members of a sorted set are meant, and in which order. The zero value is the first one.
type ZRange struct {
	By          ZBy
	Start, Stop int64           // ZByRank: from the first of that order, 0, to the last, included; negative: counted from the end, -1 is the last
	Scores      zset.ScoreRange // ZByScore
	Lex         zset.LexRange   // ZByLex, which makes sense if all scores are equal
	Reverse     bool            // from the greatest to the least

	Limited       bool  // of what ZByScore or ZByLex find,
	Offset, Count int64 // only Count after the first Offset; negative Offset: none, negative Count: all
}

// ends gives the ranks of the range in a set, from lo up to but not hi, both 0 if there are none.
func (r *ZRange) ends(set *zset.Set) (lo, hi int) {
	switch r.By {
	case ZByScore:
		lo, hi = set.ScoreSpan(r.Scores)
	case ZByLex:
		lo, hi = set.LexSpan(r.Lex)
	default:
		return r.ranks(set.Len())
	}
	if r.Limited {
		lo, hi = r.limit(lo, hi)
	}
	return lo, max(lo, hi)
}

// ranks are the ends of a ZByRank range among n members.
func (r *ZRange) ranks(n int) (lo, hi int) {
	start, stop := r.Start, r.Stop
	if start < 0 {
		start = max(0, start+int64(n))
	}
	if stop < 0 {
		stop += int64(n)
	}
	stop = min(stop, int64(n)-1)
	if start > stop {
		return 0, 0
	}
	lo, hi = int(start), int(stop)+1
	if r.Reverse {
		lo, hi = n-hi, n-lo
	}
	return lo, hi
}

// limit cuts what the limit leaves out off the ends.
func (r *ZRange) limit(lo, hi int) (int, int) {
	n := int64(hi - lo)
	if r.Offset < 0 || r.Offset >= n {
		return 0, 0
	}
	skip, keep := int(r.Offset), int(n-r.Offset)
	if r.Count >= 0 && r.Count < int64(keep) {
		keep = int(r.Count)
	}
	if r.Reverse {
		return hi - skip - keep, hi - skip
	}
	return lo + skip, lo + skip + keep
}

// Count is how many members the range has.
func (z ZSet) Count(r *ZRange) int {
	if z.set == nil {
		return 0
	}
	lo, hi := r.ends(z.set)
	return hi - lo
}

// Range gives the members of a range. What stands before them is not walked.
func (z ZSet) Range(r *ZRange) ZMembers {
	if z.set == nil {
		return ZMembers{}
	}
	lo, hi := r.ends(z.set)
	return z.between(lo, hi, r.Reverse)
}

// between gives the members of the ranks from lo up to but not hi.
func (z ZSet) between(lo, hi int, reverse bool) ZMembers {
	return ZMembers{set: z.set, lo: lo, hi: hi, reverse: reverse}
}

// ZRemRange removes the members of a range and tells how many there were. A sorted set without members is no key.
func (tx *Tx) ZRemRange(k Key, r *ZRange) (removed int, err error) {
	o, z, err := tx.zset(k)
	if z.set == nil {
		return 0, err
	}
	lo, hi := r.ends(z.set)
	if lo < hi {
		tx.apply(o, &Effect{Kind: EffectRemoveSpan, Key: k, Lo: lo, Hi: hi})
	}
	return hi - lo, nil
}
