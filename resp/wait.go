package resp

import (
	"container/list"
	"slices"
	"sync"
	"time"
	"unsafe"

	"rlserver/engine"
)

// waiter is a call that waits on the server: for a limiter to admit it, or for something to pop. Its connection's goroutine sleeps in
// guard.pause until whoever went through the line has answered the call.
type waiter struct {
	wake     func() // ends the sleep of its connection
	room     *room
	call     prepared      // its words copied
	keys     []engine.Key  // all, in the order of the words
	deadline time.Duration // elapsed; never: it waits for ever
	ticket   int64         // in order of arrival
	pop      popper        // nil for a limiter's call

	places []place // each under the lock of its key
	index  int     // in the first line's due, -1 if it is not there

	mu       sync.Mutex // of what is below; no lock is asked for under it
	outcome  ending
	position engine.Position // what the answer acknowledges
	own      call            // runs the call again, by others: so not the owner's
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
	givenUp          // by CLIENT UNBLOCK id TIMEOUT: as if its time were over
	cancelled        // by CLIENT UNBLOCK id ERROR
)

const errUnblocked = engine.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK")

// enter lets a call wait whose handler has returned errHeld. Its locks are held. wake ends the sleep of its connection, and is called
// when the call has been answered.
func (r *room) enter(c *call, p prepared, wake func()) *waiter {
	p.words = cloneWords(p.words)
	w := &waiter{room: r, wake: wake, call: p, deadline: c.request.deadline, pop: c.request.pop, index: -1}
	own := hasher{engine: r.engine}
	own.add(&w.call)
	w.keys = own.keys
	w.own = call{env: c.env, client: c.client, db: c.db, request: c.request, attempt: nextAttempt, reply: reply{resp3: c.reply.resp3}}
	r.join(c.tx, w)
	return w
}

// end takes a call out of its lines if it is still there, and answers one that was unblocked. No lock is held. tx is idle.
func (w *waiter) end(tx *engine.Tx) {
	if len(w.places) > 1 || w.current() != answered {
		w.quit(tx)
	}
	w.room.waiting.Add(-1)
	if w.deadline != never {
		w.room.timed.Add(-1)
	}
}

func (w *waiter) quit(tx *engine.Tx) {
	tx.Begin(w.room.clock.Now(), w.own.db, w.keys, true)
	defer func() { w.position = max(w.position, tx.End()) }()
	w.leave(tx, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.outcome {
	case givenUp:
		w.try(tx, lastAttempt)
	case cancelled:
		w.own.reply.error(string(errUnblocked))
		w.own.errors++
	}
}

// waiterSize is what a waiting call takes beside its words and keys, in bytes.
const waiterSize = 1 << 10

// size is what the call takes while it waits: its copy, and its places in the lines of its keys.
func (w *waiter) size() int {
	size := waiterSize + len(w.keys)*int(unsafe.Sizeof(engine.Key{})+unsafe.Sizeof(line{})+unsafe.Sizeof(place{}))
	for _, word := range w.call.words {
		size += wordSize + 2*len(word)
	}
	return size
}

// cloneWords copies the words of a call, which lie in a buffer that is to be used again.
func cloneWords(words [][]byte) [][]byte {
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

func (w *waiter) current() ending {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outcome
}

// waits tells whether the answer may still come from others.
func (w *waiter) waits() bool { o := w.current(); return o == pending || o == decided }

// stands tells whether it may be answered by who goes through a line.
func (w *waiter) stands() bool { return w.current() == pending }

// unblock ends the waiting from outside, and tells whether there was any.
func (w *waiter) unblock(how ending) bool {
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
func (w *waiter) attempt(tx *engine.Tx, last bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outcome != pending {
		return true
	}
	how := nextAttempt
	if last {
		how = lastAttempt
	}
	if !w.try(tx, how) {
		return false
	}
	w.decide(tx)
	return true
}

// take pops from a key that has something for it, and tells whether the key had.
func (w *waiter) take(tx *engine.Tx, k engine.Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outcome != pending {
		return true
	}
	found, err := w.pop.pop(tx, []engine.Key{k}, &w.own.reply)
	if err != nil || !found { // what is of another type is nothing, as for Redis
		return false
	}
	w.decide(tx)
	return true
}

// decide lets the owner have the answer when it is known what has to be in the journal for it.
func (w *waiter) decide(tx *engine.Tx) {
	w.outcome = decided
	tx.Afterwards(func(p engine.Position) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.outcome, w.position = answered, p
		w.wake()
	})
}

// try runs the handler once more. It tells whether there is an answer.
func (w *waiter) try(tx *engine.Tx, how attempt) (done bool) {
	d := &w.own
	if w.pop != nil {
		d.reply.nullArray()
		return true
	}
	d.tx, d.attempt, d.command = tx, how, w.call.command
	defer func() {
		if fault := recover(); fault != nil { // here it would end a call of somebody else, or the process
			d.fault(fault, 0)
			tx.Rehearse, done = false, true
		}
		d.tx = nil
	}()
	if err := w.room.unavailable(w.call.command.flags, ^w.call.command.flags); err != nil {
		d.refuse(err)
		return true
	}
	return !d.run(&w.call, w.keys)
}

// first tells, under the locks of all its keys, whether nobody is before it.
func (w *waiter) first() bool {
	return !slices.ContainsFunc(w.places, func(p place) bool { return p.line.callers.Front() != p.element })
}

// expect notes in all its lines, of which it is the first, when it can be admitted: whoever goes through one then tries it before others.
func (w *waiter) expect(through *line) {
	for _, p := range w.places {
		p.line.moment = w.own.request.moment
		if p.line != through {
			p.line.arm()
		}
	}
}

func (w *waiter) standsIn(l *line) bool {
	return slices.ContainsFunc(w.places, func(p place) bool { return p.line == l })
}

// leave takes it out of all its lines, under their locks. Those behind it are looked after by who goes through the line, and by the
// timers of the others.
func (w *waiter) leave(tx *engine.Tx, through *line) {
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
