package budgets

import (
	"context"
	"slices"
	"sync"
)

// naive makes calls as a gateway does that counts after the answer. In each round all clients ask
// one after the other whether anything is left, and charge what they have used when all have asked.
func (r *run) naive(ctx context.Context) {
	const customer = 0
	_, _, policies := rulesOf(customer)
	check := append([]string{"RL.CHECK", customerID(customer)}, policies[:]...)
	c := r.caller()
	defer c.cut()
	for round := int64(0); round*int64(r.Clients) < r.Calls && ctx.Err() == nil; round++ {
		var clients sync.WaitGroup
		var answered []*call
		for i := range r.Clients {
			x := r.newCall(i, round)
			x.customer = customer
			r.history.begin(x, c.now(), false)
			reply, s, err := c.ask(ctx, slices.Concat(check, []string{"COST", "0"})...)
			if err != nil {
				r.report.find("%v", err)
				return
			}
			allowed := integers(reply)[0] == 1
			r.history.held(x, s, allowed)
			if allowed {
				r.report.Admitted.Add(1)
				answered = append(answered, x)
			} else {
				r.report.Denied.Add(1)
			}
		}
		for _, x := range answered {
			clients.Go(func() { r.chargeAfter(ctx, x) })
		}
		clients.Wait()
	}
}

// chargeAfter charges what a call has used: nothing was reserved for it.
func (r *run) chargeAfter(ctx context.Context, x *call) {
	c := r.caller()
	defer c.cut()
	r.history.settling(x, x.use(), c.now(), false)
	_, s, err := c.ask(ctx, x.settleChecked()...)
	if err != nil {
		r.report.find("%v", err)
		return
	}
	r.history.settled(x, s)
}
