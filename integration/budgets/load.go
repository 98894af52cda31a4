package budgets

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Load is what the clients do.
type Load struct {
	Addresses []string // of servers that can be asked for any key
	Calls     int64    // how many reservations are sent
	Clients   int      // at once
	// Fast and Slow are by how much less or more may have passed than by the time of the servers.
	// It counts whole milliseconds. In a cluster, what a leader's message was on its way is lost
	// when another one leads, which on a busy machine may be much.
	Fast, Slow time.Duration
	Naive      bool // charge after the answer, without reservations: all clients on one customer

	// Due is sent to when a server is to be killed: Kills times, with as many calls between. If
	// nobody receives, as it takes long to start, that time is left out. nil: none is killed.
	Due   chan<- struct{}
	Kills int64
}

// plan is the limits of some customers.
type plan struct {
	requests, window                int64 // RL.SLIDE, ms
	tokens, refill, period, dollars int64 // RL.TOKEN, ms; a total
}

// plans are of the customers in turn: half of them are at their limits all the time.
var plans = [2]plan{
	{requests: 60, window: 500, tokens: 20_000, refill: 16_000, period: 1000, dollars: 1e12},
	{requests: 4000, window: 1000, tokens: 800_000, refill: 1_500_000, period: 2000, dollars: 1e12},
}

func (p plan) limits() amounts { return amounts{p.requests, p.tokens, p.dollars} }

const (
	customers = 8
	// decade is longer than a run: what is used of a total stays used. The windows begin at
	// multiples of it since 1970, the next one in December 2029.
	decade = "3650d"
)

// of returns the budgets of a customer as rules and as names of policies.
func rulesOf(customer int) (keys, rules, policies [budgetsCount]string) {
	p := plans[customer%len(plans)]
	rules = [...]string{
		requests: fmt.Sprintf("SLIDE %d %dms", p.requests, p.window),
		tokens:   fmt.Sprintf("TOKEN %d %d %dms", p.tokens, p.refill, p.period),
		dollars:  fmt.Sprintf("FIXED %d %s", p.dollars, decade),
	}
	for i, name := range []string{"requests", "tokens", "dollars"} {
		policies[i] = fmt.Sprint(name, "-", customer%len(plans))
		keys[i] = fmt.Sprintf("%s:{%s}", policies[i], customerID(customer))
	}
	return keys, rules, policies
}

func customerID(customer int) string { return fmt.Sprint("customer-", customer) }

// run is a load that runs.
type run struct {
	Load
	start   time.Time
	history *history
	report  *Report
	next    atomic.Int64
	again   chan *call // whose settlement was sent by a client that was killed
}

// Run makes the calls, checks them, and returns what was found. It ends earlier if the context
// does.
func Run(ctx context.Context, l Load) *Report {
	r := &run{
		Load: l, start: time.Now(), history: newHistory(), report: &Report{Naive: l.Naive},
		again: make(chan *call, 1000),
	}
	if err := r.setUp(ctx); err != nil {
		r.report.find("%v", err)
		return r.report
	}
	watching, stop := context.WithCancel(ctx)
	var clients, watchers sync.WaitGroup
	for i := range l.Clients {
		if !l.Naive {
			clients.Go(func() { r.client(ctx, i) })
		}
	}
	if l.Naive {
		r.naive(ctx)
	} else {
		watchers.Go(func() { r.watch(watching) })
		watchers.Go(func() { r.settleAgain(ctx) })
		watchers.Go(func() { r.probe(watching) })
	}
	clients.Wait()
	close(r.again)
	r.report.took = time.Since(r.start)
	if !l.Naive {
		r.awaitLapses(ctx)
	}
	stop()
	watchers.Wait()
	r.check()
	r.checkTotals(ctx)
	return r.report
}

func (r *run) caller() *caller { return &caller{addresses: r.Addresses, start: r.start} }

