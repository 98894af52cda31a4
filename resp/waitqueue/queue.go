package waitqueue

import (
	"bytes"
	"container/heap"
	"container/list"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/engine"
	"rlserver/internal/clock"
	"rlserver/resp/command"
	"rlserver/resp/executor"
)

// Queues holds the calls that wait: a queue for each key that any of them waits for.
type Queues struct {
	engine   *engine.Engine
	clock    *clock.Clock
	executor *executor.Executor
	paused   func() time.Duration // for how long calls may not change anything

	arrivals atomic.Int64 // waiters so far
	Waiting  atomic.Int64 // calls that wait
	Timed    atomic.Int64 // of these, calls with a timeout

	mu     sync.Mutex // guards the map; the lock of its key guards each queue
	queues map[queueKey]*queue
}

// Init sets the dependencies of the queues. paused returns for how long CLIENT PAUSE forbids
// changes; 0: they are allowed. When a pause ends early, RetryAll is called.
func (qs *Queues) Init(e *engine.Engine, c *clock.Clock, x *executor.Executor, paused func() time.Duration) {
	qs.engine, qs.clock, qs.executor, qs.paused = e, c, x, paused
	qs.queues = make(map[queueKey]*queue)
}

// Len returns the number of keys that have a queue.
func (qs *Queues) Len() int {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return len(qs.queues)
}

type queueKey struct {
	db   int
	name string
}

// queue holds the calls that wait for a key, in order of arrival. Limiters and pops do not delay
// each other: a pop may free what a limiter waits for. The queue is processed when the key changes
// and when its timer fires, see the package comment.
type queue struct {
	owner    *Queues
	db       int
	key      engine.Key
	watch    engine.Watch
	limiters list.List // *entry
	pops     list.List // *entry
	popsDue  bool      // the pops wait for the lock of a target
	timeouts timeouts  // of the waiters for which this is the queue of their first key

	// retryAt is the time, Unix ms, before which the first limiter cannot be admitted unless one of
	// its keys changes. 0: it has to be retried.
	retryAt int64

	timer    *time.Timer
	timerSet wakeTime // the time that the timer is set to
}

// wakeTime is when a queue has to be processed next: at a server time, which follows the system
// clock, or at the end of a timeout, which is measured by the monotonic clock.
type wakeTime struct {
	retryAt  int64         // Unix ms
	deadline time.Duration // elapsed
}

var noWakeTime = wakeTime{command.Never, command.Never}

