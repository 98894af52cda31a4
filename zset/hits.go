package zset

import (
	"bytes"
	"iter"
	"math"
	"sort"
	"strconv"

	"rlserver/zset/hitlog"
)

// hit is a member `<at>-<seq>`, decimal numbers without leading zeros.
type hit struct {
	at  int64
	seq uint64
}

// MaxSeq is the greatest number of a hit within its millisecond.
const MaxSeq = hitlog.MaxSeq

// hitSize is about how long the member of a hit is.
const hitSize = 16

// hitOf returns the hit that a member names.
func hitOf(member []byte) (h hit, ok bool) {
	n, i := number(member)
	if i == 0 || n > maxName || i == len(member) || member[i] != '-' {
		return hit{}, false
	}
	seq, j := number(member[i+1:])
	return hit{int64(n), seq}, j > 0 && i+1+j == len(member) && seq <= hitlog.MaxSeq
}

// IsHit reports whether an element is a hit: AddHits adds the like.
func IsHit(member []byte, score float64) bool {
	h, ok := hitOf(member)
	return ok && h.scored(score)
}

// scored reports whether a score is that of the hit: 0 and -0 differ.
func (h hit) scored(score float64) bool {
	return math.Float64bits(float64(h.at)) == math.Float64bits(score)
}

// append appends the member.
func (h hit) append(dst []byte) []byte {
	dst = strconv.AppendInt(dst, h.at, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, h.seq, 10)
}

func (s *Set) has(h hit) bool { return s.log != nil && s.log.Has(h.at, h.seq) }

// hit returns the hit in the log that a member names.
func (s *Set) hit(member []byte) (h hitlog.Hit, ok bool) {
	if s.log == nil {
		return hitlog.Hit{}, false
	}
	if h, ok := hitOf(member); ok {
		return hitlog.Hit{At: h.at, Seq: h.seq}, s.has(h)
	}
	return s.log.Named(member)
}

// hits returns the log, for a change.
func (s *Set) hits() *hitlog.Log {
	if s.log == nil {
		s.log = new(hitlog.Log)
	}
	return s.log
}

// AddHits adds n members `<at>-<seq>` with consecutive numbers and the score at. It takes constant
// time, or that of a walk through the elements that are no hits, unless at is before 0 or after the
// year 140000, or such members are there with another score.
func (s *Set) AddHits(at int64, seq, n uint64) {
	if at >= 0 && at <= maxName && n <= hitlog.MaxSeq && seq <= hitlog.MaxSeq-n+1 && s.named(at, seq, seq+n) == 0 {
		s.hits().Add(at, seq, seq+n)
		return
	}
	var buf [48]byte
	for i := range n {
		s.Add(hit{at, seq + i}.append(buf[:0]), float64(at))
	}
}

// HitParts returns how many parts the hits of the set are in.
func (s *Set) HitParts() int {
	if s.log == nil {
		return 0
	}
	return s.log.Parts()
}

// VisitHits visits the hits of a part, below HitParts: n members for which AddHits could be called.
func (s *Set) VisitHits(part int, visit func(at int64, seq, n uint64)) {
	s.log.Visit(part, func(at int64, lo, hi uint64) { visit(at, lo, hi-lo) })
}

// Others returns the elements that are no hits, without the first lo of them. The set must not be
// changed while they are ranged over.
func (s *Set) Others(lo int) iter.Seq2[[]byte, float64] {
	return func(yield func([]byte, float64) bool) { s.rest.ascend(lo, yield) }
}

// Small reports whether the set takes little memory: at most so many elements that are no hits,
// with members of at most so many bytes together, and as many bytes of hits.
func (s *Set) Small(others, bytes int) bool {
	return (s.log == nil || s.log.Weight() <= bytes) &&
		(s.rest == nil || s.rest.len() <= others && s.rest.seq.text <= bytes)
}

// Free returns the first number, from lo on, so that n members `<at>-<seq>` with consecutive
// numbers are not in the set.
func (s *Set) Free(at int64, lo, n uint64) uint64 {
	for {
		next := s.named(at, lo, lo+n)
		if s.log != nil {
			next = max(next, s.log.EndIn(at, lo, lo+n))
		}
		if next == 0 {
			return lo
		}
		lo = next
	}
}

// NumberAfter returns the number after that of the last hit, if that is of a time; otherwise 0.
func (s *Set) NumberAfter(at int64) uint64 {
	if s.log == nil {
		return 0
	}
	return s.log.NumberAfter(at)
}

// named returns the number after the last of those in [lo,hi) that a member `<at>-<seq>` outside of
// the log has; 0: there is none.
func (s *Set) named(at int64, lo, hi uint64) (end uint64) {
	switch n := s.rest.len(); {
	case n == 0:
		return 0
	case hi-lo > uint64(n):
		s.rest.ascend(0, func(member []byte, _ float64) bool {
			if h, ok := hitOf(member); ok && h.at == at && lo <= h.seq && h.seq < hi {
				end = max(end, h.seq+1)
			}
			return true
		})
		return end
	}
	var buf [40]byte
	for ; hi > lo; hi-- {
		if _, _, taken := s.rest.lookup(hit{at, hi - 1}.append(buf[:0])); taken {
			return hi
		}
	}
	return 0
}

