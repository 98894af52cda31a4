package effect

import (
	"strconv"

	"rlserver/engine/limit"
	"rlserver/zset"
)

// MaxHits is how many hits one effect records at most: the largest cost of a call.
const MaxHits = limit.MaxCount

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
