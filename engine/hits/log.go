// Package hits has the log of sliding windows and leases: a sorted set whose scores are times.
package hits

import (
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
	of    object.Object // what has been loaded
}

// Load makes it the log in an object, until the object or few changes; nil: it is missing.
func (l *Log) Load(o object.Object, few *zset.Borrowed) {
	l.Set, l.known, l.of = nil, false, o
	switch o := o.(type) {
	case *object.ZSet:
		l.Set = &o.Set
	case *object.Log:
		l.Set = o.Load(nil, few)
	}
}

// Drop drops the log, which keeps nothing alive then.
func (l *Log) Drop() {
	if l.of != nil {
		*l = Log{}
	}
}

// Reload is Load, unless it is the log in the object already, which has not changed since.
func (l *Log) Reload(o object.Object, few *zset.Borrowed) {
	if l.of != o || o == nil {
		l.Load(o, few)
	}
}

// Admitted returns when a call with an id was admitted; ok is false if its first hit is not in the
// log.
func (l *Log) Admitted(id []byte) (at float64, ok bool) {
	return l.Set.CallScore(id)
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
