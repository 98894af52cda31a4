package cluster

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"rlserver/cluster/group"
)

// Each leader of a group compares the group's members with the map, and makes the next change that
// brings them closer to it. Nothing else is remembered: the next leader continues from there.
//
//	non-voter -> caught up -> voter -> leadership -> removal of the old one

// maxMoves is how many groups that a node leads get a new member at once.
const maxMoves = 2

// members is what the next change of a group's members depends on.
type members struct {
	n      *Node // which leads
	number int   // of the group
	g      *group.Group
	want   []string // names of nodes
	have   []group.Server
	keepUp []group.ReplicaID // those that store what the leader proposes
}

// now returns the replica that a node has at present; false if the node is not there.
func (m *members) now(node string) (group.ReplicaID, bool) { return m.n.replicaOn(m.number, node) }

// there reports whether the node of a replica is there, and has it.
func (m *members) there(id group.ReplicaID) bool {
	now, there := m.now(id.Node)
	return there && now == id
}

func (m *members) has(id group.ReplicaID, voter bool) bool {
	return slices.Contains(m.have, group.Server{ID: id, Voter: voter})
}

// stale reports whether a replica is not what the map wants: on another node, or lost.
func (m *members) stale(id group.ReplicaID) bool {
	now, there := m.now(id.Node)
	return !slices.Contains(m.want, id.Node) || there && now != id
}

// replaced reports whether a voter can be removed: others are there in its place.
func (m *members) replaced(id group.ReplicaID) bool {
	now, _ := m.now(id.Node)
	return m.stale(id) && (!slices.Contains(m.want, id.Node) || m.has(now, true))
}

// majority reports whether more than half of some voters are there, and store what is proposed.
func (m *members) majority(voters []group.ReplicaID) bool {
	there := 0
	for _, id := range voters {
		if m.there(id) && slices.Contains(m.keepUp, id) {
			there++
		}
	}
	return 2*there > len(voters)
}

// next returns the next change, or which node should lead before there is one.
func (m *members) next() (c group.Change, handOver string) {
	var voters []group.ReplicaID
	joining := false
	for _, s := range m.have {
		switch {
		case s.Voter:
			voters = append(voters, s.ID)
		case m.stale(s.ID):
			return group.Change{Kind: group.Remove, ID: s.ID}, ""
		default:
			joining = true
		}
	}
	if len(voters) > len(m.want) {
		if c, handOver, ok := m.drop(voters); ok {
			return c, handOver
		}
	}
	for _, s := range m.have {
		if !s.Voter && m.n.caughtUp(m.number, m.g, s.ID) && m.majority(append(slices.Clone(voters), s.ID)) {
			return group.Change{Kind: group.AddVoter, ID: s.ID}, ""
		}
	}
	for _, node := range m.want {
		now, there := m.now(node)
		if there && !joining && !m.has(now, true) {
			return group.Change{Kind: group.AddNonvoter, ID: now}, ""
		}
	}
	return group.Change{}, ""
}

// drop returns which voter is removed, those that are not there first. The leader hands over before
// it is.
func (m *members) drop(voters []group.ReplicaID) (c group.Change, handOver string, ok bool) {
	for _, gone := range []bool{true, false} {
		for _, id := range voters {
			if id == m.g.ID() || gone == m.there(id) || !m.replaced(id) {
				continue
			}
			rest := slices.DeleteFunc(slices.Clone(voters), func(v group.ReplicaID) bool { return v == id })
			if m.majority(rest) {
				return group.Change{Kind: group.Remove, ID: id}, "", true
			}
		}
	}
	if slices.Contains(m.want, m.n.self.Name) {
		return c, "", false
	}
	for _, node := range m.want {
		if now, there := m.now(node); there && m.has(now, true) {
			return c, node, true
		}
	}
	return c, "", false
}

// matches reports whether a group has just the members that the map wants.
func matches(want []string, have []group.Server) bool {
	for _, s := range have {
		if !s.Voter || !slices.Contains(want, s.ID.Node) {
			return false
		}
	}
	return len(have) == len(want)
}

