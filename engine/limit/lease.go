package limit

// Lease is the rule of how many at once: at most Limit leases are held, each for TTL ms from when
// it was taken or renewed last, or until it is given back. Limit is from 1 to MaxCount, TTL from 1
// to MaxDuration.
//
// The log is of leases here, and its times are when they lapse: one that is taken at t is held in
// [t, t+TTL), and free at t+TTL.
type Lease struct{ Limit, TTL int64 }

// Decide answers a call for a lease at Unix millisecond now. own is the rank in the log of the
// lease that has the caller's id already, or negative. One that is held is renewed, which is
// admitted even when the limit is full, or has shrunk; one that has lapsed counts for nothing. If
// the call is admitted, the caller is to put the lease at now + TTL. A cost of 0 is a peek; any
// other is one lease.
//
// All there is to ask is when leases lapse, so to wait is simple: nothing comes by itself, and each
// that lapses makes room for one.
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
			last-- // it is moved
		}
	}
	if last >= 0 {
		d.ResetAfter = max(d.ResetAfter, until(Lapse(leases.At(last)), now))
	}
	return d
}

// AdmitsFrom returns the earliest moment, from Unix millisecond t on, at which a call for a lease
// is admitted. own is as in Decide: a lease that could be renewed now may have lapsed by then, and
// the limit be full of others.
func (l Lease) AdmitsFrom(leases Log, own int, t int64) int64 {
	n, lapsed := leases.Len(), leases.After(float64(t))
	free := l.Limit - int64(n-lapsed)
	if own >= lapsed || free > 0 {
		return t
	}
	return Lapse(leases.At(lapsed + int(-free)))
}

// Lapse is the first whole millisecond at which what lapses at a time of a log is held no longer.
func Lapse(at float64) int64 { return ceil(at) }
