package limit

import "math/bits"

// Bucket is the rule of a token bucket: it holds at most Capacity tokens, starts full, and Refill
// tokens flow back evenly over each Period (ms). A hit takes a token.
//
// All three are at least 1; Capacity and Refill at most MaxCount, Period at most MaxDuration.
//
// This is the classic token bucket, as in RFC 2215, section 3.6: over any T ms at most
// Capacity + T*Refill/Period hits are admitted. Seen from the other side it is the generic cell rate
// algorithm (GCRA, ITU-T I.371) with an increment of Period/Refill ms and a tolerance of Capacity-1
// increments. GCRA keeps the time at which the bucket will be full, and must round it where the increment
// is no whole number of milliseconds; how far from full the bucket is can be kept exactly.
type Bucket struct{ Capacity, Refill, Period int64 }

// Tokens is the state of a token bucket: how far from full it was at the Unix millisecond Since.
// Missing counts whole tokens; Earned is what has already flowed back toward the next one, in units of
// which a token is worth Period and of which each millisecond earns Refill, so 0 <= Earned < Period.
//
// The zero value is a full bucket. A full bucket has nothing Earned.
//
// The rule may change from call to call. What is missing stays missing, so a bucket whose capacity
// grows has the new room at once, and one whose capacity shrinks below what is missing admits nothing
// until that has flowed back. What flows back is reckoned at the rule of the call that asks, from the
// last admitted call on. Units earned toward a token never make one whole by a change of Period alone.
type Tokens struct{ Missing, Earned, Since int64 }

// Take asks for cost tokens at Unix millisecond now and returns the state after the call. It is s
// itself, bit for bit, unless the call was admitted and cost something. A cost of 0 is a peek.
//
// Time does not run backward: a now before s.Since finds the bucket as it was at s.Since.
func (b Bucket) Take(s Tokens, now, cost int64) (Tokens, Decision) {
	held := b.settle(s, now)
	free := b.Capacity - held.Missing // below 0 when the capacity has shrunk
	d := Decision{Limit: b.Capacity, Allowed: hits(cost) <= free}
	switch {
	case hits(cost) > b.Capacity:
		d.RetryAfter = Never
	case !d.Allowed:
		d.RetryAfter = b.wait(held, hits(cost)-free, now)
	case cost > 0:
		held.Missing += cost
		free -= cost
		s = held
	}
	d.Remaining = max(free, 0)
	d.ResetAfter = b.wait(held, held.Missing, now)
	return s, d
}

// settle returns s as it stands at now, with all that has flowed back since.
func (b Bucket) settle(s Tokens, now int64) Tokens {
	full := Tokens{Since: now} // and so without a past: like one that was never used
	if s.Missing <= 0 {
		return full
	}
	s.Earned = min(s.Earned, b.Period-1) // the period may have shrunk
	if now <= s.Since {
		return s
	}
	elapsed := uint64(now) - uint64(s.Since) // right even where the signed difference would overflow
	hi, lo := bits.Mul64(elapsed, uint64(b.Refill))
	lo, carry := bits.Add64(lo, uint64(s.Earned), 0)
	hi += carry
	if hi >= uint64(b.Period) { // 2^64 tokens or more
		return full
	}
	tokens, earned := bits.Div64(hi, lo, uint64(b.Period))
	if tokens >= uint64(s.Missing) {
		return full
	}
	return Tokens{Missing: s.Missing - int64(tokens), Earned: int64(earned), Since: now}
}

// wait returns how many milliseconds after now n more tokens will have flowed back into s, which is
// settled; 0 for none.
func (b Bucket) wait(s Tokens, n, now int64) int64 {
	if n <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(b.Period))
	lo, borrow := bits.Sub64(lo, uint64(s.Earned), 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, uint64(b.Refill-1), 0) // round up
	hi += carry
	if hi >= uint64(b.Refill) {
		return forever
	}
	ms, _ := bits.Div64(hi, lo, uint64(b.Refill))
	if ms > forever {
		return forever
	}
	return later(int64(ms), until(s.Since, now))
}
