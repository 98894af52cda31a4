package effect

import (
	"encoding/binary"
	"iter"
	"strconv"

	"rlserver/engine/limit"
	"rlserver/zset"
)

// MaxHits is how many hits one effect records at most: the largest cost of a call.
const MaxHits = limit.MaxCount

// ManyHits is from how many hits of a millisecond on they are moved together, not one by one.
const ManyHits = 16

// Hits are N members of a limiter's log, named `<At>-<Seq>`, `<At>-<Seq+1>`, …, each with the score
// At, which is Unix ms.
type Hits struct {
	At  int64
	Seq uint64
	N   int64
}

// Record adds the hits to a log.
func (h Hits) Record(log *zset.Set) { log.AddHits(h.At, h.Seq, uint64(h.N)) }

// Record adds the hits of an AddHits or a Runs, or the member of an Add, to a log.
func (f *Effect) Record(log *zset.Set) {
	switch f.Kind {
	case Add:
		log.Add(f.Field, f.Score)
	case Runs:
		for h := range EachRun(f.Value) {
			h.Record(log)
		}
	default:
		f.Hits.Record(log)
	}
}

// Member appends the name of the i-th hit.
func (h Hits) Member(dst []byte, i uint64) []byte {
	dst = strconv.AppendInt(dst, h.At, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, h.Seq+i, 10)
}

// AppendRun appends hits to the Value of a Runs. last is the time of the run before, 0 if it is the
// first; runs are in the order of their times, none of which is before 1970. A run is the ms since
// the one before, doubled. If it is not the hit with the number 0 alone, 1 is added to that, and
// the first number and how many hits there are follow. All are unsigned varints.
func AppendRun(dst []byte, last int64, h Hits) []byte {
	since := uint64(h.At-last) << 1
	if h.Seq == 0 && h.N == 1 {
		return binary.AppendUvarint(dst, since)
	}
	dst = binary.AppendUvarint(dst, since|1)
	dst = binary.AppendUvarint(dst, h.Seq)
	return binary.AppendUvarint(dst, uint64(h.N))
}

// EachRun yields the hits in the Value of a Runs, up to the first run that is damaged.
func EachRun(value []byte) iter.Seq[Hits] {
	return func(yield func(Hits) bool) {
		for h, ok := (Hits{}), true; len(value) > 0; {
			if h, value, ok = readRun(value, h.At); !ok || !yield(h) {
				return
			}
		}
	}
}

// FitRuns reports whether a value is that of a Runs: undamaged, and of hits that a log can have.
func FitRuns(value []byte) bool {
	h, ok := Hits{}, len(value) > 0
	for ok && len(value) > 0 {
		h, value, ok = readRun(value, h.At)
	}
	return ok
}

// readRun reads a run after one at the time last.
func readRun(value []byte, last int64) (h Hits, rest []byte, ok bool) {
	r := Reader{Rest: value}
	since := r.uvarint()
	h = Hits{At: last + int64(since>>1), N: 1}
	if since&1 != 0 {
		h.Seq, h.N = r.uvarint(), int64(r.uvarint())
	}
	return h, r.Rest, r.Err == nil && 0 <= h.At && h.At <= zset.MaxTime && h.Fit()
}

// Numbers returns the sum of the numbers of the hits, doubled, modulo 2^64.
func (h Hits) Numbers() uint64 { return uint64(h.N) * (2*h.Seq + uint64(h.N) - 1) }

// Fit reports whether a log can have as many hits with these numbers.
func (h Hits) Fit() bool {
	return 0 < h.N && h.N <= MaxHits && h.Seq <= zset.MaxSeq-uint64(h.N)+1
}

// Split yields n hits at a time, with numbers from seq on, as few Hits as there can be.
func Split(at int64, seq, n uint64) iter.Seq[Hits] {
	return func(yield func(Hits) bool) {
		for n > 0 {
			h := Hits{At: at, Seq: seq, N: int64(min(n, MaxHits))}
			if !yield(h) {
				return
			}
			seq, n = seq+uint64(h.N), n-uint64(h.N)
		}
	}
}
