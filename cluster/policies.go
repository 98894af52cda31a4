package cluster

import (
	"bytes"
	"slices"
	"time"

	"rlserver/cluster/group"
	"rlserver/engine"
	"rlserver/engine/rule"
)

// Group 0 has the policies. The node that leads it reports them, and each node sets them in the
// groups that it leads.

// Policy is a named limit, as text.
type Policy struct{ Name, Definition string }

// ownPolicies returns the policies if this node leads group 0. ok is false if it does not.
func (n *Node) ownPolicies() (list []Policy, ok bool) {
	g := n.Group(0)
	if g == nil {
		return nil, false
	}
	p, err := g.Leading()
	if err != nil || n.seeding.Load() && !n.seed(p) {
		return nil, false
	}
	return policiesOf(p.Engine), true
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

// copyPolicies sets the policies in all other groups that this node leads.
func (n *Node) copyPolicies(want []Policy) {
	n.copying.Lock()
	defer n.copying.Unlock()
	for number := 1; number < n.Map().Groups(); number++ {
		g := n.Group(number)
		if g == nil {
			continue
		}
		if p, err := g.Leading(); err == nil {
			n.setPolicies(p, want)
		}
	}
}

func (n *Node) setPolicies(p *group.Partition, want []Policy) {
	have := policiesOf(p.Engine)
	var changed []*engine.Policy
	for _, w := range want {
		if slices.Contains(have, w) {
			continue
		}
		parsed, err := rule.ParsePolicy([]byte(w.Name), bytes.Fields([]byte(w.Definition)))
		if err != nil {
			n.log.Error("a policy of the cluster is not known here: this node has to be upgraded", "policy", w.Name,
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
			p.Engine.DeletePolicy(p.Clock.Now(), h.Name)
		}
	}
}

// policyInterval is how often a node that leads group 0 copies the policies to its other groups.
const policyInterval = 50 * time.Millisecond

// sharePolicies copies the policies to the other groups of this node, if it leads group 0.
func (n *Node) sharePolicies() {
	if list, ok := n.ownPolicies(); ok {
		n.copyPolicies(list)
	}
}
