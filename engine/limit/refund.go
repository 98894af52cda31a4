package limit

// Refund returns n tokens to the bucket, n >= 1, and returns how many it returned: at most the
// whole ones that were missing after the last admitted call. A bucket with no missing tokens
// becomes the zero value.
//
// It needs no rule, because the refill rate does not depend on the number of missing tokens.
func (s Tokens) Refund(n int64) (Tokens, int64) {
	part := int64(0)
	if s.Fraction > 0 || s.Earned > 0 { // the last of the missing tokens is missing in part
		part = min(s.Missing, 1)
	}
	n = min(n, s.Missing-part)
	if n == s.Missing {
		return Tokens{}, n
	}
	s.Missing -= n
	return s, n
}

// Refund removes n hits at Unix millisecond now, n >= 1, and returns how many it removed: at most
// those used, and none of a window that has ended. A window without hits becomes the zero value.
func (s Count) Refund(now, n int64) (Count, int64) {
	if s.Length > 0 && now >= s.End() {
		return s, 0
	}
	n = min(n, s.Used)
	if n == s.Used {
		return Count{}, n
	}
	s.Used -= n
	return s, n
}
