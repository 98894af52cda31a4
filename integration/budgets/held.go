package budgets

import (
	"context"
	"time"
)

// forgetAfter is how long a call is still looked for in RL.HOLDS when it should be gone, µs.
const forgetAfter = 3_000_000

// watch compares RL.HOLDS of all customers with what clients have reserved, until the context ends.
func (r *run) watch(ctx context.Context) {
	c := r.caller()
	defer c.cut()
	for ctx.Err() == nil {
		for customer := range customers {
			keys, _, _ := rulesOf(customer)
			for _, budget := range []int{requests, tokens, dollars} {
				reply, s, err := c.ask(ctx, "RL.HOLDS", keys[budget])
				if err != nil {
					if ctx.Err() == nil {
						r.report.find("%v", err)
					}
					return
				}
				if s.times == 1 {
					r.compare(customer, budget, reply.([]any), s)
				}
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// compare compares a reply of RL.HOLDS.
func (r *run) compare(customer, budget int, list []any, s sent) {
	h := r.history
	h.mu.Lock()
	defer h.mu.Unlock()
	r.report.Listed.Add(int64(len(list)))
	listed := make(map[string]bool, len(list))
	for _, item := range list {
		entry := item.([]any)
		id := entry[0].(string)
		listed[id] = true
		x := h.open[customer][id]
		if x == nil {
			r.report.find("RL.HOLDS lists %s at %d µs, which has nothing reserved: %+v", id, s.first, h.find(id))
			continue
		}
		r.compareEntry(x, budget, entry[1].(int64), entry[2].(int64)*1000, s)
	}
	for id, x := range h.open[customer] {
		if x.surelyHeld(s) && !listed[id] {
			r.report.find("RL.HOLDS does not list %s at %d to %d µs: %+v", id, s.first, s.answered, *x)
		}
		if over := x.over(); over > 0 && s.first > over {
			x.gone = x.gone || !listed[id]
			if s.first > over+forgetAfter && budget == dollars {
				delete(h.open[customer], id)
			}
		}
	}
}

// compareEntry checks an entry: an amount, and the time until it lapses, µs.
func (r *run) compareEntry(x *call, budget int, amount, left int64, s sent) {
	if amount != x.estimate[budget] {
		r.report.find("RL.HOLDS lists %d of %s, which has reserved %d", amount, x.id, x.estimate[budget])
	}
	if x.settle.answered > 0 && x.settle.answered < s.first {
		r.report.find("RL.HOLDS lists %s, which was settled before", x.id)
	}
	if x.hold.times > 1 || x.hold.answered == 0 {
		return // when it was reserved is not known well
	}
	if x.hold.answered+x.ttl+x.slow < s.first {
		r.report.find("RL.HOLDS lists %s, which has lapsed %d µs before", x.id, s.first-x.hold.answered-x.ttl)
	}
	if s.answered+left < x.hold.last+x.ttl-x.fast || s.first+left > x.hold.answered+x.ttl+x.slow {
		r.report.find("RL.HOLDS says that %s lapses in %d µs, at %d: %+v", x.id, left, s.first, *x)
	}
}

// surelyHeld reports whether a call had something reserved all the time of another one.
func (x *call) surelyHeld(s sent) bool {
	return x.allowed && x.hold.answered > 0 && x.hold.answered < s.first &&
		(x.settle.first == 0 || x.settle.first > s.answered) && s.answered < x.hold.last+x.ttl-x.fast
}

// over is when a call has nothing reserved any more for certain; 0: that is not known.
func (x *call) over() int64 {
	switch {
	case x.hold.answered == 0 && !x.lost: // it is on its way
		return 0
	case x.settle.answered > 0:
		return x.settle.answered
	case x.lost || x.hold.times > 1: // a node may have it, or one that was sent before
		return max(x.hold.first, x.hold.last) + callTimeout.Microseconds() + x.ttl + x.slow
	default:
		return x.hold.answered + x.ttl + x.slow
	}
}

// awaitLapses waits until all that nobody settles has come back.
func (r *run) awaitLapses(ctx context.Context) {
	for ctx.Err() == nil {
		last, now := int64(0), time.Since(r.start).Microseconds()
		r.history.mu.Lock()
		for _, open := range r.history.open {
			for _, x := range open {
				last = max(last, x.over())
			}
		}
		r.history.mu.Unlock()
		if now > last+500_000 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
