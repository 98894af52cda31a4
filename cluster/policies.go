package cluster

import (
	"bytes"
	"context"
	"slices"
	"time"

	"rlserver/cluster/group"
	"rlserver/engine"
	"rlserver/engine/rule"
)

// Group 0 has the policies. The node that leads it reports them, and each node sets them in the
// groups that it leads. After a change it does not wait for the next report, see SharePolicies.

// Policy is a named limit, as text.
type Policy struct{ Name, Definition string }

// PolicyList is the policies that group 0 had.
type PolicyList struct {
	Order    Order
	Policies []Policy
	// Terms are those of the latest leaderships of the groups, by group, that were known before the
	// policies were read. A leader of a later term does not take the list: it may arrive late, and
	// the former leader may have agreed on a newer one. Nodes of an older version send none.
	Terms []uint64
}

// suits reports whether a list is not too old for a group that is led in a term.
func (l *PolicyList) suits(number int, term uint64) bool {
	return number >= len(l.Terms) || term <= l.Terms[number]
}

// Order is the order of lists of policies: by the term of the leader of group 0, and then by when
// it has read them there. Lists may arrive in another order, as they are sent on several ways.
// Nodes of an older version send 0.
type Order struct{ Term, Number uint64 }

func (o Order) before(other Order) bool {
	return o != Order{} && (o.Term < other.Term || o.Term == other.Term && o.Number < other.Number)
}

// ownPolicies returns the policies if this node leads group 0. ok is false if it does not.
func (n *Node) ownPolicies() (list PolicyList, ok bool) {
	g := n.Group(0)
	if g == nil {
		return list, false
	}
	p, err := g.Leading()
	if err != nil || n.seeding.Load() && !n.seed(p) {
		return list, false
	}
	terms := n.leaderTerms() // before the policies are read
	n.listing.Lock()         // so that a list with a larger number was not read earlier
	defer n.listing.Unlock()
	n.lists++
	return PolicyList{Order{p.Term(), n.lists}, policiesOf(p.Engine), terms}, true
}

// leaderTerms returns the terms of the latest leaderships of the groups that this node knows.
func (n *Node) leaderTerms() []uint64 {
	n.mu.Lock()
	terms := make([]uint64, len(n.leaders))
	for i := range n.leaders {
		terms[i] = n.leaders[i].term
	}
	n.mu.Unlock()
	for i, g := range n.groups() {
		if g == nil {
			continue
		}
		if p, err := g.Leading(); err == nil {
			terms[i] = max(terms[i], p.Term())
		}
	}
	return terms
}

// seed gives group 0 the policies of another group, after a forced recovery without it. It reports
// whether it has them.
func (n *Node) seed(p *group.Partition) bool {
	n.copying.Lock()
	defer n.copying.Unlock()
	for number := 1; number < n.Map().Groups(); number++ {
		g := n.Group(number)
		if g == nil {
			continue // it has moved to another node
		}
		other, err := g.Leading()
		if err != nil {
			return false
		}
		if list := policiesOf(other.Engine); len(list) > 0 {
			n.setPolicies(p, list)
			break
		}
	}
	if p.Wait(0) != nil {
		return false
	}
	n.adopting.Lock()
	defer n.adopting.Unlock()
	n.seedPolicies = false
	n.seeding.Store(false)
	if err := n.store(false); err != nil {
		n.log.Error("the state of the node cannot be stored", "error", err)
	}
	return true
}

func policiesOf(e *engine.Engine) []Policy {
	list := []Policy{}
	for _, p := range e.Policies() {
		list = append(list, Policy{p.Name(), p.Definition()})
	}
	return list
}

// copyPolicies sets the policies in all other groups that this node leads. It does nothing if it
// was called with a later list before.
func (n *Node) copyPolicies(want PolicyList) {
	if n.copyChanged(want) && n.options.PoliciesChanged != nil {
		n.options.PoliciesChanged()
	}
}

