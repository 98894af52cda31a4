package zset

import (
	"iter"
	"math"

	"rlserver/internal/dict"
)

// Member is a member and its score. The bytes belong to the caller.
type Member struct {
	Member []byte
	Score  float64
}

// Members are members with their scores, in some order. The zero value is empty.
type Members struct {
	set     *Set
	lo, hi  int // the ranks [lo,hi)
	reverse bool
	ranks   []int // if not nil: these ranks
	fresh   bool  // all members of a set that is not shared

	prepared bool   // Prepare has been called
	packed   []byte // as encoded by Set.Pack, if requested
}

// MaxWritten is how many hits one call writes out as text at most, other than in replies, which
// have limits of their own: a log can have more hits than would fit in memory as text.
const MaxWritten = 2 << 20

// maxText is how many bytes of names of hits one call writes out at most.
const maxText = 256 << 20

// Writable reports whether the members have at most MaxWritten hits, with names of less than 256
// MiB together, or exist as text already.
func (m Members) Writable() bool {
	if m.fresh || m.set == nil || m.set.writable() {
		return true
	}
	return m.Len() <= MaxWritten && m.Len()*(m.set.log.Text()/m.set.log.Len()+1) <= maxText
}

func (s *Set) writable() bool {
	return s == nil || s.log == nil || s.log.Len() <= MaxWritten && s.log.Text() <= maxText
}

// Weight estimates how many bytes a set of the members takes.
func (m Members) Weight() int64 {
	if m.set == nil || m.set.Len() == 0 {
		return 0
	}
	return int64(m.Len()) * int64(memberWeight+m.set.text()/m.set.Len())
}

// Len returns the number of members.
func (m Members) Len() int {
	if m.ranks != nil {
		return len(m.ranks)
	}
	return m.hi - m.lo
}

// All yields the members and their scores.
func (m Members) All() iter.Seq2[[]byte, float64] {
	return func(yield func([]byte, float64) bool) {
		switch {
		case m.ranks != nil:
			for _, rank := range m.ranks {
				if !yield(m.set.At(rank)) {
					return
				}
			}
		case m.lo == m.hi:
		case m.reverse:
			m.set.Descend(m.lo, m.hi)(yield)
		default:
			m.set.Ascend(m.lo, m.hi)(yield)
		}
	}
}

// Keep returns members that stay valid when the set changes, see View.Keep.
func (m Members) Keep() Members {
	if m.set != nil && !m.fresh {
		m.set = m.set.Clone()
	}
	return m
}

// Prepare collects the members in a new set, and encodes it with Set.Pack if pack is true. Prepared
// members are returned as they are.
func (m Members) Prepare(h *dict.Hasher, pack bool) Members {
	if m.prepared || m.Len() == 0 {
		return m
	}
	if !m.fresh || hasNegativeZero(m.set) {
		m = Whole(Collect(h, m.All(), m.Len()))
	}
	if pack {
		m.packed = m.set.Pack(nil)
	}
	m.prepared = true
	return m
}

// Prepared returns the results of Prepare: the set and, if pack was true, its encoding.
func (m Members) Prepared() (set *Set, packed []byte) { return m.set, m.packed }

// hasNegativeZero reports whether a set has a score of -0, which equals 0 but is printed
// differently.
func hasNegativeZero(set *Set) bool {
	lo, hi := set.ScoreSpan(ScoreRange{})
	for _, score := range set.Ascend(lo, hi) {
		if math.Signbit(score) {
			return true
		}
	}
	return false
}

// Whole returns the members of a set, which the Members own from then on.
func Whole(set *Set) Members { return Members{set: set, hi: set.Len(), fresh: true} }

// Operands returns the sets of views with their weights, one for each; nil: all are 1.
func Operands(sets []View, weights []float64) []Weighted {
	operands := make([]Weighted, len(sets))
	for i, z := range sets {
		operands[i] = Weighted{Set: z.operand(), Weight: 1}
		if weights != nil {
			operands[i].Weight = weights[i]
		}
	}
	return operands
}

// Sets returns the sets of views; nil for a missing key.
func Sets(sets []View) []*Set {
	operands := make([]*Set, len(sets))
	for i, z := range sets {
		operands[i] = z.operand()
	}
	return operands
}
