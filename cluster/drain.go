package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A node gives leadership away by an order: CLUSTER FAILOVER, CLUSTER DRAIN, or its end. It tells
// the others which groups it declines, until it is started again: nothing hands them to it. It may
// still be elected, if no other replica can: then it hands the group over again, as soon as a
// replica that may lead has stored what it proposes. A node that does not know the users of the
// cluster yet declines all groups too: its clients get LOADING.

// drainInterval is between two attempts of Drain.
const drainInterval = 20 * time.Millisecond

// HandOver makes other nodes lead the groups that this one leads. It tries once. If it still leads
// some of them, it returns a *NotHandedOverError. The groups are declined from now on: the node
// goes on trying. why is for the log.
func (n *Node) HandOver(ctx context.Context, why string) error {
	n.decline(n.leads)
	reasons := n.handOver(ctx, why, true)
	maps.DeleteFunc(reasons, func(number int, _ error) bool { return !n.leads(number) })
	return notHandedOver(reasons)
}

// Leave is HandOver for a node that is about to stop, with all groups.
func (n *Node) Leave(ctx context.Context, why string) error {
	n.leaving.Store(true)
	n.decline(func(int) bool { return true })
	if m := n.Map(); m != nil && len(m.Members) == 1 {
		return nil
	}
	return notHandedOver(n.handOver(ctx, why, true))
}

// Drain declines all groups, and returns when this node leads none. If the context ends before, it
// returns a *NotHandedOverError, and the node goes on trying.
func (n *Node) Drain(ctx context.Context, why string) error {
	n.decline(func(int) bool { return true })
	var last map[int]error
	for {
		if reasons := n.handOver(ctx, why, false); len(reasons) > 0 && (last == nil || ctx.Err() == nil) {
			last = reasons
		}
		led := n.led()
		if len(led) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			reasons := make(map[int]error)
			for _, number := range led {
				reasons[number] = cmp.Or(last[number], errEnds)
			}
			return notHandedOver(reasons)
		case <-time.After(drainInterval):
		}
	}
}

// decline notes which groups this node is not to be handed any more.
func (n *Node) decline(which func(number int) bool) {
	n.mu.Lock()
	for number := range n.groups() {
		if which(number) {
			n.declined[number] = true
		}
	}
	n.mu.Unlock()
	n.wake()
}

// declines reports whether this node hands a group over that it leads: it was told to, or has not
// served clients for some time.
func (n *Node) declines(number int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.declined[number] || !n.serves() && time.Since(n.started) > servesAfter*n.options.balanceInterval
}

// servesAfter is how many intervals of the balancer a node that begins may take until it knows the
// users.
const servesAfter = 5

// Drained reports whether this node declines all groups.
func (n *Node) Drained() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.declined) > 0 && len(n.declined) == len(n.groups())
}

// handOver makes other nodes lead the groups that this one leads and declines: nodes that take
// them, and if there is none anyone, if that is allowed. It returns why groups were not handed
// over.
func (n *Node) handOver(ctx context.Context, why string, anyone bool) (reasons map[int]error) {
	groups := n.groups()
	var work sync.WaitGroup
	errs := make([]error, len(groups))
	for number, g := range groups {
		if g == nil || !n.declines(number) || !g.Status().Leads {
			continue
		}
		takers := n.takers(number)
		if len(takers) == 0 && !anyone {
			errs[number] = errNoTaker
			continue
		}
		work.Go(func() { errs[number] = g.HandOver(ctx, why, takers...) })
	}
	work.Wait()
	reasons = make(map[int]error)
	for number, err := range errs {
		if err != nil {
			reasons[number] = err
		}
	}
	return reasons
}

// takers returns the other nodes that should have a replica of a group, have reported a short time
// ago and may lead it.
func (n *Node) takers(number int) (names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range n.Map().Replicas[number] {
		r := n.others[name].report
		if name != n.self.Name && n.upLocked(name) && r.mayLead(number) {
			names = append(names, name)
		}
	}
	return names
}

// leads reports whether this node leads a group, or begins or ends to.
func (n *Node) leads(number int) bool {
	g := n.Group(number)
	if g == nil {
		return false
	}
	st := g.Status()
	return st.Leads || st.Fault == nil && st.Leader == n.self.Name
}

// led returns the numbers of the groups that this node leads.
func (n *Node) led() (numbers []int) {
	for number := range n.groups() {
		if n.leads(number) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

var (
	errNoTaker = errors.New("no other node that has it is heard and may lead it: they are down, cut off, drained " +
		"or about to stop")
	errEnds = errors.New("what is on its way has not ended yet")
)

// NotHandedOverError reports groups that were not handed over.
type NotHandedOverError struct{ Reasons map[int]error }

// notHandedOver returns the error for groups with the reasons, nil if there are none.
func notHandedOver(reasons map[int]error) error {
	if len(reasons) == 0 {
		return nil
	}
	return &NotHandedOverError{reasons}
}

// Error names the groups of each reason.
func (e *NotHandedOverError) Error() string {
	groups := make(map[string][]int)
	for number, why := range e.Reasons {
		groups[why.Error()] = append(groups[why.Error()], number)
	}
	var parts []string
	for why, numbers := range groups {
		slices.Sort(numbers)
		parts = append(parts, fmt.Sprintf("groups %v (%s)", numbers, why))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
