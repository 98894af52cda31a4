package limit

// Pace is Take for a leaky bucket: the missing tokens are the calls in the queue, which drain at
// Refill per Period. So Capacity is the number of calls that may wait plus the one that runs, and a
// call is admitted if it fits.
//
// Delay is how many milliseconds, rounded up, it takes until all calls ahead have drained: a caller
// that waits for it before it proceeds keeps the order and the rate of the bucket. It is 0 for a
// denied call.
//
// This is the leaky bucket as a queue (Turner, 1986), with the state and the arithmetic of the
// token bucket.
func (b Bucket) Pace(s Tokens, now, cost int64) (after Tokens, d Decision) {
	after, d = b.Take(s, now, cost)
	if d.Allowed {
		ahead := b.refilled(s, now)
		d.Delay = b.wait(ahead, ahead.missing, now)
	}
	return after, d
}
