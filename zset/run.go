package zset

import "slices"

const (
	// A run has at most maxMembers, and more than one only if they have at most maxBytes together.
	// Larger runs would make searching a little faster; but an insert moves half a run on average,
	// and a log has unused space in a run at either end.
	maxMembers = 128
	maxBytes   = 8 << 10
	// // Neighbors merge if together they fit half a run.
	sparseMembers = maxMembers / 2
	sparseBytes   = maxBytes / 2
)

// owner identifies the set to which a run or chapter belongs. Clones share them until one of the
// two changes them; a set that is not the owner copies first.
type owner struct{ _ byte }

// run is a packed sequence of consecutive elements. Elements before head were removed from the
// front and still take memory: removing the first elements moves head, appending writes after the
// last, and reserve moves the rest down if necessary. Offsets fit in 16 bits, because a large
// member is alone in its run.
type run struct {
	low    float64  // the first score and
	high   float64  // the last: most comparisons read no other
	head   int      // index of the first element in starts and scores
	starts []uint16 // offset in bytes of each member
	bytes  []byte   // the members, end to end
	owner  *owner
	scores []float64 // nil while all members name their scores
}

func (r *run) len() int { return len(r.starts) - r.head }

// size returns the length of all members together, in bytes.
func (r *run) size() int { return len(r.bytes) - r.offset(r.head) }

// text returns the length of the members [lo,hi) together, in bytes.
func (r *run) text(lo, hi int) int { return r.offset(r.head+hi) - r.offset(r.head+lo) }

// offset returns the offset in bytes of the j-th of starts; for len(starts) the end.
func (r *run) offset(j int) int {
	if j == len(r.starts) {
		return len(r.bytes)
	}
	return int(r.starts[j])
}

// member returns the i-th member. It is capped so that an append to it
// does not write into the next.
func (r *run) member(i int) []byte {
	lo, hi := r.offset(r.head+i), r.offset(r.head+i+1)
	return r.bytes[lo:hi:hi]
}

func (r *run) score(i int) float64 {
	switch i {
	case 0:
		return r.low
	case r.len() - 1:
		return r.high
	}
	return r.readScore(i)
}

func (r *run) readScore(i int) float64 {
	if r.scores == nil {
		n, _ := named(r.member(i))
		return float64(n)
	}
	return r.scores[r.head+i]
}

// fits reports whether a member of so many bytes fits in the run. It first tries a check that
// includes the removed elements at the front: it mostly succeeds, and reads no starts, which may
// not be in a cache.
func (r *run) fits(bytes int) bool {
	return r.len() == 0 || r.len() < maxMembers && (len(r.bytes)+bytes <= maxBytes || r.size()+bytes <= maxBytes)
}

// insert inserts a member, which fits, at i.
func (r *run) insert(i int, member []byte, score float64) {
	if r.scores == nil && !selfScored(member, score) {
		r.storeScores()
	}
	r.reserve(1, len(member))
	j := r.head + i
	at := r.offset(j)
	r.starts = slices.Insert(r.starts, j, uint16(at))
	for k := j + 1; k < len(r.starts); k++ {
		r.starts[k] += uint16(len(member))
	}
	r.bytes = slices.Insert(r.bytes, at, member...)
	if r.scores != nil {
		r.scores = slices.Insert(r.scores, j, score)
	}
	if i == 0 {
		r.low = score
	}
	if i == r.len()-1 {
		r.high = score
	}
}

// cut removes the members [lo,hi), but not all of the run.
func (r *run) cut(lo, hi int) {
	if lo == 0 {
		r.head += hi
		r.low = r.readScore(0)
	} else {
		j, k := r.head+lo, r.head+hi
		from, to := r.offset(j), r.offset(k)
		r.starts = slices.Delete(r.starts, j, k)
		for i := j; i < len(r.starts); i++ {
			r.starts[i] -= uint16(to - from)
		}
		r.bytes = slices.Delete(r.bytes, from, to)
		if r.scores != nil {
			r.scores = slices.Delete(r.scores, j, k)
		}
		r.high = r.readScore(r.len() - 1)
	}
	const few, little = 16, 512 // not worth a smaller array
	if cap(r.starts) > few && r.len() < cap(r.starts)/4 || cap(r.bytes) > little && r.size() < cap(r.bytes)/4 {
		r.move(r.len(), r.size())
	}
}

