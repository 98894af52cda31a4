package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"rlserver/cluster/group"
)

// The note of group 0 is the map. The leader of group 0 changes it, at the request of others too.

// The reasons for which a change of the members is refused. They may be tried again.
var (
	ErrNoMajority = errors.New("no node leads the first group of slots now, which has the list of the nodes: " +
		"nodes cannot be added or removed while a majority of its replicas is not there")
	errNotMade = errors.New("the node is no member of a cluster yet")
)

// readNote takes over the map that group 0 has, if a replica of it is here.
func (n *Node) readNote() {
	g := n.Group(0)
	if g == nil {
		return
	}
	note := g.Note()
	if note == nil || note.Version == n.noteRead {
		return
	}
	m, err := decodeMap(note.Data)
	if err != nil {
		n.warnOften("the map of the cluster cannot be read: this node has to be upgraded: " + err.Error())
		return
	}
	n.noteRead = note.Version
	n.follow(m)
}

// follow takes over a map if it is later than the one that this node has.
func (n *Node) follow(m *Map) {
	n.adopting.Lock()
	defer n.adopting.Unlock()
	o := n.opened.Load()
	if err := m.check(); err != nil {
		n.warnOften("the map of another node cannot be used: " + err.Error())
		return
	}
	if n.closed || m.ID != o.m.ID || m.Version <= o.m.Version || m.Groups() != o.m.Groups() {
		return
	}
	n.mu.Lock()
	n.m = m
	maps.DeleteFunc(n.addresses, func(name string, _ string) bool {
		before, now := o.m.Member(name), m.Member(name)
		return now == nil || before == nil || before.Address != now.Address
	})
	n.pruneLocked()
	n.mu.Unlock()
	n.takePolicies(m) // before anybody sees that this node has the map
	n.opened.Store(&opened{m, o.groups})
	n.wake()
	n.logMembers(o.m, m)
	if o.m.has(&n.self) && !m.has(&n.self) {
		n.dismiss(m)
	}
	if err := n.store(false); err != nil {
		n.log.Error("the map of the cluster cannot be stored", "error", err)
	}
	n.takeUsers()
}

// pruneLocked forgets what is known of nodes that are no members any more. n.mu is held.
func (n *Node) pruneLocked() {
	prune(n.seen.Nodes, n.m)
	prune(n.others, n.m)
	n.trustLocked()
}

func prune[V any](of map[string]V, m *Map) {
	maps.DeleteFunc(of, func(name string, _ V) bool { return m.Member(name) == nil })
}

// logMembers logs how the members have changed.
func (n *Node) logMembers(before, now *Map) {
	for _, m := range now.Members {
		old := before.Member(m.Name)
		switch {
		case old == nil:
			n.log.Info("a node has joined the cluster", "joined", m.Name, "address", m.Address)
		case old.Instance != m.Instance:
			n.log.Warn("a node has joined again without its data", "joined", m.Name, "address", m.Address)
		case m.Leaving && !old.Leaving:
			n.log.Info("a node is leaving the cluster: its groups are moved to others", "leaving", m.Name)
		}
	}
	for _, m := range before.Members {
		if now.Member(m.Name) == nil {
			n.log.Info("a node is no member of the cluster any more", "left", m.Name)
		}
	}
}

// dismiss notes that this node is no member any more.
func (n *Node) dismiss(m *Map) {
	why := fmt.Sprintf("node %s is no member of the cluster any more: it was removed by CLUSTER FORGET. Remove "+
		"the directory %s to let it join as a new node", n.self.Name, n.options.Dir)
	if m.Member(n.self.Name) != nil {
		why = fmt.Sprintf("another node has joined the cluster as %s, while this one was away: remove the "+
			"directory %s to let this one join as a new node, under another --node-id", n.self.Name, n.options.Dir)
	}
	n.saved.Dismissed = why
	n.log.Error(why)
	n.leave()
}

// changeMap replaces the map, if this node leads group 0. change returns an error, or changed false
// if nothing is to be done.
func (n *Node) changeMap(change func(m *Map) (changed bool, err error)) error {
	n.changing.Lock()
	defer n.changing.Unlock()
	g := n.Group(0)
	if g == nil {
		return ErrNoMajority
	}
	if _, err := g.Leading(); err != nil {
		return ErrNoMajority
	}
	m, version, err := n.committedMap(g)
	if err != nil {
		return err
	}
	next := m.next()
	changed, err := change(next)
	if err != nil || !changed && n.committed == m {
		return err
	}
	if err := next.check(); err != nil {
		return err
	}
	if err := g.SetNote(group.Note{Version: version + 1, Data: next.encode()}); err != nil {
		return fmt.Errorf("%w (%w)", ErrNoMajority, err)
	}
	n.follow(next)
	return nil
}

