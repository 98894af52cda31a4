package waitqueue

import (
	"container/list"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/executor"
	"rlserver/resp/wire"
)

// Waiter is a call that waits. The goroutine of its connection sleeps in wire.Guard.Pause until the
// call has a reply.
type Waiter struct {
	wake     func() // ends the sleep of its connection
	owner    *Queues
	prepared command.Prepared // with copies of the words
	at       *atomic.Pointer[Waiter]
	keys     []engine.Key   // all, in the order of the words; nil for a pop without a target
	deadline time.Duration  // elapsed; Never: no timeout
	arrival  int64          // increases with each waiter
	popper   command.Popper // nil for a limiter's call

	// steps has its length before the waiter is in a queue, as others read steps[0], also while
	// Join sets further ones. Each entry is under the lock of its key. A limiter has one step.
	steps  [][]entry
	joined int // steps so far; only the goroutine of the connection uses it

	size         int // see Size
	timeoutIndex int // index in the timeouts of its first queue, or -1

	mu       sync.Mutex // guards the fields below; no lock is taken under it
	state    State
	refusal  engine.Error    // the reply if the call was refused
	position engine.Position // the journal position before which the reply must not be sent
	call     command.Call    // runs the handler; not the connection's, as other goroutines run it
}

// entry is the position of a waiter in one queue. It is not moved.
type entry struct {
	waiter  *Waiter
	queue   *queue
	element *list.Element // nil: the waiter has left the queue
}

// State is the state of a waiter, and how it ended.
type State uint8

const (
	pending State = iota // no reply yet
	// the reply is written; the call that caused it has no journal position yet
	decided
	answered  // the reply may be sent
	TimedOut  // by CLIENT UNBLOCK id TIMEOUT: as if its timeout had ended
	Cancelled // by CLIENT UNBLOCK id ERROR
	refused   // by Refuse
	left      // its client has disconnected
)

const (
	errUnblocked = engine.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK")
	// ErrMoved ends the waiting when leadership ends.
	ErrMoved = engine.Error(
		"TRYAGAIN another node begins to lead this slot, and the call has changed nothing: send it again")
)

// MaxInStep is how many queues a waiter joins or leaves under one hold of their locks: more would
// delay the calls of others. A limiter has fewer keys.
const MaxInStep = 256

// Enqueue makes a call wait whose handler has returned command.ErrWait. The caller holds the locks
// of its keys; when it has released them, it calls Join. wake is called when the call has a reply;
// it must not block or take a lock of this package. The waiter is stored in at before it is
// counted: a client that sees the count can end the waiting.
func (qs *Queues) Enqueue(c *command.Call, p command.Prepared, wake func(), at *atomic.Pointer[Waiter]) *Waiter {
	w := &Waiter{
		owner: qs, wake: wake, prepared: p, at: at,
		deadline: c.Request.Deadline, popper: c.Request.Pop, timeoutIndex: -1,
	}
	w.call = command.Call{
		Env: c.Env, Client: c.Client, Account: c.Account, DB: c.DB, Request: c.Request, Attempt: command.NextAttempt,
		Reply: wire.Reply{RESP3: c.Reply.RESP3}, Wanted: c.Wanted,
	}
	if len(c.Keys) <= MaxInStep {
		qs.join(c.Tx, w, w.begin())
	}
	return w
}

// Join makes a pop wait that has so many keys that Enqueue has not. It joins their queues in steps:
// a key whose queue it has joined may wake it already, and one that has got a member since the call
// ran is popped from now. The caller holds no locks, and tx has not begun. The words of the call
// are still those that Enqueue was given.
func (w *Waiter) Join(tx *engine.Tx) {
	if w.joined > 0 {
		return
	}
	for keys := range slices.Chunk(w.begin(), MaxInStep) {
		if w.joined > 0 && !w.isPending() {
			break
		}
		w.joinStep(tx, keys)
	}
}

