package waitqueue

import (
	"container/list"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

// Waiter is a call that waits. The goroutine of its connection sleeps in wire.Guard.Pause until the
// call has a reply.
type Waiter struct {
	wake     func() // ends the sleep of its connection
	owner    *Queues
	prepared command.Prepared // with copies of the words
	keys     []engine.Key     // all, in the order of the words
	deadline time.Duration    // elapsed; Never: no timeout
	arrival  int64            // increases with each waiter
	popper   command.Popper   // nil for a limiter's call

	entries      []entry // each under the lock of its key
	timeoutIndex int     // index in the timeouts of its first queue, or -1

	mu       sync.Mutex // guards the fields below; no lock is taken under it
	outcome  Outcome
	refusal  engine.Error    // the reply if the call was refused
	position engine.Position // the journal position before which the reply must not be sent
	call     command.Call    // runs the handler; not the connection's, as other goroutines run it
}

// entry is the position of a waiter in one queue.
type entry struct {
	queue   *queue
	element *list.Element // nil: the waiter has left the queue
}

// Outcome is the state of a waiter, and how it ended.
type Outcome uint8

const (
	pending Outcome = iota // no reply yet
	// the reply is written; the call that caused it has no journal position yet
	decided
	answered  // the reply may be sent
	TimedOut  // by CLIENT UNBLOCK id TIMEOUT: as if its timeout had ended
	Cancelled // by CLIENT UNBLOCK id ERROR
	refused   // by Refuse
)

const (
	errUnblocked = engine.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK")
	// ErrMoved ends the waiting when leadership ends.
	ErrMoved = engine.Error(
		"TRYAGAIN another node begins to lead this slot, and the call has changed nothing: send it again")
)

// Enqueue makes a call wait whose handler has returned command.ErrWait. The caller holds the locks
// of its keys. wake is called when the call has a reply; it must not block or take a lock of this
// package. The waiter is stored in at before it is counted: a client that sees the count can end
// the waiting.
func (qs *Queues) Enqueue(
	c *command.Call, p command.Prepared, wake func(), at *atomic.Pointer[Waiter],
) *Waiter {
	p.Words = command.CloneWords(p.Words)
	w := &Waiter{
		owner: qs, wake: wake, prepared: p,
		deadline: c.Request.Deadline, popper: c.Request.Pop, timeoutIndex: -1,
	}
	hasher := command.Hasher{Engine: qs.engine}
	hasher.Add(&w.prepared)
	w.keys = hasher.Keys
	w.call = command.Call{
		Env: c.Env, Client: c.Client, Account: c.Account, DB: c.DB, Request: c.Request, Attempt: command.NextAttempt,
		Reply: wire.Reply{RESP3: c.Reply.RESP3},
	}
	at.Store(w)
	qs.join(c.Tx, w)
	return w
}

// Dequeue ends the waiting: it removes the call from the queues that it is still in, and writes the
// reply if the call was unblocked. The caller holds no locks, and tx has not begun.
func (w *Waiter) Dequeue(tx *engine.Tx) {
	if len(w.entries) > 1 || w.currentOutcome() != answered {
		w.leaveAll(tx)
	}
	w.owner.Waiting.Add(-1)
	if w.deadline != command.Never {
		w.owner.Timed.Add(-1)
	}
}

// leaveAll leaves all queues, with the locks of all keys.
func (w *Waiter) leaveAll(tx *engine.Tx) {
	tx.Begin(w.owner.clock.Now(), w.call.DB, w.keys, true)
	defer func() { w.position = max(w.position, tx.End()) }()
	how := w.lastAttempt()
	w.leave(tx, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.outcome {
	case TimedOut:
		w.run(tx, how)
	case Cancelled:
		w.call.ReplyError(string(errUnblocked))
	case refused:
		w.call.ReplyError(string(w.refusal))
	}
}

// Answer returns the reply of a call that no longer waits, the number of errors in it, and the
// journal position before which it must not be sent. The reply belongs to the caller. Call it after
// Dequeue.
func (w *Waiter) Answer() (reply []byte, errors int64, position engine.Position) {
	return w.call.Reply.B, w.call.Errors, w.position
}

// Effect reports whether the call has changed keys, and whether it has no further effect when it is
// sent again. It is called after Dequeue.
func (w *Waiter) Effect() (changed, once bool) {
	return w.call.Changed, w.call.CountsOnce || w.prepared.CountsOnce()
}

// NotRun reports whether the call was refused or cancelled: its reply shows no keys, and depends on
// nothing. It is called after Dequeue.
func (w *Waiter) NotRun() bool {
	how := w.currentOutcome()
	return how == refused || how == Cancelled
}

// waiterSize is the memory of a waiter without its words and keys, in bytes.
const waiterSize = 1 << 10

// Size returns the memory that the call takes while it waits, in bytes: its copy, and the queues of
// its keys.
func (w *Waiter) Size() int {
	size := waiterSize + len(w.keys)*int(unsafe.Sizeof(engine.Key{})+unsafe.Sizeof(queue{})+unsafe.Sizeof(entry{}))
	for _, word := range w.prepared.Words {
		size += wire.WordSize + 2*len(word)
	}
	return size
}

func (w *Waiter) currentOutcome() Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outcome
}

// Waits reports whether the call still waits for its reply, or for the reply's journal position.
func (w *Waiter) Waits() bool { o := w.currentOutcome(); return o == pending || o == decided }

// isPending reports whether the call has no reply yet, and was not unblocked.
func (w *Waiter) isPending() bool { return w.currentOutcome() == pending }

// Unblock ends the waiting, as TimedOut or Cancelled. It reports false if the call no longer waits.
func (w *Waiter) Unblock(how Outcome) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outcome != pending {
		return false
	}
	w.outcome = how
	w.wake()
	return true
}