// setUp sets the policies, on all nodes of a cluster.
func (r *run) setUp(ctx context.Context) error {
	c := r.caller()
	defer c.cut()
	for customer := range plans {
		_, rules, policies := rulesOf(customer)
		for i := range rules {
			words := append([]string{"RL.POLICY", "SET", policies[i]}, strings.Fields(rules[i])...)
			if _, _, err := c.ask(ctx, words...); err != nil {
				return err
			}
		}
	}
	for _, address := range r.Addresses {
		each := &caller{addresses: []string{address}, start: r.start}
		for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			_, _, policies := rulesOf(1)
			_, _, err := each.ask(ctx, "RL.CHECK", "set-up", policies[dollars], "COST", "0")
			if err == nil {
				break
			}
			if time.Now().After(deadline) || !strings.Contains(err.Error(), "no such policy") {
				return err
			}
		}
		each.cut()
	}
	return nil
}

// Chances of what a client does, per mille of its calls.
const (
	killedAmid   = 6  // each of three moments
	cutAndAgain  = 10 // the reservation is sent, the connection cut, and it is sent again
	settledLate  = 10
	settledTwice = 20
)

func chance(perMille int) bool { return rand.IntN(1000) < perMille }

// client makes calls until all have been made.
func (r *run) client(ctx context.Context, id int) {
	c := r.caller()
	defer c.cut()
	for ctx.Err() == nil {
		n := r.next.Add(1)
		if n > r.Calls {
			return
		}
		if r.Due != nil && n%max(r.Calls/r.Kills, 1) == r.Calls/r.Kills/2 {
			select {
			case r.Due <- struct{}{}:
			default:
			}
		}
		if err := r.serve(ctx, c, r.newCall(id, n)); err != nil && ctx.Err() == nil {
			r.report.find("%v", err)
			return
		}
	}
}

func (r *run) newCall(client int, n int64) *call {
	size := 1 + rand.Int64N(500)
	return &call{
		id: fmt.Sprint(client, "-", n), customer: rand.IntN(customers), estimate: amounts{1, size, 3 * size},
		ttl: (300 + rand.Int64N(2700)) * 1000, fast: r.Fast.Microseconds(), slow: r.Slow.Microseconds(),
	}
}

// serve makes a call from its reservation to its settlement. The client may be killed on the way.
func (r *run) serve(ctx context.Context, c *caller, x *call) error {
	lost := chance(killedAmid)
	r.history.begin(x, c.now(), lost)
	if lost {
		r.report.Killed.Add(1)
		c.send(x.reserve())
		c.cut()
		return nil
	}
	allowed, err := r.reserve(ctx, c, x)
	if err != nil || !allowed {
		return err
	}
	if chance(killedAmid) {
		r.report.Killed.Add(1)
		c.cut()
		return nil
	}
	work := time.Duration(rand.IntN(4000)) * time.Microsecond
	if chance(settledLate) {
		work = time.Duration(x.ttl+x.slow+rand.Int64N(20_000)) * time.Microsecond
	}
	time.Sleep(work)
	doubted := chance(killedAmid)
	r.history.settling(x, x.use(), c.now(), doubted)
	if doubted {
		r.report.Killed.Add(1)
		c.send(x.charge())
		c.cut()
		r.again <- x
		return nil
	}
	err = r.settle(ctx, c, x)
	if err == nil && chance(settledTwice) {
		err = r.settle(ctx, c, x)
	}
	return err
}

// use is what the work has really cost: mostly less than was reserved, sometimes more.
func (x *call) use() amounts {
	size := x.estimate[tokens]
	switch p := rand.IntN(10); {
	case p == 0:
		size += rand.Int64N(size/2 + 1)
	case p > 2:
		size = rand.Int64N(size + 1)
	}
	return amounts{1, size, 3 * size}
}

// reserve sends the reservation, and waits a little if it is denied.
func (r *run) reserve(ctx context.Context, c *caller, x *call) (allowed bool, err error) {
	words := x.reserve()
	first, times := c.now(), 0
	if chance(cutAndAgain) {
		r.report.Retried.Add(1)
		times++
		c.send(words)
		c.cut()
	}
	reply, s, err := c.ask(ctx, words...)
	if err != nil {
		return false, err
	}
	d := integers(reply)
	if len(d) != budgetsCount+3 {
		return false, fmt.Errorf("%s: %v is not a decision", strings.Join(words, " "), reply)
	}
	s.first, s.times = first, s.times+times
	r.history.held(x, s, d[0] == 1)
	if d[0] == 1 {
		r.report.Admitted.Add(1)
		return true, nil
	}
	r.report.Denied.Add(1)
	time.Sleep(time.Duration(rand.Int64N(min(max(d[3], 1), 20)*1000)) * time.Microsecond)
	return false, nil
}