func (w *Waiter) joinStep(tx *engine.Tx, keys []engine.Key) {
	tx.Begin(w.owner.clock.Now(), w.call.DB, keys, true)
	defer w.endStep(tx)
	w.owner.join(tx, w, keys)
	for _, e := range w.steps[w.joined-1] {
		if e.queue.process(tx, nil) != nil {
			e.queue.setTimer()
		}
	}
}

func (w *Waiter) endStep(tx *engine.Tx) {
	seen := tx.End()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.position = max(w.position, seen)
}

// begin copies the words of the call, counts the waiter, and returns its keys once each, in the
// order of their hashes: keys of one step have few locks.
func (w *Waiter) begin() (keys []engine.Key) {
	w.prepared.Words = command.CloneWords(w.prepared.Words)
	hasher := command.Hasher{Engine: w.owner.engine}
	hasher.Add(&w.prepared)
	keys = hasher.Keys
	if targets := w.call.Request.Targets; w.popper == nil || targets > 0 {
		w.keys, keys = keys, slices.Clone(keys[:len(keys)-targets])
	}
	slices.SortFunc(keys, engine.Key.Compare)
	keys = slices.CompactFunc(keys, engine.Key.Is)
	w.steps = make([][]entry, (len(keys)+MaxInStep-1)/MaxInStep)
	w.size = waiterSize + len(keys)*keySize
	for _, word := range w.prepared.Words {
		w.size += wire.WordSize + 2*len(word)
	}
	w.at.Store(w)
	w.owner.Waiting.Add(1)
	if w.deadline != command.Never {
		w.owner.Timed.Add(1)
	}
	w.arrival = w.owner.arrivals.Add(1)
	return keys
}

// Dequeue ends the waiting: it removes the call from the queues that it is still in, and writes the
// reply if the call was unblocked. The caller holds no locks, and tx has not begun.
func (w *Waiter) Dequeue(tx *engine.Tx) {
	if w.end() != answered || len(w.steps[0]) > 1 {
		for i := range w.joined {
			w.leaveStep(tx, i)
		}
	}
	w.owner.Waiting.Add(-1)
	if w.deadline != command.Never {
		w.owner.Timed.Add(-1)
	}
}

// end ends the waiting of a call that still waits: from now on nothing is popped for it. It returns
// the state.
func (w *Waiter) end() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == pending {
		w.state = left
	}
	return w.state
}

// leaveStep leaves the queues of one step, under the locks of their keys. In the last step it
// writes the reply, if the call has none. While a script holds a key for long, the reply does not
// wait for it, and the queues are left when the script ends.
func (w *Waiter) leaveStep(tx *engine.Tx, i int) {
	keys := make([]engine.Key, len(w.steps[i]))
	for j := range keys { // the rest of an entry changes under the locks
		keys[j] = w.steps[i][j].queue.key
	}
	how, held := command.LastAttempt, false
	if tx.BeginUnlessHeld(w.owner.clock.Now(), w.call.DB, keys, false, true) {
		defer w.endStep(tx)
		how = w.lastAttempt()
		w.leave(tx, i, nil)
	} else {
		held = true
		w.owner.engine.Later(w.owner.clock.Now(), w.call.DB, keys, true, func(tx *engine.Tx) { w.leave(tx, i, nil) })
	}
	if i < w.joined-1 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.state {
	case TimedOut:
		switch w.call.Command = w.prepared.Command; {
		case held && w.popper == nil:
			w.call.Refuse(command.ErrBusy)
		case w.popper == nil && w.owner.paused() > 0: // it may not change anything
			w.call.ReplyError(string(errUnblocked))
		default:
			w.run(tx, how)
		}
	case Cancelled:
		w.call.ReplyError(string(errUnblocked))
	case refused:
		w.call.ReplyError(string(w.refusal))
	}
}

// UntilLate returns how long the call may still wait until its timeout should have ended it; Never:
// it has none.
func (w *Waiter) UntilLate() time.Duration {
	if w.deadline >= command.Never-late {
		return command.Never
	}
	return w.deadline + late - w.owner.clock.Elapsed()
}

// late is how long after its timeout a call should have ended, unless a script holds its key.
const late = time.Second

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
	how := w.current()
	return how == refused || how == Cancelled
}