// Refuse ends the waiting with an error as the reply. It reports false if the call no longer waits.
func (w *Waiter) Refuse(err engine.Error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outcome != pending {
		return false
	}
	w.outcome, w.refusal = refused, err
	w.wake()
	return true
}

// Prepared returns the call that waits, with copies of its words.
func (w *Waiter) Prepared() *command.Prepared { return &w.prepared }

// attempt runs the call, under the locks of its keys, and reports whether it has a reply. If its
// timeout has ended, it has one in any case.
func (w *Waiter) attempt(tx *engine.Tx, timedOut bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outcome != pending {
		return true
	}
	how := command.NextAttempt
	if timedOut {
		how = w.lastAttempt()
	}
	if !w.run(tx, how) {
		return false
	}
	w.setDecided(tx)
	return true
}

// tryPop pops from a key, under its lock, and reports whether the key had a member. A key of
// another type has none, as in Redis.
func (w *Waiter) tryPop(tx *engine.Tx, k engine.Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outcome != pending {
		return true
	}
	found, err := w.popper.Pop(tx, []engine.Key{k}, &w.call.Reply)
	if err != nil || !found {
		return false
	}
	w.call.Changed = true
	w.setDecided(tx)
	return true
}

// setDecided marks the reply as written. When the call that tx belongs to has its journal position,
// the connection is woken to send the reply. w.mu is held.
func (w *Waiter) setDecided(tx *engine.Tx) {
	w.outcome = decided
	tx.Afterwards(func(p engine.Position) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.outcome, w.position = answered, p
		w.wake()
	})
}

// run runs the handler once more, and reports whether there is a reply. w.mu and the locks of the
// keys are held.
func (w *Waiter) run(tx *engine.Tx, how command.Attempt) (done bool) {
	c := &w.call
	if w.popper != nil {
		c.Reply.NullArray()
		return true
	}
	c.Tx, c.Attempt, c.Command = tx, how, w.prepared.Command
	defer func() {
		// a panic must not end the call of the other client, or the process
		if fault := recover(); fault != nil {
			c.Fault(fault, 0)
			done = true
		}
		c.Tx = nil
	}()
	if err := w.owner.unavailable(c.Command.Flags, ^c.Command.Flags); err != nil {
		c.Refuse(err)
		return true
	}
	return !c.Run(&w.prepared, w.keys)
}

// isFirst reports whether the waiter is the first limiter in all its queues. The locks of all its
// keys are held.
func (w *Waiter) isFirst() bool {
	return !slices.ContainsFunc(w.entries, func(e entry) bool { return e.queue.limiters.Front() != e.element })
}

// lastAttempt is how the call runs when its timeout has ended. The locks of all its keys are held.
func (w *Waiter) lastAttempt() command.Attempt {
	if w.popper == nil && w.isFirst() {
		return command.LastAttempt
	}
	return command.EndBehind
}

// scheduleRetry sets the time of the next attempt in all queues of the waiter, in which it is
// first. processing is the queue that sets its own timer after it has been processed.
func (w *Waiter) scheduleRetry(processing *queue) {
	for _, e := range w.entries {
		e.queue.retryAt = w.call.Request.RetryAt
		if e.queue != processing {
			e.queue.setTimer()
		}
	}
}

// isIn reports whether the waiter has an entry in a queue.
func (w *Waiter) isIn(q *queue) bool {
	return slices.ContainsFunc(w.entries, func(e entry) bool { return e.queue == q })
}

// leave removes the waiter from all its queues, under the locks of all its keys. The timers of the
// queues retry the waiters behind it, except in processing, which retries them itself. processing
// may be nil.
func (w *Waiter) leave(tx *engine.Tx, processing *queue) {
	for _, e := range w.entries {
		if e.element == nil {
			continue
		}
		e.queue.remove(tx, w)
		if e.queue != processing {
			e.queue.setTimer()
		}
	}
}
