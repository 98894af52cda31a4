package limit

// Lease is the rule of a concurrency limit: at most Limit leases are held, each for TTL ms from
// when it was last taken or renewed, or until it is released. Limit is from 1 to MaxCount, TTL from
// 1 to MaxDuration.
//
// The log has one entry per lease, whose time is the lease's expiry: a lease that is taken at t is
// held in [t, t+TTL), and free at t+TTL.
type Lease struct{ Limit, TTL int64 }

// Decide answers a call for a lease at Unix millisecond now. own is the rank in the log of the
// lease with the caller's id, or negative if there is none. A lease that is held is renewed, even
// if the limit is reached or was lowered; an expired one is ignored. If the call is admitted, the
// caller sets the lease's time to now + TTL. A cost of 0 is a peek; any other cost is one lease.
//
// RetryAfter follows from the expiry times: each lease that expires frees one.
func (l Lease) Decide(leases Log, own int, now, cost int64) Decision {
	n, lapsed := leases.Len(), leases.After(float64(now))
	free := l.Limit - int64(n-lapsed) // below 0 when the limit has shrunk
	renews := own >= lapsed
	d := Decision{Limit: l.Limit, Allowed: renews || free > 0, Free: renews}
	switch {
	case !d.Allowed:
		d.RetryAfter = until(l.AdmitsFrom(leases, own, now), now)
	case cost > 0 && !renews:
		free--
	}
	d.Remaining = max(free, 0)
	last := n - 1
	if d.Allowed && cost > 0 {
		d.ResetAfter = l.TTL
		if own == last {
			last-- // its time changes
		}
	}
	if last >= 0 {
		d.ResetAfter = max(d.ResetAfter, until(Lapse(leases.At(last)), now))
	}
	return d
}

// AdmitsFrom returns the earliest time, from Unix millisecond t on, at which a call for a lease
// is admitted. own is as in Decide: a lease that could be renewed now may have expired by then, and
// others may use the whole limit.
func (l Lease) AdmitsFrom(leases Log, own int, t int64) int64 {
	n, lapsed := leases.Len(), leases.After(float64(t))
	free := l.Limit - int64(n-lapsed)
	if own >= lapsed || free > 0 {
		return t
	}
	return Lapse(leases.At(lapsed + int(-free)))
}

// Lapse returns the first whole millisecond at which a lease with a time of a log has expired.
func Lapse(at float64) int64 { return ceil(at) }
