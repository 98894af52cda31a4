package effect

import (
	"rlserver/zset"
)

// Sequence numbers the hits of a shard's keys within a millisecond, so that the name `<ms>-<seq>`
// of a hit is never that of another hit of its key. The hits of each key are numbered from 0 on,
// and so take fewer bytes. But once a key has lost hits, or has those of another key, nobody knows
// which of its names are new: from then on a millisecond goes on with numbers that no key has had.
// The time of a shard never decreases. Names that clients write, by ZADD, RESTORE or a command that
// stores a set, are skipped only as long as they are there.
type Sequence struct {
	at   int64
	free uint64 // no call has given a hit this number, or a greater one
	from uint64 // the least number that keys may use
}

// Next returns the first of n consecutive numbers for hits of a set, nil if there is none. It skips
// numbers whose names are in the set already: clients can add any member by ZADD. When the calls of
// a millisecond have used up the numbers, it returns such as the set does not have. ok is false if
// there are not as many in a row.
func (q *Sequence) Next(set *zset.Set, now int64, n uint64) (first uint64, ok bool) {
	if q.at > now { // a snapshot has hits that a client has written for the future
		*q = Sequence{at: now}
	}
	if now == q.at {
		if first = q.from; set != nil { // a client can write greater numbers
			first = max(first, min(set.NumberAfter(now), q.free))
		}
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

// Use records that the numbers below free were used at a time. Effects that add hits call it, so
// that replay restores the sequence.
func (q *Sequence) Use(at int64, free uint64) {
	switch {
	case at > q.at:
		*q = Sequence{at: at, free: free}
	case at == q.at:
		q.free = max(q.free, free)
	}
}

// SkipUsed has keys use no number again of those that were used in the millisecond so far. It is
// called when a key may have lost hits.
func (q *Sequence) SkipUsed() { q.from = q.free }

// Continue goes on after another sequence, whose hits keys of this one have from now on.
func (q *Sequence) Continue(other *Sequence) {
	q.Use(other.at, other.free)
	q.SkipUsed()
}