const (
	waiterSize = 1 << 10 // the memory of a waiter without its words and keys, in bytes
	keySize    = 700     // and of each of its keys: an entry in a queue, which it may be alone in
)

// Size returns the memory that the call takes while it waits, in bytes: its copy, and the queues of
// its keys.
func (w *Waiter) Size() int { return w.size }

func (w *Waiter) current() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// Waits reports whether the call still waits for its reply, or for the reply's journal position.
func (w *Waiter) Waits() bool { o := w.current(); return o == pending || o == decided }

// Pops reports whether the call pops elements, rather than to be admitted by a limiter.
func (w *Waiter) Pops() bool { return w.popper != nil }

// isPending reports whether the call has no reply yet, and was not unblocked.
func (w *Waiter) isPending() bool { return w.current() == pending }

// Unblock ends the waiting, as TimedOut or Cancelled. It reports false if the call no longer waits.
func (w *Waiter) Unblock(how State) bool { return w.endAs(how, "") }

// Refuse ends the waiting with an error as the reply. It reports false if the call no longer waits.
func (w *Waiter) Refuse(err engine.Error) bool { return w.endAs(refused, err) }

func (w *Waiter) endAs(how State, refusal engine.Error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != pending {
		return false
	}
	w.state, w.refusal = how, refusal
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
	if w.state != pending {
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

type popResult uint8

const (
	popDone      popResult = iota // the call no longer waits
	popNothing                    // the key has no elements
	popElsewhere                  // the key is of another type
	popNeedsLock                  // the call has a target, which is locked
)

// tryPop pops from a key, under its lock. A key of another type has no elements, as in Redis.
func (w *Waiter) tryPop(tx *engine.Tx, k engine.Key) popResult {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != pending {
		return popDone
	}
	if w.call.GivenUp() {
		w.state, w.refusal = refused, ErrMoved
		w.wake()
		return popDone
	}
	keys := append([]engine.Key{k}, w.keys[len(w.keys)-w.call.Request.Targets:]...)
	found, err := w.popper.Pop(tx, keys, &w.call.Reply)
	executor.NameChanges(tx, &w.prepared, false)
	switch {
	case errors.Is(err, command.ErrTargetLocked):
		return popNeedsLock
	case !found && err != nil:
		return popElsewhere
	case !found:
		return popNothing
	case err != nil:
		w.call.ReplyError(err.Error())
	default:
		w.call.Changed = true
	}
	w.setDecided(tx)
	return popDone
}

// setDecided marks the reply as written. When the call that tx belongs to has its journal position,
// the connection is woken to send the reply. w.mu is held.
func (w *Waiter) setDecided(tx *engine.Tx) {
	w.state = decided
	tx.Afterwards(func(p engine.Position) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.state, w.position = answered, p
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
	if c.GivenUp() {
		c.Command = w.prepared.Command
		c.Refuse(ErrMoved)
		return true
	}
	c.Tx, c.Attempt = tx, how
	defer func() { c.Tx = nil }()
	return !w.owner.executor.Retry(c, &w.prepared, w.keys)
}

// isFirst reports whether the waiter is the first limiter in all its queues. The locks of all its
// keys are held.
func (w *Waiter) isFirst() bool {
	return !slices.ContainsFunc(w.steps[0], func(e entry) bool { return e.queue.limiters.Front() != e.element })
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
	for _, e := range w.steps[0] {
		e.queue.retryAt = w.call.Request.RetryAt
		if e.queue != processing {
			e.queue.setTimer()
		}
	}
}

// leave removes the waiter from the queues of one step, under the locks of their keys. The timers
// of the queues retry the waiters behind it, except in processing, which retries them itself.
// processing may be nil.
func (w *Waiter) leave(tx *engine.Tx, step int, processing *queue) {
	for i := range w.steps[step] {
		e := &w.steps[step][i]
		if e.element == nil {
			continue
		}
		e.queue.remove(tx, e)
		if e.queue != processing {
			e.queue.setTimer()
		}
	}
}