// timeBefore returns the last time, in whole ms, that is less than a score; -1 if there is none.
func timeBefore(score float64) int64 {
	return int64(math.Ceil(min(max(score, 0), 2*maxName))) - 1
}

// timeThrough returns the last time, in whole ms, that is not greater than a score; -1 if there is
// none.
func timeThrough(score float64) int64 {
	return int64(math.Floor(min(max(score, -1), 2*maxName)))
}

// hitsBefore returns how many hits are before a cut.
func (s *Set) hitsBefore(c *cut) int {
	if s.log == nil || s.log.Len() == 0 {
		return 0
	}
	switch c.side {
	case belowScore:
		return s.log.After(timeBefore(c.score))
	case throughScore:
		return s.log.After(timeThrough(c.score))
	case belowMember, throughMember:
		return sort.Search(s.log.Len(), func(i int) bool {
			var buf [40]byte
			return !c.afterMember(s.log.At(i).Append(buf[:0]))
		})
	}
	at := timeThrough(c.score)
	if at < 0 || float64(at) != c.score {
		return s.log.After(at)
	}
	if c.side == throughElement {
		return s.log.Before(at, append(bytes.Clone(c.member), 0))
	}
	return s.log.Before(at, c.member)
}

// place returns how many elements before a rank are no hits, and whether the element there is one.
func (s *Set) place(i int) (others int, isHit bool) {
	hits, n := 0, s.rest.len()
	if s.log != nil {
		hits = s.log.Len()
	}
	switch {
	case i < 0 || i >= hits+n:
		panic("zset: rank out of range")
	case hits == 0:
		return i, false
	case n == 0:
		return 0, true
	}
	others = s.othersBefore(i)
	return others, others == n || s.rankOfOther(others) != i
}

// othersBefore returns how many of the elements [0,i) are no hits.
func (s *Set) othersBefore(i int) int {
	n := s.rest.len()
	if n == 0 || s.log == nil {
		return min(i, n)
	}
	return sort.Search(n, func(j int) bool { return s.rankOfOther(j) >= i })
}

// rankOfOther returns the rank of the j-th element that is no hit.
func (s *Set) rankOfOther(j int) int {
	member, score := s.rest.at(j)
	return j + s.hitsBefore(&cut{belowElement, score, member})
}

// namer makes the members of hits. They stay valid.
type namer struct{ text []byte }

func (n *namer) member(h hitlog.Hit) []byte {
	const least, most = 64, 4096
	if size := 2 * (hitSize + 4 + len(h.ID)); cap(n.text)-len(n.text) < size {
		n.text = make([]byte, 0, max(size, min(max(least, 2*cap(n.text)), most)))
	}
	start := len(n.text)
	n.text = h.Append(n.text)
	return n.text[start:len(n.text):len(n.text)]
}

// ascend yields the elements of the ranks [lo,hi), which exist.
func (s *Set) ascend(lo, hi int, yield func([]byte, float64) bool) {
	var n namer
	byHit := func(h hitlog.Hit) bool { return yield(n.member(h), float64(h.At)) }
	others := s.othersBefore(lo)
	next, left := lo-others, hi-lo // the next hit
	stopped := false
	s.rest.ascend(others, func(member []byte, score float64) bool {
		if s.log != nil {
			k := min(left, s.hitsBefore(&cut{belowElement, score, member})-next)
			stopped = !s.log.Ascend(next, next+k, byHit)
			next, left = next+k, left-k
		}
		if stopped || left == 0 {
			return false
		}
		left--
		stopped = !yield(member, score)
		return !stopped && left > 0
	})
	if !stopped && left > 0 {
		s.log.Ascend(next, next+left, byHit)
	}
}

// descend yields the elements of the ranks [lo,hi), which exist, from the last to the first.
func (s *Set) descend(lo, hi int, yield func([]byte, float64) bool) {
	var n namer
	byHit := func(h hitlog.Hit) bool { return yield(n.member(h), float64(h.At)) }
	others := s.othersBefore(hi)
	end, left := hi-others, hi-lo // the hits before end are next
	stopped := false
	s.rest.descend(others, func(member []byte, score float64) bool {
		if s.log != nil {
			k := min(left, end-s.hitsBefore(&cut{belowElement, score, member}))
			stopped = !s.log.Descend(end-k, end, byHit)
			end, left = end-k, left-k
		}
		if stopped || left == 0 {
			return false
		}
		left--
		stopped = !yield(member, score)
		return !stopped && left > 0
	})
	if !stopped && left > 0 {
		s.log.Descend(end-left, end, byHit)
	}
}