// Empty reports whether no limiter's call waits for any of the keys. The caller holds their locks.
func (qs *Queues) Empty(db int, keys []engine.Key) bool {
	if qs.Waiting.Load() == 0 {
		return true
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, k := range keys {
		if q := qs.queues[queueKey{db, string(k.Name)}]; q != nil && q.limiters.Len() > 0 {
			return false
		}
	}
	return true
}

// of returns the queue of a key, and creates it if it is missing. The caller holds the key's lock.
func (qs *Queues) of(tx *engine.Tx, db int, k engine.Key) *queue {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.queues[queueKey{db, string(k.Name)}]
	if q == nil {
		q = &queue{owner: qs, db: db, key: k, timerSet: noWakeTime}
		q.key.Name = bytes.Clone(k.Name)
		q.watch.Then = q.keyChanged
		tx.Watch(&q.watch, q.key)
		qs.queues[queueKey{db, string(k.Name)}] = q
	}
	return q
}

// join appends a waiter to the queues of some of its keys, which differ and whose locks the caller
// holds. If it is the first limiter there, its request says when it can be admitted.
func (qs *Queues) join(tx *engine.Tx, w *Waiter, keys []engine.Key) {
	step := make([]entry, len(keys))
	w.steps[w.joined] = step
	w.joined++
	for i, k := range keys {
		e, q := &step[i], qs.of(tx, w.call.DB, k)
		e.waiter, e.queue = w, q
		if w.popper != nil {
			e.element = q.pops.PushBack(e)
			continue
		}
		e.element = q.limiters.PushBack(e)
		if q.limiters.Len() == 1 {
			q.retryAt = w.call.Request.RetryAt
		}
	}
	if w.joined == 1 && w.deadline != command.Never {
		heap.Push(&step[0].queue.timeouts, w)
	}
	for i := range step {
		step[i].queue.setTimer()
	}
}

// keyChanged processes the queue at the end of a call that has changed its key. It is the queue's
// Watch.Then: it runs inside Tx.End of that call, which is another client's, under the locks of
// that call. If a waiter needs more locks, the timer fires at once and takes them.
func (q *queue) keyChanged(tx *engine.Tx) {
	q.retryAt = 0
	if q.process(tx, nil) != nil {
		q.setTimer()
	}
}

// timerFired processes the queue when its timer fires. It runs a call on several keys with the
// locks of all of them.
func (q *queue) timerFired() {
	tx := q.owner.engine.NewTx()
	var locked *Waiter // the waiter whose keys are all locked
	for {
		keys := []engine.Key{q.key}
		if locked != nil {
			keys = locked.keys
		}
		tx.Begin(q.owner.clock.Now(), q.db, keys, true)
		q.timerSet = noWakeTime
		next := q.process(tx, locked)
		tx.End()
		if next == nil {
			return
		}
		locked = next
	}
}

// process runs the calls whose turn it is: the pops, the first limiters as long as they are
// admitted, and the calls whose timeout has ended. A limiter's call on several keys needs the locks
// of all its keys, which are only held for the waiter locked, and a pop may need that of a target.
// For another one process stops and returns it; timerFired then calls process again with the locks.
// While changes are paused it sets the timer to the end of the pause.
func (q *queue) process(tx *engine.Tx, locked *Waiter) (needs *Waiter) {
	if pause := q.owner.paused(); pause > 0 {
		q.setTimerTo(wakeTime{command.Never, q.owner.clock.Elapsed() + pause})
		return nil
	}
	if needs = q.processPops(tx); needs != nil {
		return needs
	}
	for {
		e, timedOut := q.next(tx.Now(), q.owner.clock.Elapsed())
		if e == nil {
			q.setTimer()
			return nil
		}
		w := e.waiter
		switch {
		case !w.isPending() || w.popper != nil:
			w.attempt(tx, timedOut)
			q.remove(tx, e)
		case len(w.steps[0]) > 1 && w != locked:
			return w
		case !timedOut && !w.isFirst():
			q.retryAt = command.Never // the queue where it is behind another retries it
		case w.attempt(tx, timedOut):
			w.leave(tx, 0, q)
		default:
			w.scheduleRetry(q)
		}
	}
}

// next returns the entry of the waiter to run now, or nil, and whether its timeout has ended: it is
// then not retried.
func (q *queue) next(now int64, elapsed time.Duration) (e *entry, timedOut bool) {
	switch first := q.limiters.Front(); {
	case first != nil && q.retryAt <= now:
		return first.Value.(*entry), false
	case len(q.timeouts) > 0 && q.timeouts[0].deadline <= elapsed:
		return &q.timeouts[0].steps[0][0], true
	}
	return nil, false
}

// processPops pops elements for the waiting pops, as long as the key has any. Pops of another type
// than the key's keep waiting. It stops at a pop whose target is locked, and returns it.
func (q *queue) processPops(tx *engine.Tx) (needs *Waiter) {
	q.popsDue = false
	for next := q.pops.Front(); next != nil; {
		e := next.Value.(*entry)
		next = next.Next()
		switch e.waiter.tryPop(tx, q.key) {
		case popDone:
			q.remove(tx, e)
		case popNothing:
			return nil
		case popNeedsLock:
			q.popsDue = true
			return e.waiter
		}
	}
	return nil
}

// remove removes a waiter from this queue by its entry, and closes the queue if it is empty then.
func (q *queue) remove(tx *engine.Tx, e *entry) {
	w := e.waiter
	switch {
	case e.element == nil:
		return
	case w.popper != nil:
		q.pops.Remove(e.element)
	default:
		if q.limiters.Front() == e.element {
			q.retryAt = 0
		}
		q.limiters.Remove(e.element)
	}
	e.element = nil
	if e == &w.steps[0][0] && w.timeoutIndex >= 0 {
		heap.Remove(&q.timeouts, w.timeoutIndex)
	}
	if q.limiters.Len() == 0 && q.pops.Len() == 0 {
		q.close(tx)
	}
}

// close removes a queue that is empty.
func (q *queue) close(tx *engine.Tx) {
	tx.Unwatch(&q.watch)
	q.setTimer()
	q.owner.mu.Lock()
	defer q.owner.mu.Unlock()
	delete(q.owner.queues, queueKey{q.db, string(q.key.Name)})
}

// wakeTime returns when the queue has to be processed next.
func (q *queue) wakeTime() wakeTime {
	at := noWakeTime
	switch {
	case q.popsDue && q.pops.Len() > 0:
		at.retryAt = 0
	case q.limiters.Len() > 0:
		at.retryAt = q.retryAt
	}
	if len(q.timeouts) > 0 {
		at.deadline = q.timeouts[0].deadline
	}
	return at
}

// setTimer sets the timer to the next wake time, or stops it if there is none.
func (q *queue) setTimer() { q.setTimerTo(q.wakeTime()) }

func (q *queue) setTimerTo(at wakeTime) {
	if at == q.timerSet {
		return
	}
	q.timerSet = at
	switch {
	case at == noWakeTime:
		q.timer.Stop()
	case q.timer == nil:
		q.timer = time.AfterFunc(q.until(at), q.timerFired)
	default:
		q.timer.Reset(q.until(at))
	}
}

// maxTimer is the longest time that a timer is set to: timerFired sets it again if nothing is due.
const maxTimer = 1 << 40 * time.Millisecond

// until returns the time until a wake time, at least 0 and at most maxTimer.
func (q *queue) until(at wakeTime) time.Duration {
	clock := q.owner.clock
	return max(0, min(clock.Until(at.retryAt), at.deadline-clock.Elapsed(), maxTimer))
}

// RetryAll processes each queue after a change other than of its keys: of a policy, of the server's
// time, which has jumped, or at the end of a pause. The caller holds no locks.
func (qs *Queues) RetryAll() { qs.each(true, (*queue).keyChanged) }

// Fail ends all waiting calls with an error, as the state that they wait for is no longer here. The
// caller holds no locks.
func (qs *Queues) Fail() {
	qs.each(false, func(q *queue, _ *engine.Tx) {
		for _, waiting := range []*list.List{&q.limiters, &q.pops} {
			for e := waiting.Front(); e != nil; e = e.Next() {
				e.Value.(*entry).waiter.Refuse(ErrMoved)
			}
		}
	})
}

// each calls do for each queue, under the lock of its key. If a script holds the key for long, this
// happens when it ends, in the background. The caller holds no locks.
func (qs *Queues) each(writing bool, do func(*queue, *engine.Tx)) {
	qs.mu.Lock()
	queues := slices.Collect(maps.Values(qs.queues))
	qs.mu.Unlock()
	if held := qs.some(queues, writing, false, do); len(held) > 0 {
		go qs.some(held, writing, true, do)
	}
}

// some is each for some queues. With patient false it returns those whose keys a script holds for
// long.
func (qs *Queues) some(queues []*queue, writing, patient bool, do func(*queue, *engine.Tx)) (held []*queue) {
	tx := qs.engine.NewTx()
	for _, q := range queues {
		keys := []engine.Key{q.key}
		if patient {
			tx.Begin(qs.clock.Now(), q.db, keys, writing)
		} else if !tx.BeginUnlessHeld(qs.clock.Now(), q.db, keys, false, writing) {
			held = append(held, q)
			continue
		}
		do(q, tx)
		tx.End()
	}
	return held
}

// timeouts is a heap of waiters that have a timeout, by deadline and then by arrival.
type timeouts []*Waiter

func (d timeouts) Len() int { return len(d) }
func (d timeouts) Less(i, j int) bool {
	if d[i].deadline != d[j].deadline {
		return d[i].deadline < d[j].deadline
	}
	return d[i].arrival < d[j].arrival
}
func (d timeouts) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].timeoutIndex, d[j].timeoutIndex = i, j
}
func (d *timeouts) Push(w any) {
	w.(*Waiter).timeoutIndex = len(*d)
	*d = append(*d, w.(*Waiter))
}
func (d *timeouts) Pop() any {
	last := len(*d) - 1
	w := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	w.timeoutIndex = -1
	return w
}