// committedMap returns the map that group 0 has, with the version of its note. A new cluster has
// none yet, and one that was recovered has that of before: then it is this node's. n.changing is
// held.
func (n *Node) committedMap(g *group.Group) (m *Map, version uint64, err error) {
	own, note := n.Map(), g.Note()
	if note == nil {
		n.committed = nil
		return own, 0, nil
	}
	if n.committed == nil || n.committedIn != note {
		m, err := decodeMap(note.Data)
		if err != nil {
			return nil, 0, fmt.Errorf("the map of the cluster cannot be read: this node has to be upgraded: %w", err)
		}
		n.committed, n.committedIn = m, note
	}
	if n.committed.ID != own.ID {
		return own, note.Version, nil
	}
	return n.committed, note.Version, nil
}

// leadCluster does what is to be done by the leader of group 0.
func (n *Node) leadCluster() {
	if n.Partition(0) == nil {
		return
	}
	if err := n.changeMap(n.update); err != nil {
		n.log.Debug("the map of the cluster was not changed", "error", err)
		return
	}
	n.confirmUsers()
}

// update brings a map up to date: nodes that have moved, nodes that may leave.
func (n *Node) update(m *Map) (changed bool, err error) {
	changed = n.giveUsers(m)
	for i := range m.Members {
		member := &m.Members[i]
		now, ok := n.reported(member.Name)
		if before := *member; ok && now.Instance == member.Instance && now.Address != "" {
			member.moveTo(now)
			changed = changed || *member != before
		}
	}
	for _, member := range slices.Clone(m.Members) {
		if member.Leaving && n.gone(member.Name, m.Version-1) {
			m.Members = slices.DeleteFunc(m.Members, func(o Member) bool { return o.Name == member.Name })
			changed = true
		}
	}
	return changed, nil
}

