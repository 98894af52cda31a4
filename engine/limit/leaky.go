package limit

// Pace is Take for a bucket that leaks: what is missing from the bucket waits in it, and drains at
// Refill per Period. So the bucket holds what may wait and the call that runs, Capacity in
// all, and a call is admitted if it still fits.
//
// Delay is how many milliseconds, rounded up, it takes until all that is ahead of the call has
// drained: a caller that waits so long before it goes ahead, goes in its turn, and no faster than
// the bucket drains. It is 0 for a call that is denied.
//
// This is the leaky bucket as a queue (Turner, 1986), and the same state and arithmetic as the
// token bucket, seen from the other side.
func (b Bucket) Pace(s Tokens, now, cost int64) (after Tokens, d Decision) {
	after, d = b.Take(s, now, cost)
	if d.Allowed {
		ahead := b.settle(s, now)
		d.Delay = b.wait(ahead, ahead.missing, now)
	}
	return after, d
}
