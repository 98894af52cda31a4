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
	Hold               // reserves permits for a reservation, unless it is known
	Settle             // ends a reservation, and takes permits, beyond the limit too; once
	Lapse              // no call: the moment at which a reservation ends by itself
)

// MaxReservations is how many reservations a key may have had.
const MaxReservations = 16

// Call is a call on a limiter.
type Call struct {
	Kind        Kind
	Limit       int64
	Reservation int   // Hold, Settle, Lapse: 0 to MaxReservations - 1
	Amount      int64 // Hold, Settle: permits
}

// Answer is the outcome of a call.
type Answer struct {
	Unknown  bool  // it may have been executed, now or later, or not at all
	Allowed  bool  // Hit, Hold; Settle: it was the first. Not known if N is not known
	N        int64 // permits: Refund: given back; Read: taken; others: that remain. -1: not known
	Reserved int64 // Settle: permits that were reserved. Not known if N is not known
	Refused  bool  // Settle: nothing has ever been reserved
}

// limiter is the state of a key.
type limiter struct {
	taken   int64
	held    [MaxReservations]int64
	settled [MaxReservations]bool
	booked  bool // something was reserved
}

// Limiter is the sequential model of one key whose permits come back by refunds and from
// reservations alone. A call with an unknown outcome is executed at any moment after its beginning:
// at the end, if it was not.
var Limiter = porcupine.Model{
	Init: func() any { return limiter{} },
	Step: func(state, input, output any) (bool, any) {
		call, answer := input.(Call), output.(Answer)
		next, want := state.(limiter).step(call)
		switch {
		case answer.Unknown || call.Kind == Lapse:
			return true, next
		case answer.N == -1 && !answer.Refused:
			return call.Kind == Settle || answer.Allowed == want.Allowed, next
		default:
			return answer == want, next
		}
	},
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v -> %+v", input, output)
	},
}

// left is how many permits remain.
func (l limiter) left(limit int64) int64 {
	for _, n := range l.held {
		limit -= n
	}
	return max(0, limit-l.taken)
}

func (l limiter) step(call Call) (next limiter, want Answer) {
	switch left := l.left(call.Limit); call.Kind {
	case Hit:
		if want.Allowed = left >= 1; want.Allowed {
			l.taken++
		}
	case Hold:
		known := l.settled[call.Reservation] || l.held[call.Reservation] > 0
		if want.Allowed = known || left >= call.Amount; want.Allowed && !known {
			l.held[call.Reservation], l.booked = call.Amount, true
		}
	case Settle:
		if !l.booked {
			return l, Answer{Refused: true}
		}
		if want.Allowed = !l.settled[call.Reservation]; want.Allowed {
			want.Reserved, l.held[call.Reservation] = l.held[call.Reservation], 0
			l.taken += call.Amount
			l.settled[call.Reservation] = true
		}
	case Lapse:
		l.held[call.Reservation] = 0
	case Refund:
		given := min(l.taken, 1)
		l.taken -= given
		return l, Answer{N: given}
	case Read:
		return l, Answer{N: l.taken}
	}
	want.N = l.left(call.Limit)
	return l, want
}