// reported returns what a node is now, as it says itself.
func (n *Node) reported(name string) (Member, bool) {
	if name == n.self.Name {
		return n.itself(), true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.others[name]
	return o.report.Member, !o.at.IsZero()
}

// gone reports whether no group has a replica on a node, as their leaders say, who know the map.
func (n *Node) gone(name string, version uint64) bool {
	for number := range n.Map().Groups() {
		by, known := n.leaderOf(number)
		if !known || by.mapVersion != version ||
			slices.ContainsFunc(by.members, func(s group.Server) bool { return s.ID.Node == name }) {
			return false
		}
	}
	return true
}

func (n *Node) admit(newcomer Member) error {
	return n.changeMap(func(m *Map) (bool, error) {
		known := m.Member(newcomer.Name)
		switch {
		case known == nil:
			newcomer.Leaving = false
			m.Members = append(m.Members, newcomer)
			slices.SortFunc(m.Members, byName)
		case known.Leaving:
			return false, fmt.Errorf("node %s is being removed from the cluster: it can join when that is done",
				known.Name)
		case known.Instance == newcomer.Instance:
			return false, nil
		case n.up(known.Name) || time.Since(n.started) < 2*n.options.Timeout:
			return false, fmt.Errorf("two nodes have the name %s: one is a member, at %s, and the other one wants to "+
				"join, at %s: give that another --node-id", known.Name, known.Address, newcomer.Address)
		default:
			known.Instance = newcomer.Instance
			known.moveTo(newcomer)
		}
		m.place()
		return true, nil
	})
}

func (n *Node) forget(name string) error {
	return n.changeMap(func(m *Map) (bool, error) {
		member := m.Member(name)
		if member == nil {
			return false, fmt.Errorf("the cluster has no node %s", name)
		}
		if member.Leaving {
			return false, nil
		}
		member.Leaving = true
		rest := m.staying()
		up := 0
		for _, other := range rest {
			if n.up(other.Name) {
				up++
			}
		}
		switch {
		case len(rest) == 0:
			return false, fmt.Errorf("node %s is the last one of the cluster: stop it instead", name)
		case 2*up <= len(rest):
			return false, fmt.Errorf("without node %s, only %d of %d nodes would be there, which is no majority: "+
				"start or remove the others first", name, up, len(rest))
		}
		if len(rest) < replication {
			n.log.Warn("fewer nodes than replicas: no node may fail any more without calls being refused",
				"nodes", len(rest))
		}
		m.place()
		return true, nil
	})
}

// Request asks for a change of the members.
type Request struct {
	Join   *Member // makes it a member; nil: no
	Forget string  // name of a member that is to leave; "": none
	Users  []byte  // changes the users, see Users; nil: no
	Passed bool    // by a member that takes the called one for the leader of group 0
}

// ask has the leader of group 0 carry out a request.
func (n *Node) ask(r Request) (answer Answer, err error) {
	l := n.Leader(0)
	switch {
	case n.Map() == nil:
		return answer, errNotMade
	case l == nil || l.Name != n.self.Name && r.Passed:
		return answer, ErrNoMajority
	case l.Name != n.self.Name:
		r.Passed = true
		if err := n.callNode(l.Name, "Ask", r, &answer, n.options.Timeout*4); err != nil {
			return answer, err
		}
		n.follow(answer.Map)
		return answer, nil
	}
	switch {
	case r.Users != nil:
		if answer.Deleted, err = n.changeUsers(r.Users); err == nil {
			n.shareMap()
		}
	case r.Join != nil:
		err = n.admit(*r.Join)
	default:
		err = n.forget(r.Forget)
	}
	answer.Map = n.Map()
	return answer, err
}

// Answer is the answer to a Request that was carried out.
type Answer struct {
	Map     *Map
	Deleted int // users
}

// Forget removes a node, by its name or id, in the background: its groups are moved to others
// first.
func (n *Node) Forget(node string) error {
	m := n.Map()
	if m == nil {
		return errNotMade
	}
	for _, member := range m.Members {
		if member.Name == node || member.ID == node {
			_, err := n.ask(Request{Forget: member.Name})
			return err
		}
	}
	return &UnknownNodeError{node}
}

// UnknownNodeError reports that the cluster does not have a node.
type UnknownNodeError struct{ Node string }

func (e *UnknownNodeError) Error() string { return "Unknown node " + e.Node }

// Meet has the node at an address, host:port between nodes, join this cluster.
func (n *Node) Meet(ctx context.Context, address string) error {
	m := n.Map()
	if m == nil {
		return errNotMade
	}
	if n.Leader(0) == nil {
		return ErrNoMajority
	}
	p := n.peerAt(address)
	defer p.close()
	var theirs Greeting
	if err := p.call("Greet", n.greeting(), &theirs, n.options.Timeout); err != nil {
		return fmt.Errorf("the node at %s cannot be reached: %w", address, err)
	}
	switch {
	case theirs.Map != nil && theirs.Map.ID == m.ID:
		return nil
	case theirs.Map != nil:
		return fmt.Errorf("node %s at %s belongs to another cluster", theirs.Member.Name, address)
	}
	invitation := Invitation{Address: address}
	for _, member := range m.Members {
		invitation.Join = append(invitation.Join, member.Address)
	}
	return p.call("Invite", invitation, &struct{}{}, n.options.Timeout)
}

// Invitation has a node without a cluster join one.
type Invitation struct {
	Address string   // at which the node was reached
	Join    []string // addresses of members
}

func (n *Node) invited(i Invitation) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.m != nil {
		return errors.New("the node belongs to a cluster already")
	}
	n.invitations = append(n.invitations, i.Join...)
	if n.self.Address == "" {
		n.self.Address = i.Address
	}
	return nil
}

// join asks a member to make this node one, and begins when it is.
func (n *Node) join(address string, groups int) error {
	if n.options.Groups != 0 && n.options.Groups != groups {
		return otherGroups(groups, n.options.Groups)
	}
	p := n.peerAt(address)
	defer p.close()
	var theirs Answer
	self := n.itself()
	if err := p.call("Ask", Request{Join: &self}, &theirs, n.options.Timeout*8); err != nil {
		return fmt.Errorf("the node cannot join the cluster yet, which is tried again: %w", err)
	}
	m := theirs.Map
	if m == nil || m.check() != nil || !m.has(&n.self) {
		return errors.New("the cluster has not answered with a map that has this node")
	}
	n.adopting.Lock()
	defer n.adopting.Unlock()
	if n.closed {
		return nil
	}
	n.saved.Begun = true
	if err := n.accept(m); err != nil {
		return err
	}
	n.log.Info("this node is a member of the cluster", "id", m.ID, "nodes", len(m.Members), "groups", m.Groups())
	return n.openGroups()
}
