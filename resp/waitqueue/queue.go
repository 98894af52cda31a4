package waitqueue

import (
	"bytes"
	"container/heap"
	"container/list"
	"rlserver/clock"
	"rlserver/engine"
	"rlserver/resp/command"
	"sync"
	"sync/atomic"
	"time"
)

// Room is where calls wait: a line for each key that any of them waits for.
type Room struct {
	engine      *engine.Engine
	clock       *clock.Clock
	unavailable func(has, lacks command.Flags) error // why a call is not tried again now

	tickets atomic.Int64
	Waiting atomic.Int64 // calls
	Timed   atomic.Int64 // calls that do not wait for ever

	mu    sync.Mutex // of lines alone: what is in a line is under the lock of its key
	Lines map[lineKey]*line
}

func (r *Room) Init(e *engine.Engine, c *clock.Clock, unavailable func(has, lacks command.Flags) error) {
	r.engine, r.clock, r.unavailable, r.Lines = e, c, unavailable, make(map[lineKey]*line)
}

type lineKey struct {
	db   int
	name string
}

// line is who waits for a key, in order of arrival. Limiters' calls and those that pop do not hold each other up: a pop is what
// may make room for a limiter.
//
// Nobody in it looks for himself. Whoever changes the key, and the timer when a time has come, goes through the line and answers those
// whose turn it is, under the lock of the key: so the order is the line's, however the system schedules goroutines, and a change
// that admits nobody wakes nobody.
type line struct {
	room    *Room
	db      int
	key     engine.Key
	watch   engine.Watch
	callers list.List // of limiters: *waiter
	poppers list.List // likewise
	due     deadlines // of those for whom this is the first of their lines

	moment int64 // Unix ms before which the first caller cannot be admitted unless a key of its changes; 0: it has to be tried
	timer  *time.Timer
	set    alarm // what the timer is set to
}

// alarm is when somebody's turn comes: at a moment of the server's time, which follows the system clock, or when a timeout
// ends, which is measured by the monotonic clock.
type alarm struct {
	moment   int64         // Unix ms
	deadline time.Duration // elapsed
}

var noAlarm = alarm{command.Never, command.Never}

// Empty tells, under the locks of the keys, whether no limiter's call waits for any of them.
func (r *Room) Empty(db int, keys []engine.Key) bool {
	if r.Waiting.Load() == 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range keys {
		if l := r.Lines[lineKey{db, string(k.Name)}]; l != nil && l.callers.Len() > 0 {
			return false
		}
	}
	return true
}

// of gives the line of a key, a new one if there is none.
func (r *Room) of(tx *engine.Tx, db int, k engine.Key) *line {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.Lines[lineKey{db, string(k.Name)}]
	if l == nil {
		l = &line{room: r, db: db, key: k, set: noAlarm}
		l.key.Name = bytes.Clone(k.Name)
		l.watch.Then = l.changed
		tx.Watch(&l.watch, l.key)
		r.Lines[lineKey{db, string(k.Name)}] = l
	}
	return l
}

// join puts a waiter at the end of the line of each of its keys. If nobody is before it, its request says when it can be admitted.
func (r *Room) join(tx *engine.Tx, w *Waiter) {
	r.Waiting.Add(1)
	w.ticket = r.tickets.Add(1)
	for _, k := range w.keys {
		l := r.of(tx, w.Own.Db, k)
		if w.standsIn(l) {
			continue
		}
		if w.pop != nil {
			w.places = append(w.places, place{l, l.poppers.PushBack(w)})
			continue
		}
		w.places = append(w.places, place{l, l.callers.PushBack(w)})
		if l.callers.Len() == 1 {
			l.moment = w.Own.Request.Moment
		}
	}
	if w.deadline != command.Never {
		r.Timed.Add(1)
		heap.Push(&w.places[0].line.due, w)
	}
	for _, p := range w.places {
		p.line.arm()
	}
}

// changed is called at the end of a call that has changed the key.
func (l *line) changed(tx *engine.Tx) {
	l.moment = 0
	if l.serve(tx, nil) != nil {
		l.arm()
	}
}

// ring is the timer's.
func (l *line) ring() {
	tx := l.room.engine.NewTx()
	var all *Waiter
	for {
		keys := []engine.Key{l.key}
		if all != nil {
			keys = all.keys
		}
		tx.Begin(l.room.clock.Now(), l.db, keys, true)
		l.set = noAlarm
		next := l.serve(tx, all)
		tx.End()
		if next == nil {
			return
		}
		all = next
	}
}

