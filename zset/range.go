package zset

// By is the kind of the two ends of a Range.
type By uint8

const (
	ByRank By = iota
	ByScore
	ByLex
)

// Range selects members of a sorted set, and their order. The zero value selects the first member.
type Range struct {
	By By
	// ByRank: the first and the last rank in this order, both included; negative: counted from the
	// end, -1 is the last
	Start, Stop int64
	Scores      ScoreRange // ByScore
	Lex         LexRange   // ByLex, defined if all scores are equal
	Reverse     bool       // from the greatest to the least

	Limited bool // ByScore and ByLex:
	// only Count members after the first Offset; negative Offset: none, negative Count: all
	Offset, Count int64
}

// ends returns the ranks [lo,hi) of the range in a set; both are 0 if the range is empty.
func (r *Range) ends(set *Set) (lo, hi int) {
	switch r.By {
	case ByScore:
		lo, hi = set.ScoreSpan(r.Scores)
	case ByLex:
		lo, hi = set.LexSpan(r.Lex)
	default:
		return r.ranks(set.Len())
	}
	if r.Limited {
		lo, hi = r.limit(lo, hi)
	}
	return lo, max(lo, hi)
}

// ranks returns the ends of a ByRank range among n members.
func (r *Range) ranks(n int) (lo, hi int) {
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

// limit applies Offset and Count to the ranks [lo,hi).
func (r *Range) limit(lo, hi int) (int, int) {
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