// mover makes the changes of one group.
type mover struct {
	busy atomic.Bool
	// a non-voter has caught up if it applies what was committed at the mark within the timeout
	mark mark
}

type mark struct {
	id    group.ReplicaID
	index uint64
	at    time.Time
}

// move makes the next changes of all groups that this node leads.
func (n *Node) move(ctx context.Context) {
	if n.leaving.Load() {
		return
	}
	m := n.Map()
	var changing []*members
	joining := 0
	for number, g := range n.groups() {
		if g == nil {
			continue
		}
		st := g.Status()
		if !st.Leads || matches(m.Replicas[number], st.Members) && !n.lostOne(number, st.Members) {
			continue
		}
		changing = append(changing, &members{n, number, g, m.Replicas[number], st.Members, g.KeepUp()})
		if slices.ContainsFunc(st.Members, func(s group.Server) bool { return !s.Voter }) {
			joining++
		}
	}
	for _, l := range changing {
		mover := &n.movers[l.number]
		if !mover.busy.CompareAndSwap(false, true) {
			continue
		}
		c, handOver := l.next()
		joins := c.Kind == group.AddNonvoter // and gets the whole state
		if joins {
			joining++
		}
		if joins && joining > maxMoves || c.Kind == group.NoChange && handOver == "" {
			mover.busy.Store(false)
			continue
		}
		n.work.Go(func() {
			changed := l.makeChange(ctx, c, handOver)
			mover.busy.Store(false)
			if changed {
				n.wake()
			}
		})
	}
}

// lostOne reports whether a node has another replica of a group than the one that is a member.
func (n *Node) lostOne(number int, members []group.Server) bool {
	return slices.ContainsFunc(members, func(s group.Server) bool {
		now, there := n.replicaOn(number, s.ID.Node)
		return there && now != s.ID
	})
}

// replicaOn returns which replica of a group a node has; false if it was not heard for a while.
func (n *Node) replicaOn(number int, node string) (group.ReplicaID, bool) {
	if node == n.self.Name {
		if g := n.Group(number); g != nil {
			return g.ID(), true
		}
		return group.ReplicaID{}, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	have, ok := n.others[node].report.Replicas[number]
	return group.ReplicaID{Node: node, Instance: have.Instance}, ok && n.upLocked(node)
}

// caughtUp reports whether a non-voter is close to the leader.
func (n *Node) caughtUp(number int, g *group.Group, id group.ReplicaID) bool {
	n.mu.Lock()
	o := n.others[id.Node]
	n.mu.Unlock()
	applied, at := o.report.Replicas[number].Applied, o.at
	k := &n.movers[number].mark
	now := time.Now()
	if k.id == id && applied >= k.index && at.After(k.at) {
		if at.Sub(k.at) < n.options.Timeout {
			return true
		}
		k.id = group.ReplicaID{}
	}
	if k.id != id {
		*k = mark{id, g.Status().Committed, now}
	}
	return false
}

// makeChange makes a change of a group's members, or hands the group over before there is one. It
// reports whether that was possible.
func (m *members) makeChange(ctx context.Context, c group.Change, handOver string) (changed bool) {
	within, cancel := context.WithTimeout(ctx, m.n.options.Timeout)
	defer cancel()
	log := m.n.log.With("group", m.number)
	if handOver != "" {
		if err := m.g.HandOver(within, "its replica here is moved away", handOver); err != nil {
			log.Debug("a group was not handed over", "to", handOver, "error", err)
			return false
		}
		log.Info("handed a group over before its replica here is removed", "to", handOver)
		return true
	}
	log = log.With("change", c.Kind, "replica", c.ID)
	if err := m.g.Change(c, m.n.options.Timeout); err != nil {
		log.Debug("the members of a group were not changed", "error", err)
		return false
	}
	log.Info("changed the members of a group")
	return true
}

// Moves returns how many groups do not have the members yet that the map wants, as far as this node
// knows.
func (n *Node) Moves() (count int) {
	m := n.Map()
	if m == nil {
		return 0
	}
	for number, want := range m.Replicas {
		if by, ok := n.leaderOf(number); ok && !matches(want, by.members) {
			count++
		}
	}
	return count
}