// storeScores adds an array of scores to the run, before a member is added that does not name its
// score.
func (r *run) storeScores() {
	r.scores = make([]float64, len(r.starts), cap(r.starts))
	for j := r.head; j < len(r.starts); j++ {
		n, _ := named(r.member(j - r.head))
		r.scores[j] = float64(n)
	}
}

// reserve makes space for so many more members and bytes: it moves the elements down if that frees
// enough, otherwise to larger arrays.
func (r *run) reserve(members, bytes int) {
	if len(r.starts)+members <= cap(r.starts) && len(r.bytes)+bytes <= cap(r.bytes) {
		return
	}
	members, bytes = members+r.len(), bytes+r.size()
	if r.head > len(r.starts)/8 && members <= cap(r.starts) && bytes <= cap(r.bytes) {
		r.slide(r.starts, r.scores, r.bytes)
		return
	}
	r.move(members, bytes)
}

// reserveLike makes space for as many members and bytes as another run has.
func (r *run) reserveLike(full *run) {
	r.starts = make([]uint16, 0, full.len())
	r.bytes = slices.Grow([]byte(nil), full.size())
}

// move copies the run into arrays for so many members and bytes, and up to
// half as many more.
func (r *run) move(members, bytes int) {
	starts := withCapacity[uint16](members, maxMembers)
	var scores []float64
	if r.scores != nil {
		scores = make([]float64, 0, cap(starts))
	}
	r.slide(starts, scores, withCapacity[byte](bytes, maxBytes))
}

// withCapacity returns an empty slice with capacity for n, and half as many more but at most half
// of most, rounded up to a size class of the allocator.
func withCapacity[T any](n, most int) []T { return slices.Grow([]T(nil), n+min(n, most)/2) }

// slide moves the run to the beginning of the given arrays, which may be its own.
func (r *run) slide(starts []uint16, scores []float64, bytes []byte) {
	dead := r.offset(r.head)
	r.bytes = append(bytes[:0], r.bytes[dead:]...)
	if r.scores != nil {
		r.scores = append(scores[:0], r.scores[r.head:]...)
	}
	r.starts = append(starts[:0], r.starts[r.head:]...)
	for j := range r.starts {
		r.starts[j] -= uint16(dead)
	}
	r.head = 0
}

// split splits the run before k and returns the second part.
func (r *run) split(k int) run {
	right := run{owner: r.owner, starts: r.starts, scores: r.scores, bytes: r.bytes, head: r.head + k, high: r.high}
	right.low = right.readScore(0)
	right.move(right.len(), right.size())
	r.cut(k, r.len())
	return right
}

// middle returns where to split: the last place with at most half of the bytes before it, but
// inside the run.
func (r *run) middle() int {
	half := r.offset(r.head) + r.size()/2
	k, _ := slices.BinarySearchFunc(
		r.starts[r.head:],
		half,
		func(start uint16, half int) int { return int(start) - half },
	)
	return max(1, min(k, r.len()-1))
}

// absorb appends the members of the next run.
func (r *run) absorb(next *run) {
	if r.scores == nil && next.scores != nil {
		r.storeScores()
	}
	r.reserve(next.len(), next.size())
	base, dead := len(r.bytes), next.offset(next.head)
	for i := range next.len() {
		if r.scores != nil {
			r.scores = append(r.scores, next.score(i))
		}
		r.starts = append(r.starts, uint16(base+next.offset(next.head+i)-dead))
	}
	r.bytes = append(r.bytes, next.bytes[dead:]...)
	r.high = next.high
}

// joins reports whether the run and the next are sparse enough to merge.
func (r *run) joins(next *run) bool {
	return r.len()+next.len() <= sparseMembers && r.size()+next.size() <= sparseBytes
}

// disown copies the run's arrays, so that o owns the run.
func (r *run) disown(o *owner) {
	r.move(r.len(), r.size())
	r.owner = o
}
