package limit

import "math/bits"

// Bucket is the rule of a token bucket: it holds at most Capacity tokens, starts full, and is
// refilled evenly with Refill tokens per Period (ms). A hit takes a token.
//
// All three are at least 1; Capacity and Refill at most MaxCount, Period at most MaxDuration.
//
// This is the classic token bucket, as in RFC 2215, section 3.6: over any T ms at most Capacity +
// T*Refill/Period hits are admitted. It is equivalent to the generic cell rate algorithm (GCRA,
// ITU-T I.371) with an increment of Period/Refill ms and a tolerance of Capacity-1 increments. GCRA
// stores the time at which the bucket will be full, which must be rounded if the increment is not a
// whole number of milliseconds; the number of missing tokens can be stored exactly.
type Bucket struct{ Capacity, Refill, Period int64 }

// Tokens is the state of a token bucket: how far from full it was at the Unix millisecond Since.
// Missing counts whole tokens, and Fraction is how much of the next token is refilled already, in
// 2^-64 of a token.
//
// The zero value is a full bucket. A full bucket has no Fraction.
//
// The rule may change from call to call. The number of missing tokens stays, so a bucket whose
// capacity grows has the additional tokens at once, and one whose capacity falls below the number
// of missing tokens admits nothing until enough of them are refilled. The refill since the last
// admitted call is computed by the rule of the current call. The fraction of a token that was
// earned before is kept under any rule.
//
// Under a rule, a token is Period units, and each millisecond earns Refill units. Fraction is a
// whole number of units, rounded down, from which a rule with the same Period restores that number
// exactly. So does a rule with another Period if it can represent the fraction; otherwise the
// conversion loses up to 2^-64 of a token. It never adds any if the product of the two periods is
// below 2^64 ms², as for periods below 49 days. Above that it may add up to 2^-64 of a token.
type Tokens struct {
	Missing  int64
	Fraction uint64
	Since    int64

	// Earned replaces Fraction in states that were stored before there was a Fraction: a number of
	// units of a period that is not known. They are interpreted as units of the current rule, and
	// are never a whole token by themselves. States that Take returns after an admitted call have
	// no Earned.
	Earned int64
}

// level is the state of a bucket under a rule: the missing tokens, and the units earned toward the
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
	l := b.refilled(s, now)
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

// level converts a state to the units of the rule. Fraction was rounded down by less than 2^-64 of
// a token, so the number of units is rounded up if the next one is within that distance.
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

// refilled returns the bucket at now, after the refill since s.Since.
func (b Bucket) refilled(s Tokens, now int64) level {
	full := level{since: now} // like a bucket that was never used
	if s.Missing <= 0 {
		return full
	}
	l := b.level(s)
	if now <= l.since {
		return l
	}
	// correct even if the signed difference would overflow
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

// wait returns how many milliseconds after now n more tokens will be refilled; 0 if n is not
// positive. A part of a unit makes no difference: units are earned whole.
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
