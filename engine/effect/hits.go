package effect

import (
	"strconv"

	"rlserver/zset"
)

// MaxHits is how many hits one effect records at most: the largest cost of a call on a sliding
// window, whose log has a member per hit.
const MaxHits = 1_000_000

// Hits are N members of a limiter's log, named `<At>-<Seq>`, `<At>-<Seq+1>`, …, each with the score
// At, which is Unix ms.
type Hits struct {
	At  int64
	Seq uint64
	N   int64
}

// Record adds the hits to a log.
func (h Hits) Record(log *zset.Set) {
	if h.N >= manyHits && h.pack(log) {
		return
	}
	var buf [40]byte
	for i := range uint64(h.N) {
		log.Add(h.Member(buf[:0], i), float64(h.At))
	}
}

// pack adds the hits to a log whose members are all before them. It returns false for other logs.
func (h Hits) pack(log *zset.Set) bool {
	return log.Extend(float64(h.At), func(yield func([]byte) bool) {
		var buf [40]byte
		begin := append(strconv.AppendInt(buf[:0], h.At, 10), '-')
		inByteOrder(
			h.Seq,
			h.Seq+uint64(h.N),
			func(seq uint64) bool { return yield(strconv.AppendUint(begin, seq, 10)) },
		)
	})
}

// Member appends the name of the i-th hit.
func (h Hits) Member(dst []byte, i uint64) []byte {
	dst = strconv.AppendInt(dst, h.At, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, h.Seq+i, 10)
}

// manyHits is the number of hits from which Record packs them.
const manyHits = 1024

// inByteOrder visits the numbers in [lo, hi) in the order of their decimal texts, until visit
// returns false.
func inByteOrder(lo, hi uint64, visit func(uint64) bool) {
	if lo == 0 && !visit(0) {
		return
	}
	for digit := uint64(1); digit <= 9; digit++ {
		if !visitPrefix(digit, lo, hi, visit) {
			return
		}
	}
}

// visitPrefix is inByteOrder for the numbers that begin with the digits of prefix.
func visitPrefix(prefix, lo, hi uint64, visit func(uint64) bool) bool {
	if prefix >= hi {
		return true
	}
	// the range of such numbers with the same number of digits
	least, most := prefix, prefix
	for most < lo && least <= (hi-1)/10 {
		least, most = least*10, most*10+9
	}
	if most < lo {
		return true
	}
	if prefix >= lo && !visit(prefix) {
		return false
	}
	if prefix > (hi-1)/10 {
		return true
	}
	for digit := range uint64(10) {
		if !visitPrefix(prefix*10+digit, lo, hi, visit) {
			return false
		}
	}
	return true
}
