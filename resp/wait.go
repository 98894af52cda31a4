package resp

import (
	"container/list"
	"errors"
	"slices"
	"sync"
	"time"
	"unsafe"

	"rlserver/engine"
	"rlserver/engine/limit"
)

// waiter is a call that waits on the server: for a limiter to admit it, or for something to pop. Its connection's goroutine sleeps in
// guard.pause until whoever went through the line has answered the call.
type waiter struct {
	owner    *session
	call     prepared      // its words copied
	keys     []engine.Key  // all, in the order of the words
	deadline time.Duration // elapsed; never: it waits for ever
	ticket   int64         // in order of arrival
	pop      *popper       // nil for a limiter's call

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

// attempt says how a session runs a call that may wait.
type attempt uint8

const (
	firstAttempt attempt = iota
	nextAttempt          // it stands first in its lines
	lastAttempt          // its time is over
)

// request is what a handler that has returned errHeld wants.
type request struct {
	deadline time.Duration // as in waiter
	moment   int64         // when it can be admitted if nobody else comes, Unix ms; never: others are before it
	pop      *popper       // as in waiter
}

const errUnblocked = engine.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK")

// errHeld is returned by a handler whose call is to wait: there is no answer yet.
var errHeld = errors.New("the call waits")

// admit has a limiter decide a call, by try, and makes the call wait if it came with WAIT and cannot be admitted now but may be in time:
// then the error is errHeld, to be returned by the handler, which will be run again. Who comes while others wait goes behind them, unless
// it can be told at once that it cannot be admitted in time, or it takes nothing: whoever renews a lease must not wait for its end.
//
// When its time is over a call is decided as one without WAIT: those do not look at who waits.
func (c *call) admit(try func() (limit.Decision, error)) (limit.Decision, error) {
	if c.args.wait == 0 || c.executing || c.attempt == lastAttempt {
		return try()
	}
	elapsed, deadline, behind := c.env.time.Elapsed(), c.request.deadline, false
	if c.attempt == firstAttempt {
		deadline = after(elapsed, c.args.wait)
		behind = !c.env.waiting.empty(c.db, c.keys)
	}
	c.tx.Rehearse = true // a call that will wait is not denied yet: nothing counts it as that
	d, err := try()
	c.tx.Rehearse = false
	switch {
	case err != nil:
		return d, err
	case d.Allowed && (!behind || d.Free) || d.RetryAfter == limit.Never || d.RetryAfter > c.args.wait:
		return try()
	}
	moment := c.tx.Now() + d.RetryAfter
	if c.env.time.Until(moment) > deadline-elapsed {
		return try()
	}
	c.request = request{deadline: deadline, moment: moment}
	if behind {
		c.request.moment = never
	}
	return d, errHeld
}

// after is a deadline so many ms after a moment.
func after(elapsed time.Duration, ms int64) time.Duration {
	if ms > int64((never-elapsed)/time.Millisecond) {
		return never
	}
	return elapsed + time.Duration(ms)*time.Millisecond
}

// hold lets a call wait whose handler has returned errHeld. Its locks are held.
func (s *session) hold(p prepared) *waiter {
	p.words = cloneWords(p.words)
	w := &waiter{owner: s, call: p, deadline: s.request.deadline, pop: s.request.pop, index: -1}
	own := hasher{engine: s.env.engine}
	own.add(&w.call)
	w.keys = own.keys
	w.own = call{env: s.env, client: s.client, db: s.db, request: s.request, attempt: nextAttempt, reply: reply{resp3: s.reply.resp3}}
	s.server.room.join(s.tx, w)
	s.waiter.Store(w)
	return w
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

// await sends the replies that stand before the call's, and waits until the call is answered or the client is gone.
func (s *session) await(w *waiter) {
	s.flush()
	s.begun = 0
	s.guard.held.note(heldWaiting, w.size())
	gone := s.closing // as the journal could not keep a change
	for !gone && w.waits() {
		gone = s.guard.pause() != nil
	}
	if len(w.places) > 1 || w.current() != answered {
		s.quit(w)
	}
	s.waiter.Store(nil)
	s.guard.held.note(heldWaiting, 0)
	s.server.room.waiting.Add(-1)
	if w.deadline != never {
		s.server.room.timed.Add(-1)
	}
	if gone {
		s.closing = true // as by Redis, without an answer
		return
	}
	s.errors += w.own.errors
	s.reply.b = append(s.reply.b, w.own.reply.b...)
	s.see(w.position)
}

// quit takes a call out of its lines, and answers one that was unblocked. No lock is held.
func (s *session) quit(w *waiter) {
	s.tx.Begin(s.server.clock(), w.own.db, w.keys, true)
	defer func() { w.position = max(w.position, s.tx.End()) }()
	w.leave(s.tx, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.outcome {
	case givenUp:
		w.try(s.tx, lastAttempt)
	case cancelled:
		w.own.reply.error(string(errUnblocked))
		w.own.errors++
	}
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
	w.owner.guard.wake()
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
		w.owner.guard.wake()
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
	if err := w.owner.server.unavailable(w.call.command.flags, ^w.call.command.flags); err != nil {
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
