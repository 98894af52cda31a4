package engine

import (
	"math"
	"strconv"
	"strings"

	"rlserver/engine/limit"
)

// MoveBack takes state whose time is ahead of the present back to it, all at once: what happened at
// the latest moment happened now, and what happened before that and after the present is moved by
// as much. It returns how many keys have changed. Both are in Unix ms.
//
// What was used stays used: buckets, windows and logs are afterwards as they were at the latest
// moment, and deadlines are as far away. Times up to the present are those of a clock that was
// still right, and stay; so do deadlines that are nearer to the present than to the latest moment.
// The state does not say which members of a sorted set are times. Those are taken for times that
// are named as a hit is, and, in a set with a deadline, the whole numbers after the present and not
// after the deadline.
//
// Names of hits are made anew: time goes on after the present, so these are not given again.
func (e *Engine) MoveBack(latest, present int64) (changed int) {
	tx := e.NewTx()
	tx.BeginAll(latest, 0, true)
	defer tx.unlock()
	m := mover{tx: tx, present: present, by: latest - present}
	for _, sh := range tx.locked {
		for db := range sh.dbs {
			changed += m.database(sh, db)
		}
		sh.now = present
	}
	return changed
}

// mover is a MoveBack on its way.
type mover struct {
	tx          *Tx
	present, by int64
}

func (m *mover) database(sh *shard, db int) (changed int) {
	if sh.dbs[db].keys == nil {
		return 0
	}
	var objects []object
	for o := range sh.dbs[db].keys.All() {
		objects = append(objects, o)
	}
	m.tx.db = db
	for _, o := range objects {
		before := m.tx.changed
		m.object(o)
		if m.tx.changed != before {
			changed++
		}
	}
	return changed
}

func (m *mover) object(o object) {
	h := o.head()
	k := m.tx.e.Key(bytesOf(h.name))
	switch o := o.(type) {
	case stateObject:
		f := &Effect{Key: k, ExpireAt: m.deadline(h.expireAt)}
		if o.moveBack(f, m.present, m.by) {
			m.tx.apply(o, f)
		}
		return
	case *zsetObject:
		m.members(k, o)
	}
	if at := m.deadline(h.expireAt); at != h.expireAt {
		m.tx.apply(o, &Effect{Kind: EffectExpire, Key: k, ExpireAt: at})
	}
}

// deadline moves a time that may rightly be in the future.
func (m *mover) deadline(at int64) int64 {
	if at == 0 || at == math.MaxInt64 || at-m.present < m.by/2 {
		return at
	}
	return at - m.by
}

// members moves the members of a sorted set that are times.
func (m *mover) members(k Key, o *zsetObject) {
	type member struct {
		name string
		at   int64
		hit  bool
	}
	var moved []member
	last := 0.0
	if n := o.set.Len(); n > 0 {
		_, last = o.set.At(n - 1)
	}
	leases := limit.Lapse(last) == o.expireAt // a log of hits lasts longer than the last of them
	for name, score := range o.set.Ascend(o.set.FirstAfter(float64(m.present)), o.set.Len()) {
		at := int64(score)
		_, hit := hitName(string(name), at)
		switch {
		case score > math.MaxInt64/2 || float64(at) != score:
		case hit, at <= o.expireAt && (!leases || m.deadline(at) != at):
			moved = append(moved, member{string(name), at, hit})
		}
	}
	for _, x := range moved {
		f := Effect{Kind: EffectAdd, Key: k, Field: []byte(x.name), Score: float64(x.at - m.by)}
		if x.hit {
			f.Field = freeHit(o, x.name, x.at, x.at-m.by)
		}
		m.tx.apply(o, &f)
		if x.hit {
			m.tx.apply(o, &Effect{Kind: EffectRemove, Key: k, Field: []byte(x.name)})
		}
	}
}

// hitName tells whether a name is that of a hit at a moment, and its number.
func hitName(name string, at int64) (seq uint64, ok bool) {
	prefix, number, found := strings.Cut(name, "-")
	if !found || prefix != strconv.FormatInt(at, 10) {
		return 0, false
	}
	seq, err := strconv.ParseUint(number, 10, 63)
	return seq, err == nil && strconv.FormatUint(seq, 10) == number
}

// freeHit is a name for a hit that has moved, which nobody has: with its number, or the next that
// is free.
func freeHit(o *zsetObject, name string, from, to int64) (free []byte) {
	seq, _ := hitName(name, from)
	for ; ; seq++ {
		free = Hits{At: to}.member(free[:0], seq)
		if _, taken := o.set.Score(free); !taken {
			return free
		}
	}
}