// serve answers whose turn it is: the first callers, as long as they are admitted, and those who have waited for as long as they wanted.
// A call on several keys needs the locks of all: unless it is the one for which they are held, it is returned, for ring to take them.
func (l *line) serve(tx *engine.Tx, held *Waiter) (needs *Waiter) {
	l.servePoppers(tx)
	for {
		w, last := l.turn(tx.Now(), l.room.clock.Elapsed())
		if w == nil {
			l.arm()
			return nil
		}
		switch {
		case !w.stands() || w.pop != nil:
			w.attempt(tx, last)
			l.remove(tx, w)
		case len(w.places) > 1 && w != held:
			return w
		case !last && !w.first():
			l.moment = command.Never // who makes it the first of its other lines looks after it there
		case w.attempt(tx, last):
			w.leave(tx, l)
		default:
			w.expect(l)
		}
	}
}

// turn is who may be answered now, if anybody, and whether it is the last time that it is tried.
func (l *line) turn(now int64, elapsed time.Duration) (w *Waiter, last bool) {
	switch first := l.callers.Front(); {
	case first != nil && l.moment <= now:
		return first.Value.(*Waiter), false
	case len(l.due) > 0 && l.due[0].deadline <= elapsed:
		return l.due[0], true
	}
	return nil, false
}

// servePoppers gives what the key holds to those who wait for it.
func (l *line) servePoppers(tx *engine.Tx) {
	for e := l.poppers.Front(); e != nil; {
		w := e.Value.(*Waiter)
		e = e.Next()
		if w.stands() && !w.take(tx, l.key) {
			return
		}
		l.remove(tx, w)
	}
}

// remove takes a waiter out of this line.
func (l *line) remove(tx *engine.Tx, w *Waiter) {
	for i := range w.places {
		p := &w.places[i]
		if p.line != l || p.element == nil {
			continue
		}
		if w.pop != nil {
			l.poppers.Remove(p.element)
		} else {
			if l.callers.Front() == p.element {
				l.moment = 0
			}
			l.callers.Remove(p.element)
		}
		p.element = nil
		if i == 0 && w.index >= 0 {
			heap.Remove(&l.due, w.index)
		}
		if l.callers.Len() == 0 && l.poppers.Len() == 0 {
			l.close(tx)
		}
	}
}

// close ends a line that nobody stands in.
func (l *line) close(tx *engine.Tx) {
	tx.Unwatch(&l.watch)
	l.arm()
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	delete(l.room.Lines, lineKey{l.db, string(l.key.Name)})
}

// next is when somebody's turn comes.
func (l *line) next() alarm {
	at := noAlarm
	if l.callers.Len() > 0 {
		at.moment = l.moment
	}
	if len(l.due) > 0 {
		at.deadline = l.due[0].deadline
	}
	return at
}

// arm sets the timer.
func (l *line) arm() {
	at := l.next()
	if at == l.set {
		return
	}
	l.set = at
	switch {
	case at == noAlarm:
		l.timer.Stop()
	case l.timer == nil:
		l.timer = time.AfterFunc(l.until(at), l.ring)
	default:
		l.timer.Reset(l.until(at))
	}
}

// farthest is the longest that a timer is set for: ring looks and sets it again.
const farthest = 1 << 40 * time.Millisecond

// until is how long it is until an alarm.
func (l *line) until(at alarm) time.Duration {
	clock := l.room.clock
	return max(0, min(clock.Until(at.moment), at.deadline-clock.Elapsed(), farthest))
}

// Stir has the first caller of each line tried again, as what it is held against is not only in its keys: a policy has changed, or
// the server's time has jumped. The caller holds no locks.
func (r *Room) Stir() {
	r.mu.Lock()
	lines := make([]*line, 0, len(r.Lines))
	for _, l := range r.Lines {
		lines = append(lines, l)
	}
	r.mu.Unlock()
	tx := r.engine.NewTx()
	for _, l := range lines {
		tx.Begin(r.clock.Now(), l.db, []engine.Key{l.key}, true)
		l.changed(tx)
		tx.End()
	}
}

// deadlines is a heap: those who have waited long enough, in the order in which they have, or came.
type deadlines []*Waiter

func (d deadlines) Len() int { return len(d) }
func (d deadlines) Less(i, j int) bool {
	if d[i].deadline != d[j].deadline {
		return d[i].deadline < d[j].deadline
	}
	return d[i].ticket < d[j].ticket
}
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}
func (d *deadlines) Push(w any) {
	w.(*Waiter).index = len(*d)
	*d = append(*d, w.(*Waiter))
}
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	w := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	w.index = -1
	return w
}
