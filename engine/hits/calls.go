package hits

import (
	"slices"

	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/zset"
)

// Free returns ranges [lo,hi) of n numbers with which an id names no member of an object; fewer
// only if very many are taken.
func Free(o object.Object, id []byte, n int64) [][2]uint64 {
	if z, ok := o.(*object.ZSet); ok {
		return z.Set.FreeNumbers(id, uint64(n))
	}
	return [][2]uint64{{1, uint64(n) + 1}}
}

// GiveBack returns the effects that remove hits of the call with an id from a log, at most n: the
// first one last, which is how a repeated call is recognized. It returns how many hits they remove.
// A client may have written some of them by ZADD.
func GiveBack(log *zset.Set, k effect.Key, n int64, id []byte) (effects []effect.Effect, back int64) {
	at, ok := log.CallScore(id)
	if !ok {
		return nil, 0
	}
	for _, name := range log.NamedOthers(id, at, n) {
		effects = append(effects, effect.Effect{Kind: effect.Remove, Key: k, Field: name})
		back++
	}
	for _, r := range slices.Backward(log.CallNumbers(id, int64(at))) {
		if m := min(n-back, int64(r[1]-min(r[1], max(r[0], 2)))); m > 0 {
			h := effect.Hits{At: int64(at), Seq: r[1] - uint64(m), N: m}
			effects = append(effects, effect.Effect{Kind: effect.Uncall, Key: k, Field: id, Hits: h})
			back += m
		}
	}
	if back < n {
		first := zset.AppendCallName(nil, id, 1)
		effects = append(effects, effect.Effect{Kind: effect.Remove, Key: k, Field: first})
		back++
	}
	return effects, back
}
