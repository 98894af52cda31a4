// Package budgets is the load of a gateway to language models, and the check that no budget was
// exceeded: many clients reserve an estimate of requests, tokens and dollars, work, and settle what
// they have used. The tests in the folder above run it against servers that are killed.
//
//	caller.go   a connection that sends a call until it is answered
//	load.go     the clients: they settle, are killed, settle late or twice
//	naive.go    clients that count after the answer
//	history.go  what the clients know of their calls
//	check.go    never beyond a limit; what was settled is what was used
//	held.go     RL.HOLDS lists what is reserved, and nothing else
//	probe.go    what nobody settles comes back at its time
//	report.go   figures and findings
//
// # The check
//
// A client knows when it sent a call and when it got the reply: the call was decided in between. So
// a reservation counts for certain from its reply until its settlement is sent, or until its ttl
// has passed since it was sent; a charge from its reply until the window has passed since it was
// sent. When a reservation is admitted, all that counts for certain while it is decided and its own
// amount must fit in the limit. That can miss an error of a few calls on their way, but never finds
// one that is not there. All times are those of one machine, but for Fast and Slow.
//
// A call that was broken off is sent again with its ID until it is answered. Of a client that is
// killed amid a call nobody knows the outcome: it counts as not admitted, and what it was about to
// settle is settled again later by somebody else, with the same ID.
//
// With Naive, clients do what gateways do that count after the answer: they look whether anything
// is left, work, and then charge what was used. The check must report how far that goes beyond.
package budgets
