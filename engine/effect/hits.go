package effect

import (
	"iter"
	"strconv"

	"rlserver/engine/limit"
	"rlserver/zset"
)

// MaxHits is how many hits one effect records at most: the largest cost of a call.
const MaxHits = limit.MaxCount

// ManyHits is from how many hits of a millisecond on they are one effect, not a member each.
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

// Member appends the name of the i-th hit.
func (h Hits) Member(dst []byte, i uint64) []byte {
	dst = strconv.AppendInt(dst, h.At, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, h.Seq+i, 10)
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
