package clustertest

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Kind is what a call does.
type Kind int

// The kinds of calls.
const (
	Hit    Kind = iota // takes a permit
	Refund             // gives one back, if any is taken
	Read               // returns how many are taken
)

// Call is a call on a limiter.
type Call struct {
	Kind  Kind
	Limit int64
}

// Answer is the outcome of a call.
type Answer struct {
	Unknown bool  // it may have been executed, now or later, or not at all
	Allowed bool  // Hit
	N       int64 // permits: Hit: that remain; Refund: given back; Read: taken. -1: not known
}

// Limiter is the sequential model of one key whose permits come back by refunds alone. A call with
// an unknown outcome is executed at any moment after its beginning: at the end, if it was not.
var Limiter = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		taken, call, answer := state.(int64), input.(Call), output.(Answer)
		next, want := step(taken, call)
		switch {
		case answer.Unknown:
			return true, next
		case call.Kind == Hit && answer.Allowed != want.Allowed:
			return false, taken
		default:
			return answer.N == -1 || answer.N == want.N, next
		}
	},
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v -> %+v", input, output)
	},
}

func step(taken int64, call Call) (next int64, want Answer) {
	switch call.Kind {
	case Hit:
		if taken >= call.Limit {
			return taken, Answer{N: call.Limit - taken}
		}
		return taken + 1, Answer{Allowed: true, N: call.Limit - taken - 1}
	case Refund:
		given := min(taken, 1)
		return taken - given, Answer{N: given}
	default:
		return taken, Answer{N: taken}
	}
}
