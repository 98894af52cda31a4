package effect

import (
	"rlserver/zset"
)

// Sequence numbers the hits of a shard within a millisecond. The time of a shard never decreases
// and numbers are not reused, so the name `<ms>-<seq>` is unique.
type Sequence struct {
	at   int64
	free uint64
}

// Next returns the first of n consecutive numbers. It skips numbers whose names are in the set
// already: clients can add any member by ZADD. When the calls of a millisecond have used up the
// numbers of the shard, it returns such as the set does not have. ok is false if there are not as
// many in a row.
func (q *Sequence) Next(set *zset.Set, now int64, n uint64) (first uint64, ok bool) {
	if q.at > now { // a snapshot has hits that a client has written for the future
		*q = Sequence{at: now}
	}
	if now == q.at {
		first = q.free
	}
	if first = free(set, now, first, n); first > zset.MaxSeq-n {
		first = free(set, now, 0, n)
	}
	return first, first <= zset.MaxSeq-n
}

func free(set *zset.Set, now int64, from, n uint64) (first uint64) {
	if set == nil || from > zset.MaxSeq-n {
		return from
	}
	return set.Free(now, from, n)
}

// Use records that the numbers below free were used at a time. Effects that add hits or move a log
// to this shard call it, so that replay restores the sequence.
func (q *Sequence) Use(at int64, free uint64) {
	switch {
	case at > q.at:
		q.at, q.free = at, free
	case at == q.at:
		q.free = max(q.free, free)
	}
}

// Continue goes on after another sequence.
func (q *Sequence) Continue(other *Sequence) { q.Use(other.at, other.free) }
