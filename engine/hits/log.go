// Package hits has the log of sliding windows and leases: a sorted set whose scores are times.
package hits

import (
	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/zset"
)

// Log is a sorted set, or a missing one, as the log of sliding windows. It caches the last result
// of After, which is needed again to drop lapsed hits. The zero value is a missing one.
type Log struct {
	Set   *zset.Set // nil: missing
	asked float64
	after int
	known bool
}

// In returns the log in an object; nil: it is missing.
func In(o object.Object) Log {
	if z, ok := o.(*object.ZSet); ok {
		return Log{Set: &z.Set}
	}
	return Log{}
}

// Admitted returns when a call with an id was admitted; ok is false if its first hit is not in the
// log.
func (l *Log) Admitted(id []byte) (at float64, ok bool) {
	if !effect.IsHitName(id) {
		return l.Set.Score(id)
	}
	var buf [64]byte
	return l.Set.Score(effect.AppendHitName(buf[:0], id, 1))
}

// Len implements limit.Log.
func (l *Log) Len() int {
	if l.Set == nil {
		return 0
	}
	return l.Set.Len()
}

// At implements limit.Log.
func (l *Log) At(i int) float64 { return l.Set.ScoreAt(i) }

// After implements limit.Log.
func (l *Log) After(t float64) int {
	if l.Set == nil {
		return 0
	}
	if !l.known || l.asked != t {
		l.asked, l.after, l.known = t, l.Set.FirstAfter(t), true
	}
	return l.after
}

// Rank returns the rank of the lease with an id, -1 if it is missing.
func (l *Log) Rank(id []byte) int {
	if l.Set == nil {
		return -1
	}
	rank, _, ok := l.Set.Rank(id)
	if !ok {
		return -1
	}
	return rank
}
