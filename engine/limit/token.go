package limit

import "math/bits"

// Bucket is the rule of a token bucket: it holds at most Capacity tokens, starts full, and Refill
// tokens flow back evenly over each Period (ms). A hit takes a token.
//
// All three are at least 1; Capacity and Refill at most MaxCount, Period at most MaxDuration.
//
// This is the classic token bucket, as in RFC 2215, section 3.6: over any T ms at most Capacity +
// T*Refill/Period hits are admitted. Seen from the other side it is the generic cell rate algorithm
// (GCRA, ITU-T I.371) with an increment of Period/Refill ms and a tolerance of Capacity-1
// increments. GCRA keeps the time at which the bucket will be full, and must round it where the
// increment is no whole number of milliseconds; how far from full the bucket is can be kept
// exactly.
type Bucket struct{ Capacity, Refill, Period int64 }

// Tokens is the state of a token bucket: how far from full it was at the Unix millisecond Since.
// Missing counts whole tokens, and Fraction is what has already flowed back toward the next one, in
// 2^-64 of a token.
//
// The zero value is a full bucket. A full bucket has no Fraction.
//
// The rule may change from call to call. What is missing stays missing, so a bucket whose capacity
// grows has the new room at once, and one whose capacity shrinks below what is missing admits
// nothing until that has flowed back. What flows back is counted at the rule of the call that asks,
// from the last admitted call on. The part of a token that was earned by then stays what it was
// under any rule.
//
// Under a rule, a token is worth Period units of which each millisecond earns Refill. Fraction is a
// whole number of units, rounded down, and a rule of the same Period gets that number back exactly.
// So does one of another Period if that has such a number of its own; otherwise the conversion
// loses up to 2^-64 of a token. It never adds any while the product of the two periods is below
// 2^64 ms², as it is where both are below 49 days. Beyond that it may add up to 2^-64 of a token.
type Tokens struct {
	Missing  int64
	Fraction uint64
	Since    int64

	// Earned is in place of Fraction in states that were stored before there was one: a number of
	// units of a period that is not known any more. They are taken for units of the rule that asks,
	// and never make a token whole by themselves. States that Take returns after an admitted call
	// have none.
	Earned int64
}

// level is a bucket as a rule sees it at a moment: what is missing, and the units earned toward the
// next token, the last of them in part.
type level struct {
	missing int64
	earned  int64  // below the rule's Period
	part    uint64 // in 2^-64 of a unit
	since   int64
}

// Take asks for cost tokens at Unix millisecond now and returns the state after the call. It is s
// itself, bit for bit, unless the call was admitted and cost something. A cost of 0 is a peek.
//
// Time does not run backward: a now before s.Since finds the bucket as it was at s.Since.
func (b Bucket) Take(s Tokens, now, cost int64) (Tokens, Decision) {
	l := b.settle(s, now)
	free := b.Capacity - l.missing // below 0 when the capacity has shrunk
	d := Decision{Limit: b.Capacity, Allowed: hits(cost) <= free}
	switch {
	case hits(cost) > b.Capacity:
		d.RetryAfter = Never
	case !d.Allowed:
		d.RetryAfter = b.wait(l, hits(cost)-free, now)
	case cost > 0:
		l.missing += cost
		free -= cost
		s = b.tokens(l)
	}
	d.Remaining = max(free, 0)
	d.ResetAfter = b.wait(l, l.missing, now)
	return s, d
}

// level converts a state to the units of the rule. Of the number of units that a Fraction was made
// from, at most a part of 2^-64 of a token is missing; so it is the next one if that is no farther
// away.
func (b Bucket) level(s Tokens) level {
	l := level{missing: s.Missing, since: s.Since}
	if s.Earned > 0 {
		l.earned = min(s.Earned, b.Period-1)
		return l
	}
	units, part := bits.Mul64(s.Fraction, uint64(b.Period))
	if part != 0 && -part < uint64(b.Period) {
		units, part = units+1, 0
	}
	l.earned, l.part = int64(units), part
	return l
}

// tokens is the reverse of level.
func (b Bucket) tokens(l level) Tokens {
	fraction, _ := bits.Div64(uint64(l.earned), l.part, uint64(b.Period))
	return Tokens{Missing: l.missing, Fraction: fraction, Since: l.since}
}

// settle returns the bucket as it is at now, with all that has flowed back since.
func (b Bucket) settle(s Tokens, now int64) level {
	full := level{since: now} // and so without a past: like one that was never used
	if s.Missing <= 0 {
		return full
	}
	l := b.level(s)
	if now <= l.since {
		return l
	}
	// right even where the signed difference would overflow
	elapsed := uint64(now) - uint64(l.since)
	hi, lo := bits.Mul64(elapsed, uint64(b.Refill))
	lo, carry := bits.Add64(lo, uint64(l.earned), 0)
	hi += carry
	if hi >= uint64(b.Period) { // 2^64 tokens or more
		return full
	}
	tokens, earned := bits.Div64(hi, lo, uint64(b.Period))
	if tokens >= uint64(l.missing) {
		return full
	}
	return level{missing: l.missing - int64(tokens), earned: int64(earned), part: l.part, since: now}
}

// wait returns how many milliseconds after now n more tokens will have flowed back; 0 for none. The
// part of a unit that is there makes no difference: units are earned whole.
func (b Bucket) wait(l level, n, now int64) int64 {
	if n <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(b.Period))
	lo, borrow := bits.Sub64(lo, uint64(l.earned), 0)
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
	return later(int64(ms), until(l.since, now))
}
