package rule

import "rlserver/engine/limit"

// Kind says which algorithm a Rule is of.
type Kind uint8

// The algorithms. Each names the fields of Rule it uses.
const (
	Slide   Kind = iota // Slide
	Token               // Token
	Fixed               // Fixed
	Lease               // Lease
	Leaky               // Token, whose Capacity is what may wait and the one that goes ahead
	Counter             // Counter
)

// Rule is an algorithm and its numbers. It is one flat struct so that a list of them is built up
// without allocating.
type Rule struct {
	Kind    Kind
	Slide   limit.Window
	Token   limit.Bucket
	Fixed   limit.Fixed
	Lease   limit.Lease
	Counter limit.Counter
}

// Error is sent to the client as it is: the first word is its code, the rest says what is
// wrong.
type Error string

func (e Error) Error() string { return string(e) }
