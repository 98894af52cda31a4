package resp

import (
	"errors"
	"math"
	"rlserver/engine"
	"rlserver/engine/limit"
	"time"
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
	pop      popper        // nil for a limiter
}

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

// never is a moment, and a deadline, that does not come.
const never = math.MaxInt64

// popper takes something from one of several keys, and writes the reply.
type popper interface {
	// pop reports whether any of the keys had something.
	pop(tx *engine.Tx, keys []engine.Key, r *reply) (found bool, err error)
}
