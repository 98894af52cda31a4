package effect

import "rlserver/zset"

// Sequence numbers the hits of a shard within a millisecond. The time of a shard never decreases
// and numbers are not reused, so the name `<ms>-<seq>` is unique.
type Sequence struct {
	at   int64
	free uint64
}

// Next returns the first of n consecutive numbers. It skips numbers whose names are in the set
// already: clients can add any member by ZADD.
func (q *Sequence) Next(set *zset.Set, now int64, n uint64) (first uint64) {
	if q.at > now { // a snapshot has hits that a client has written for the future
		*q = Sequence{at: now}
	}
	if now == q.at {
		first = q.free
	}
	if set != nil {
		first = set.Free(now, first, n)
	}
	return first
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
