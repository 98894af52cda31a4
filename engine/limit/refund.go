package limit

// Refund returns n tokens to the bucket, n >= 1, and returns how many it returned: at most those
// that were missing after the last admitted call. A bucket with no missing tokens becomes the zero
// value.
//
// It needs no rule, because the refill rate does not depend on the number of missing tokens.
func (s Tokens) Refund(n int64) (Tokens, int64) {
	n = min(n, s.Missing)
	if n == s.Missing {
		return Tokens{}, n
	}
	s.Missing -= n
	return s, n
}

// Refund removes n hits, n >= 1, and returns how many it removed: at most those used. A window
// without hits becomes the zero value.
func (s Count) Refund(n int64) (Count, int64) {
	n = min(n, s.Used)
	if n == s.Used {
		return Count{}, n
	}
	s.Used -= n
	return s, n
}
