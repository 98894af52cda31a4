package hits

import (
	"bytes"
	"sort"

	"rlserver/engine/effect"
	"rlserver/zset"
)

// Named returns the names of hits in a log that a call with an id has recorded, at most n: the
// first one last. It finds them by their names and by the score of the first, since a client may
// have written a name by ZADD. The others follow the first. Some may have been refunded as the
// newest hits, so their numbers can have gaps.
func Named(set *zset.Set, id []byte, n int64) (names [][]byte) {
	first := effect.AppendHitName(nil, id, 1)
	rank, at, ok := set.Rank(first)
	if !ok {
		return nil
	}
	prefix := append(bytes.Clone(id), ':')
	from, to := rank+1, set.FirstAfter(at)
	find := func(name []byte) int {
		return from + sort.Search(to-from, func(i int) bool {
			member, _ := set.At(from + i)
			return bytes.Compare(member, name) >= 0
		})
	}
	lo, hi := find(append(bytes.Clone(prefix), '0')), find(append(bytes.Clone(prefix), '9'+1))
	for i := hi - 1; i >= lo && int64(len(names)) < n; i-- {
		if member, _ := set.At(i); effect.AreDigits(member[len(prefix):]) {
			names = append(names, bytes.Clone(member))
		}
	}
	if int64(len(names)) < n {
		names = append(names, first)
	}
	return names
}
