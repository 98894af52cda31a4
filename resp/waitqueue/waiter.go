package waitqueue

import (
	"container/list"
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/wire"
	"slices"
	"sync"
	"time"
	"unsafe"
)

// Waiter is a call that waits on the server: for a limiter to admit it, or for something to pop. Its connection's goroutine sleeps in
// guard.pause until whoever went through the line has answered the call.
type Waiter struct {
	wake     func() // ends the sleep of its connection
	room     *Room
	call     command.Prepared // its words copied
	keys     []engine.Key     // all, in the order of the words
	deadline time.Duration    // elapsed; never: it waits for ever
	ticket   int64            // in order of arrival
	pop      command.Popper   // nil for a limiter's call

	places []place // each under the lock of its key
	index  int     // in the first line's due, -1 if it is not there

	mu       sync.Mutex // of what is below; no lock is asked for under it
	outcome  ending
	Position engine.Position // what the answer acknowledges
	Own      command.Call    // runs the call again, by others: so not the owner's
}

// place is where a waiter stands in one line.
type place struct {
	line    *line
	element *list.Element // nil: no more
}

// ending is what has become of a waiter.
type ending uint8

const (
	pending   ending = iota
	decided          // the answer is written, and goes to the journal with the call that brought it about
	answered         // and may be sent
	GivenUp          // by CLIENT UNBLOCK id TIMEOUT: as if its time were over
	Cancelled        // by CLIENT UNBLOCK id ERROR
)

const errUnblocked = engine.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK")

// Enter lets a call wait whose handler has returned errHeld. Its locks are held. wake ends the sleep of its connection, and is called
// when the call has been answered.
func (r *Room) Enter(c *command.Call, p command.Prepared, wake func()) *Waiter {
	p.Words = CloneWords(p.Words)
	w := &Waiter{room: r, wake: wake, call: p, deadline: c.Request.Deadline, pop: c.Request.Pop, index: -1}
	own := command.Hasher{Engine: r.engine}
	own.Add(&w.call)
	w.keys = own.Keys
	w.Own = command.Call{Env: c.Env, Client: c.Client, Db: c.Db, Request: c.Request, Attempt: command.NextAttempt, Reply: wire.Reply{RESP3: c.Reply.RESP3}}
	r.join(c.Tx, w)
	return w
}

// End takes a call out of its lines if it is still there, and answers one that was unblocked. No lock is held. tx is idle.
func (w *Waiter) End(tx *engine.Tx) {
	if len(w.places) > 1 || w.current() != answered {
		w.quit(tx)
	}
	w.room.Waiting.Add(-1)
	if w.deadline != command.Never {
		w.room.Timed.Add(-1)
	}
}

func (w *Waiter) quit(tx *engine.Tx) {
	tx.Begin(w.room.clock.Now(), w.Own.Db, w.keys, true)
	defer func() { w.Position = max(w.Position, tx.End()) }()
	w.leave(tx, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.outcome {
	case GivenUp:
		w.try(tx, command.LastAttempt)
	case Cancelled:
		w.Own.Reply.Error(string(errUnblocked))
		w.Own.Errors++
	}
}

// waiterSize is what a waiting call takes beside its words and keys, in bytes.
const waiterSize = 1 << 10

// Size is what the call takes while it waits: its copy, and its places in the lines of its keys.
func (w *Waiter) Size() int {
	size := waiterSize + len(w.keys)*int(unsafe.Sizeof(engine.Key{})+unsafe.Sizeof(line{})+unsafe.Sizeof(place{}))
	for _, word := range w.call.Words {
		size += wire.WordSize + 2*len(word)
	}
	return size
}

// CloneWords copies the words of a call, which lie in a buffer that is to be used again.
func CloneWords(words [][]byte) [][]byte {
	size := 0
	for _, word := range words {
		size += len(word)
	}
	text, kept := make([]byte, 0, size), make([][]byte, len(words))
	for i, word := range words {
		text = append(text, word...)
		kept[i] = text[len(text)-len(word) : len(text) : len(text)]
	}
	return kept
}

func (w *Waiter) current() ending {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outcome
}

// Waits tells whether the answer may still come from others.
func (w *Waiter) Waits() bool { o := w.current(); return o == pending || o == decided }

// stands tells whether it may be answered by who goes through a line.
func (w *Waiter) stands() bool { return w.current() == pending }

// Unblock ends the waiting from outside, and tells whether there was any.
func (w *Waiter) Unblock(how ending) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outcome != pending {
		return false
	}
	w.outcome = how
	w.wake()
	return true
}

// attempt tries the call, under the locks of its keys, and tells whether it needs no further one.
func (w *Waiter) attempt(tx *engine.Tx, last bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outcome != pending {
		return true
	}
	how := command.NextAttempt
	if last {
		how = command.LastAttempt
	}
	if !w.try(tx, how) {
		return false
	}
	w.decide(tx)
	return true
}

// take pops from a key that has something for it, and tells whether the key had.
func (w *Waiter) take(tx *engine.Tx, k engine.Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outcome != pending {
		return true
	}
	found, err := w.pop.Pop(tx, []engine.Key{k}, &w.Own.Reply)
	if err != nil || !found { // what is of another type is nothing, as for Redis
		return false
	}
	w.decide(tx)
	return true
}

// decide lets the owner have the answer when it is known what has to be in the journal for it.
func (w *Waiter) decide(tx *engine.Tx) {
	w.outcome = decided
	tx.Afterwards(func(p engine.Position) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.outcome, w.Position = answered, p
		w.wake()
	})
}

// try runs the handler once more. It tells whether there is an answer.
func (w *Waiter) try(tx *engine.Tx, how command.Attempt) (done bool) {
	d := &w.Own
	if w.pop != nil {
		d.Reply.NullArray()
		return true
	}
	d.Tx, d.Attempt, d.Command = tx, how, w.call.Command
	defer func() {
		if fault := recover(); fault != nil { // here it would end a call of somebody else, or the process
			d.Fault(fault, 0)
			done = true
		}
		d.Tx = nil
	}()
	if err := w.room.unavailable(w.call.Command.Flags, ^w.call.Command.Flags); err != nil {
		d.Refuse(err)
		return true
	}
	return !d.Run(&w.call, w.keys)
}

// first tells, under the locks of all its keys, whether nobody is before it.
func (w *Waiter) first() bool {
	return !slices.ContainsFunc(w.places, func(p place) bool { return p.line.callers.Front() != p.element })
}

// expect notes in all its lines, of which it is the first, when it can be admitted: whoever goes through one then tries it before others.
func (w *Waiter) expect(through *line) {
	for _, p := range w.places {
		p.line.moment = w.Own.Request.Moment
		if p.line != through {
			p.line.arm()
		}
	}
}

func (w *Waiter) standsIn(l *line) bool {
	return slices.ContainsFunc(w.places, func(p place) bool { return p.line == l })
}

// leave takes it out of all its lines, under their locks. Those behind it are looked after by who goes through the line, and by the
// timers of the others.
func (w *Waiter) leave(tx *engine.Tx, through *line) {
	for _, p := range w.places {
		if p.element == nil {
			continue
		}
		p.line.remove(tx, w)
		if p.line != through {
			p.line.arm()
		}
	}
}
