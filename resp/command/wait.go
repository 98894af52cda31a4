package command

import (
	"errors"
	"math"
	"time"

	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/resp/wire"
)

// Attempt is the reason why a call that may wait runs.
type Attempt uint8

const (
	firstAttempt Attempt = iota
	NextAttempt          // the call is first in its queues
	LastAttempt          // its timeout has ended, and it is first in its queues
	EndBehind            // its timeout has ended, and others are before it
)

// Request describes what a call waits for. The handler sets it and returns ErrWait.
type Request struct {
	Deadline time.Duration // elapsed; Never: no timeout
	// when the call can be admitted if no other call arrives, Unix ms; Never: others are before it
	RetryAt int64
	Pop     Popper // nil for a limiter
	Targets int    // how many of the call's last keys Pop inserts into: it does not wait for these
}

// ErrWait is returned by a handler whose call has to wait: it has no reply yet.
var ErrWait = errors.New("the call waits")

// Admit decides a call of a limiter with try, which is given its cost. If a call with WAIT is
// denied now, but may be admitted before its timeout ends, Admit returns ErrWait: the handler
// returns it too, and is run again later.
//
// If other calls wait for the key, a new call waits behind them, with two exceptions: a call that
// cannot be admitted in time is denied at once, and one that takes nothing is admitted, as the
// renewal of a lease must not wait for the end of a lease.
//
// When its timeout has ended, a call is decided like one without WAIT if it is first in its queues;
// otherwise it is denied.
func (c *Call) Admit(cost int64, try func(cost int64) (limit.Decision, error)) (limit.Decision, error) {
	if c.Args.Wait == 0 || c.Executing || c.Attempt == LastAttempt {
		return try(cost)
	}
	elapsed, deadline, behind := c.Env.Time.Elapsed(), c.Request.Deadline, c.Attempt == EndBehind
	if c.Attempt == firstAttempt {
		deadline = After(elapsed, c.Args.Wait)
		behind = !c.Env.Waiting.Empty(c.DB, c.Keys)
	}
	var d limit.Decision
	var err error
	// A call that will wait is not denied yet, and must not be counted as denied.
	c.Tx.DryRun(func() { d, err = try(cost) })
	switch {
	case err != nil:
		return d, err
	case d.Allowed && (!behind || d.Free) || d.RetryAfter == limit.Never || d.RetryAfter > c.Args.Wait:
		return try(cost)
	case d.Allowed && c.Attempt == EndBehind:
		return c.denyBehind(cost, try)
	}
	moment := c.Tx.Now() + d.RetryAfter
	if c.Attempt == EndBehind || c.Env.Time.Until(moment) > deadline-elapsed {
		return try(cost)
	}
	c.Request = Request{Deadline: deadline, RetryAt: moment}
	if behind {
		c.Request.RetryAt = Never
	}
	return d, ErrWait
}

// denyBehind denies a call that its limits admit, but before which others wait: it must not take
// what they wait for. The answer is about the limits as they are, and the shortest RetryAfter that
// a denied call can have, as there is no moment at which the limits begin to admit it.
func (c *Call) denyBehind(cost int64, try func(cost int64) (limit.Decision, error)) (limit.Decision, error) {
	d, err := try(0)
	if err != nil {
		return d, err
	}
	if cost > 0 {
		c.Tx.Denied(c.Keys[min(d.Index, len(c.Keys)-1)])
	}
	d.Allowed, d.RetryAfter = false, 1
	return d, nil
}

// After returns the deadline ms after elapsed; Never if it overflows.
func After(elapsed time.Duration, ms int64) time.Duration {
	if ms > int64((Never-elapsed)/time.Millisecond) {
		return Never
	}
	return elapsed + time.Duration(ms)*time.Millisecond
}

// Never is a time or deadline in the infinite future.
const Never = math.MaxInt64

// Popper pops from the first of several keys that has an element, and writes the reply.
type Popper interface {
	// Pop reports whether any of the keys had an element; if one had, an error is the reply of the
	// call. The last of the keys are the targets. The locks of the others are held; if it needs
	// that of a target and cannot have it now, it changes nothing and returns ErrTargetLocked.
	Pop(tx *engine.Tx, keys []engine.Key, r *wire.Reply) (found bool, err error)
}

// ErrTargetLocked is returned by Popper.Pop if another call has the lock of a target.
var ErrTargetLocked = errors.New("the target of a pop is locked")

// PopOne handles key [key ...] timeout: it pops with p, or waits for an element.
func (c *Call) PopOne(p Popper) error {
	keys := c.Args.CountedKeys(int64(c.Args.Left()-1), 1)
	wait := c.Args.Timeout()
	if err := c.Args.End(); err != nil {
		return err
	}
	return c.PopOrWait(keys, 0, wait, p)
}

// PopMany takes a timeout and what Args.Pops does: it pops with what popper returns, or waits for
// an element.
func (c *Call) PopMany(one, other string, popper func(isOther bool, n int64) Popper) error {
	timeout := Args{List: [][]byte{c.Args.Next()}} // Redis checks it last
	keys, isOther, n := c.Args.Pops(one, other)
	if err := c.Args.End(); err != nil {
		return err
	}
	wait := timeout.Timeout()
	if timeout.Err != nil {
		return timeout.Err
	}
	return c.PopOrWait(keys, 0, wait, popper(isOther, n))
}

// PopOrWait pops from keys, which are all keys of the call, or waits up to wait ms for an element.
// The last of them may be a target. Within EXEC it does not wait: the reply is null.
func (c *Call) PopOrWait(keys []engine.Key, targets int, wait int64, p Popper) error {
	found, err := p.Pop(c.Tx, keys, &c.Reply)
	switch {
	case err != nil || found:
		return err
	case c.Executing && targets > 0:
		c.Reply.Null()
		return nil
	case c.Executing:
		c.Reply.NullArray()
		return nil
	}
	c.Request = Request{Deadline: After(c.Env.Time.Elapsed(), wait), Pop: p, Targets: targets}
	return ErrWait
}