// settle settles a call, and checks the reply as far as it is certain.
func (r *run) settle(ctx context.Context, c *caller, x *call) error {
	words := x.charge()
	reply, s, err := c.ask(ctx, words...)
	if err != nil {
		return err
	}
	before := x.settle.answered > 0
	items, _ := reply.([]any)
	for i, item := range items {
		r.checkSettled(x, s, i, integers(item), before)
	}
	if len(items) != budgetsCount {
		return fmt.Errorf("%s: %v does not have an array for each key", strings.Join(words, " "), reply)
	}
	if before {
		r.report.Twice.Add(1)
		return nil
	}
	if s.first > x.hold.answered+x.ttl+x.slow {
		r.report.Late.Add(1)
	}
	r.history.settled(x, s)
	return nil
}

// checkSettled checks what was replied for a key: [settled, reserved, actual, remaining].
func (r *run) checkSettled(x *call, s sent, budget int, got []int64, before bool) {
	if len(got) != 4 {
		r.report.find("%s was settled with a reply of %d integers", x.id, len(got))
		return
	}
	once := s.times == 1 && s.first >= x.settle.first // by this call alone
	reserved, certain := x.estimate[budget], s.answered < x.hold.last+x.ttl-x.fast
	if s.first > x.hold.answered+x.ttl+x.slow {
		reserved, certain = 0, true
	}
	switch {
	case got[2] != x.used[budget] || got[3] < 0:
		r.report.find("%s used %d of %d, and the reply says %v", x.id, x.used[budget], budget, got)
	case before && (got[0] != 0 || got[1] != 0):
		r.report.find("%s was settled twice, and the reply says %v", x.id, got)
	case !before && once && x.settle.times == 0 && got[0] != 1 && !x.doubted:
		r.report.find("%s was settled once, and the reply says %v", x.id, got)
	case got[0] == 1 && certain && x.hold.times == 1 && got[1] != reserved:
		r.report.find("%s had reserved %d of %d, and the reply says %v", x.id, reserved, budget, got)
	}
}

// settleAgain settles what was being settled by clients that were killed.
func (r *run) settleAgain(ctx context.Context) {
	c := r.caller()
	defer c.cut()
	for x := range r.again {
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		if err := r.settle(ctx, c, x); err != nil && ctx.Err() == nil {
			r.report.find("%v", err)
		}
	}
}

// reserve is the call that reserves, by policies or by rules on the same keys.
func (x *call) reserve() (words []string) {
	keys, rules, policies := rulesOf(x.customer)
	if x.ttl/1000%2 == 0 {
		words = append([]string{"RL.CHECK", customerID(x.customer)}, policies[:]...)
	} else {
		words = []string{"RL.ALL"}
		for i := range keys {
			words = append(append(words, keys[i]), strings.Fields(rules[i])...)
		}
	}
	words = append(append(words, "COST"), x.estimate.texts()...)
	return append(words, "HOLD", fmt.Sprint(x.ttl/1000, "ms"), "ID", x.id)
}

// charge is the call that settles, by policies or by keys.
func (x *call) charge() (words []string) {
	if x.ttl/1000%3 == 0 {
		return x.settleChecked()
	}
	keys, _, _ := rulesOf(x.customer)
	words = []string{"RL.SETTLE"}
	for i, key := range keys {
		words = append(words, key, strconv.FormatInt(x.used[i], 10))
	}
	return append(words, "ID", x.id)
}

func (x *call) settleChecked() []string {
	_, _, policies := rulesOf(x.customer)
	words := append([]string{"RL.SETTLE", "CHECK", customerID(x.customer)}, policies[:]...)
	return append(append(append(words, "COST"), x.used.texts()...), "ID", x.id)
}

func (a amounts) texts() (list []string) {
	for _, n := range a {
		list = append(list, strconv.FormatInt(n, 10))
	}
	return list
}
