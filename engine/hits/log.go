// Package hits has the log of sliding windows and leases: a sorted set whose scores are times.
package hits

import (
	"rlserver/engine/object"
	"rlserver/zset"
)

// Log is a sorted set, or a missing one, as the log of sliding windows. It caches the last result
// of After, which is needed again to drop lapsed hits. The zero value is a missing one.
type Log struct {
	set    *zset.Set   // nil: missing, or a record that is not loaded
	record *object.Log // nil: it is none
	few    *zset.Borrowed
	asked  float64
	after  int
	known  bool
	of     object.Object // what has been loaded
}

// Load makes it the log in an object, until the object or few changes; nil: it is missing.
func (l *Log) Load(o object.Object, few *zset.Borrowed) {
	l.set, l.record, l.few, l.known, l.of = nil, nil, few, false, o
	switch o := o.(type) {
	case *object.ZSet:
		l.set = &o.Set
	case *object.Log:
		l.record = o
	}
}

// Set returns the log as a set; nil: it is missing.
func (l *Log) Set() *zset.Set {
	if l.set == nil && l.record != nil {
		l.set = l.record.Load(nil, l.few)
	}
	return l.set
}

// NamesAt returns a set with all members `<at>-<seq>` of the log for a time that no hit is later
// than; nil: there are none.
func (l *Log) NamesAt(at int64) *zset.Set {
	if l.record != nil && l.record.Newest() < at {
		return nil
	}
	return l.Set()
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
	if set := l.Set(); set != nil {
		return set.CallScore(id)
	}
	return 0, false
}

// Len implements limit.Log.
func (l *Log) Len() int {
	switch {
	case l.record != nil:
		return l.record.Len()
	case l.set == nil:
		return 0
	}
	return l.set.Len()
}

// At implements limit.Log.
func (l *Log) At(i int) float64 {
	switch r := l.record; {
	case r != nil && i == 0:
		return float64(r.First())
	case r != nil && i == r.Len()-1:
		return float64(r.Newest())
	}
	return l.Set().ScoreAt(i)
}

// After implements limit.Log.
func (l *Log) After(t float64) int {
	switch r := l.record; {
	case r != nil && t >= float64(r.Newest()):
		return r.Len()
	case r != nil && t < float64(r.First()):
		return 0
	case r == nil && l.set == nil:
		return 0
	}
	if !l.known || l.asked != t {
		l.asked, l.after, l.known = t, l.Set().FirstAfter(t), true
	}
	return l.after
}

// Rank returns the rank of the lease with an id, -1 if it is missing.
func (l *Log) Rank(id []byte) int {
	set := l.Set()
	if set == nil {
		return -1
	}
	rank, _, ok := set.Rank(id)
	if !ok {
		return -1
	}
	return rank
}