// copyChanged is copyPolicies. It reports whether policies have changed.
func (n *Node) copyChanged(want PolicyList) (changed bool) {
	n.copying.Lock()
	defer n.copying.Unlock()
	if want.Order.before(n.copied) {
		return false
	}
	n.copied = want.Order
	for number := 1; number < n.Map().Groups(); number++ {
		g := n.Group(number)
		if g == nil {
			continue
		}
		if p, err := g.Leading(); err == nil && want.suits(number, p.Term()) {
			changed = n.setPolicies(p, want.Policies) || changed
		}
	}
	return changed
}

// setPolicies sets the policies in a group. It reports whether they have changed.
func (n *Node) setPolicies(p *group.Partition, want []Policy) (different bool) {
	have := policiesOf(p.Engine)
	var changed []*engine.Policy
	for _, w := range want {
		if slices.Contains(have, w) {
			continue
		}
		parsed, err := rule.ParseStored([]byte(w.Name), bytes.Fields([]byte(w.Definition)))
		if err != nil {
			n.sayOften("a policy of the cluster is not known here: this node has to be upgraded", "policy", w.Name,
				"definition", w.Definition, "error", err)
			continue
		}
		changed = append(changed, engine.NewPolicy(parsed))
	}
	if len(changed) > 0 {
		p.Engine.SetPolicies(p.Clock.Now(), changed)
	}
	for _, h := range have {
		if !slices.ContainsFunc(want, func(w Policy) bool { return w.Name == h.Name }) {
			different = p.Engine.DeletePolicy(p.Clock.Now(), h.Name) || different
		}
	}
	return different || len(changed) > 0
}

// policyInterval is how often a node that leads group 0 copies the policies to its other groups.
const policyInterval = 50 * time.Millisecond

// sharePolicies copies the policies to the other groups of this node, if it leads group 0.
func (n *Node) sharePolicies() {
	if list, ok := n.ownPolicies(); ok {
		n.copyPolicies(list)
	}
}

// SharePolicies returns when all groups have agreed on the policies that group 0 has, if this node
// leads it, or when the context ends. It returns the groups that may not have them yet, because
// they have no leader or it cannot be reached: they copy them later.
func (n *Node) SharePolicies(ctx context.Context) (missing []int) {
	g := n.Group(0)
	if g == nil {
		return nil
	}
	if p, err := g.Leading(); err != nil || p.Wait(0) != nil {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for number := 1; number < n.Map().Groups(); number++ {
		missing = append(missing, number)
	}
	s := sharing{
		leader: func(number int) string {
			if l := n.Leader(number); l != nil {
				return l.Name
			}
			return ""
		},
		set: func(node string, groups []int) []int {
			list, ok := n.ownPolicies()
			if !ok {
				stop() // the next leader of group 0 shares its policies
				return nil
			}
			return n.setPoliciesOn(node, PoliciesOf{groups, list})
		},
	}
	return s.run(ctx, missing)
}

// setPoliciesOn has a node set the policies in groups that it leads, and returns those that have
// agreed on them.
func (n *Node) setPoliciesOn(node string, call PoliciesOf) (agreed []int) {
	if node == n.self.Name {
		return n.agreePolicies(call)
	}
	p := n.peerNamed(node)
	defer p.close()
	if p.call("SetPolicies", call, &agreed, n.options.Timeout) != nil {
		return nil // an answer that comes late may be written to agreed
	}
	return agreed
}

// agreePolicies sets the policies in the groups that this node leads, and returns those of the call
// that have agreed on them.
func (n *Node) agreePolicies(call PoliciesOf) (agreed []int) {
	n.copyPolicies(call.List)
	waits := make(map[int]func() error)
	for _, number := range call.Groups {
		g := n.Group(number)
		if g == nil {
			continue
		}
		if p, err := g.Leading(); err == nil && slices.Equal(policiesOf(p.Engine), call.List.Policies) {
			waits[number] = p.Ask()
		}
	}
	for number, wait := range waits {
		if wait() == nil {
			agreed = append(agreed, number)
		}
	}
	return agreed
}
