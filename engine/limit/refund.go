package limit

// Refund gives n tokens back, n >= 1, and returns how many that were: no more than were missing
// when the bucket was last taken from. A bucket from which nothing is missing afterwards is full,
// and the zero value.
//
// It needs no rule: tokens flow back at the same rate whatever is missing.
func (s Tokens) Refund(n int64) (Tokens, int64) {
	n = min(n, s.Missing)
	if n == s.Missing {
		return Tokens{}, n
	}
	s.Missing -= n
	return s, n
}

// Refund gives n hits back, n >= 1, and returns how many that were: no more than were used. A
// window in which none is used afterwards is the zero value.
func (s Count) Refund(n int64) (Count, int64) {
	n = min(n, s.Used)
	if n == s.Used {
		return Count{}, n
	}
	s.Used -= n
	return s, n
}
