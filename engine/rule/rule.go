package rule

import "rlserver/engine/limit"

// Kind is the algorithm of a Rule.
type Kind uint8

// The algorithms. Each names the fields of Rule it uses.
const (
	Slide   Kind = iota // Slide
	Token               // Token
	Fixed               // Fixed
	Lease               // Lease
	Leaky               // Token: Capacity counts the calls that wait and the one that runs
	Counter             // Counter
)

// Rule is an algorithm and its numbers. It is one flat struct so that a list of rules is built
// without allocating.
type Rule struct {
	Kind    Kind
	Slide   limit.Window
	Token   limit.Bucket
	Fixed   limit.Fixed
	Lease   limit.Lease
	Counter limit.Counter
}

// Bound returns the number that is the rule's limit.
func (r *Rule) Bound() *int64 {
	switch r.Kind {
	case Token, Leaky:
		return &r.Token.Capacity
	case Fixed:
		return &r.Fixed.Limit
	case Lease:
		return &r.Lease.Limit
	case Counter:
		return &r.Counter.Limit
	}
	return &r.Slide.Limit
}

// Error is sent to the client as it is: the first word is its code, the rest says what is
// wrong.
type Error string

func (e Error) Error() string { return string(e) }
