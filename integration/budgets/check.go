package budgets

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"
)

// span is an amount that counts for certain from one time to another, µs.
type span struct{ begin, end, amount int64 }

// check checks that nothing was admitted beyond a limit.
func (r *run) check() {
	by := make(map[int][]*call)
	for _, x := range r.history.calls {
		by[x.customer] = append(by[x.customer], x)
	}
	for customer, calls := range by {
		p := plans[customer%len(plans)]
		for budget, limit := range p.limits() {
			c := checker{calls: calls, budget: budget, plan: p, naive: r.Naive}
			most, over := c.most()
			if budget != dollars {
				r.report.fullest(float64(most) / float64(limit))
			}
			if over > 0 {
				r.report.find("customer %d: %d of %s beyond the limit of %d", customer, over,
					[]string{"requests", "tokens", "micro-dollars"}[budget], limit)
			}
		}
	}
}

// checker checks the calls of a customer on one budget.
type checker struct {
	calls  []*call
	budget int
	plan   plan
	naive  bool
}

// most returns the most that was admitted at a moment, and by how much that is beyond the limit.
func (c checker) most() (most, over int64) {
	var spans []span
	var charges []*call // of the bucket
	for _, x := range c.calls {
		if x.allowed && x.hold.answered > 0 {
			spans = append(spans, c.held(x))
		}
		switch {
		case x.settle.answered == 0:
		case c.budget == tokens:
			charges = append(charges, x)
		case c.budget == requests:
			end := x.settle.first + c.plan.window*1000 - x.fast
			spans = append(spans, span{x.settle.answered, end, x.used[requests]})
		default:
			spans = append(spans, span{x.settle.answered, math.MaxInt64, x.used[c.budget]})
		}
	}
	admitted := slices.DeleteFunc(slices.Clone(c.calls), func(x *call) bool { return !x.allowed })
	slices.SortFunc(admitted, func(a, b *call) int { return cmp.Compare(a.hold.first, b.hold.first) })
	sums, bucket := newSums(spans), newBucket(charges, c.plan)
	limit := c.plan.limits()[c.budget]
	for _, x := range admitted {
		level := sums.at(x.hold.first, x.hold.answered) + bucket.missing(x.hold.first, x.hold.answered+x.fast) +
			x.estimate[c.budget]
		most, over = max(most, level), max(over, level-limit)
	}
	return most, over
}

// held is when a reservation counts for certain. Without reservations it is what was promised.
func (c checker) held(x *call) span {
	end := x.hold.last + x.ttl - x.fast
	if c.naive {
		end = math.MaxInt64
	}
	if x.settle.first > 0 {
		end = min(end, x.settle.first)
	}
	return span{x.hold.answered, end, x.estimate[c.budget]}
}

// sums adds spans as time goes on: a Fenwick tree over their ends.
type sums struct {
	spans []span // by their beginnings
	added int
	ends  []int64 // in order
	tree  []int64
	total int64
}

func newSums(spans []span) *sums {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	s := &sums{spans: spans, tree: make([]int64, len(spans)+1)}
	for _, x := range spans {
		s.ends = append(s.ends, x.end)
	}
	slices.Sort(s.ends)
	return s
}

// at returns the sum of what counts all the time from one moment to another. The first moment may
// not be before that of the last call.
func (s *sums) at(from, to int64) int64 {
	for ; s.added < len(s.spans) && s.spans[s.added].begin < from; s.added++ {
		x := s.spans[s.added]
		at, _ := slices.BinarySearch(s.ends, x.end)
		for at++; at < len(s.tree); at += at & -at {
			s.tree[at] += x.amount
		}
		s.total += x.amount
	}
	at, _ := slices.BinarySearch(s.ends, to+1)
	sum := s.total
	for ; at > 0; at -= at & -at {
		sum -= s.tree[at]
	}
	return sum
}

// bucket has what is missing from a token bucket: for each charge, all since then less what has
// flowed back since then, and the most of these. A charge counts from when it was sent, so that
// most has flowed back, once it was answered. A segment tree by that time has the most.
type bucket struct {
	plan  plan
	by    []*call // when they were answered
	added int
	place map[*call]int // by when they were sent
	nodes []segment
	leafs int
}

// segment is the sum of its charges and the most of them with what has flowed back before: parts of
// tokens.
type segment struct{ sum, most int64 }

func newBucket(charges []*call, p plan) *bucket {
	b := &bucket{plan: p, place: make(map[*call]int, len(charges)), leafs: 1}
	sent := slices.SortedFunc(slices.Values(charges), func(x, y *call) int {
		return cmp.Compare(x.settle.first, y.settle.first)
	})
	for i, x := range sent {
		b.place[x] = i
	}
	b.by = slices.SortedFunc(slices.Values(charges), func(x, y *call) int {
		return cmp.Compare(x.settle.answered, y.settle.answered)
	})
	for b.leafs < len(charges) {
		b.leafs *= 2
	}
	b.nodes = slices.Repeat([]segment{{0, math.MinInt64 / 2}}, 2*b.leafs)
	return b
}

// missing returns how many tokens are missing at a moment for certain, of what was charged before
// another one. That may not be before that of the last call.
func (b *bucket) missing(before, now int64) int64 {
	for ; b.added < len(b.by) && b.by[b.added].settle.answered < before; b.added++ {
		x := b.by[b.added]
		n := x.used[tokens] * b.plan.period * 1000
		at := b.leafs + b.place[x]
		b.nodes[at] = segment{n, n + b.plan.refill*(x.settle.first-x.fast)}
		for at /= 2; at > 0; at /= 2 {
			left, right := b.nodes[2*at], b.nodes[2*at+1]
			b.nodes[at] = segment{left.sum + right.sum, max(right.most, left.most+right.sum)}
		}
	}
	part := max(0, b.nodes[1].most-b.plan.refill*now)
	return (part + b.plan.period*1000 - 1) / (b.plan.period * 1000)
}

// checkTotals compares what the servers have counted with what clients have used.
func (r *run) checkTotals(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var used [customers]int64
	for _, x := range r.history.calls {
		if x.settle.answered > 0 {
			used[x.customer] += x.used[dollars]
			r.report.used += x.used[tokens]
		}
		if x.allowed && x.hold.answered > 0 && x.settle.first == 0 {
			r.report.abandoned++
			if x.gone {
				r.report.back++
			}
		}
	}
	c := r.caller()
	defer c.cut()
	time.Sleep(r.Slow)
	for customer := range customers {
		_, _, policies := rulesOf(customer)
		reply, _, err := c.ask(ctx, "RL.CHECK", customerID(customer), policies[dollars], "COST", "0")
		if err != nil {
			r.report.find("%v", err)
			return
		}
		d := integers(reply)
		counted := d[1] - d[2]
		r.report.counted += counted
		if counted != used[customer] {
			r.report.find("customer %d has used %d micro-dollars, and %d are counted", customer, used[customer],
				counted)
		}
	}
	if r.report.back != r.report.abandoned && !r.Naive {
		r.report.find("%d reservations were abandoned, and %d came back", r.report.abandoned, r.report.back)
	}
}
