package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"rlserver/cluster/group"
	"rlserver/cluster/mux"
)

// How a cluster begins: each node greets the addresses of --join until it finds as many nodes as
// are expected, none of which belongs to a cluster. Then the one whose name sorts first founds it.
// It stores the map, has all others store it (Create), and when all have, it tells them that the
// cluster is founded. Only then groups are opened. So a founder that ends in between begins again
// where it was, and a node that has lost its data later is not taken for one that is new.

// greeting returns what this node tells others about itself.
func (n *Node) greeting() Greeting {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Greeting{Member: n.self, Nonce: n.nonce, Groups: n.groupsWanted(), Expect: n.options.Expect, Map: n.m}
}

func (n *Node) groupsWanted() int {
	if n.options.Groups == 0 {
		return DefaultGroups
	}
	return n.options.Groups
}

const (
	seekInterval = 100 * time.Millisecond // between two rounds of greetings
	sayInterval  = 10 * time.Second       // between two log lines about the same trouble
)

// seek looks for the cluster until it is founded, and then exchanges reports.
func (n *Node) seek(ctx context.Context) {
	peers := make(map[string]*peer)
	for _, address := range n.options.Join {
		peers[address] = n.peerAt(address)
	}
	defer func() {
		for _, p := range peers {
			p.close()
		}
	}()
	said := make(map[string]time.Time)
	say := func(what string) {
		if time.Since(said[what]) > sayInterval {
			said[what] = time.Now()
			n.log.Warn(what)
		}
	}
	for ctx.Err() == nil {
		found := n.greetAll(peers, say)
		select {
		case <-n.ready:
			n.gossip(ctx)
			return
		default:
		}
		if err := n.tryToFound(found); err != nil {
			say(err.Error())
		}
		select {
		case <-ctx.Done():
		case <-n.ready:
		case <-time.After(seekInterval):
		}
	}
}

// greetAll greets all addresses, and returns what other nodes have answered, by name.
func (n *Node) greetAll(peers map[string]*peer, say func(string)) map[string]Greeting {
	var mu sync.Mutex
	found := make(map[string]Greeting)
	var work sync.WaitGroup
	for address, p := range peers {
		work.Go(func() {
			var g Greeting
			err := p.call("Greet", n.greeting(), &g, n.options.Timeout)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				say(fmt.Sprintf("a node of --join cannot be reached yet: %s: %s", address, err))
			case g.Nonce == n.nonce:
				n.mu.Lock()
				n.self.Address = address
				n.mu.Unlock()
			case g.Member.Name == n.self.Name:
				say(fmt.Sprintf("two nodes have the name %s, this one and the one at %s: give each its own --node-id",
					n.self.Name, address))
			default:
				g.Member.Address = address
				found[g.Member.Name] = g
				n.mu.Lock()
				n.addresses[g.Member.Name] = address
				n.mu.Unlock()
			}
		})
	}
	work.Wait()
	return found
}

// tryToFound founds the cluster if it is this node's turn, or goes on with it. It returns what is
// in the way.
func (n *Node) tryToFound(found map[string]Greeting) error {
	n.mu.Lock()
	m := n.m
	n.mu.Unlock()
	for _, g := range found {
		switch {
		case g.Map == nil || !g.Map.Founded:
		case m != nil && m.ID == g.Map.ID:
			return n.adopt(g.Map)
		case g.Map.Member(n.self.Name) != nil:
			return fmt.Errorf("node %s is a member of the cluster, but its directory %s has no data: it must not vote "+
				"without what it has agreed on: restore the directory, or start it under another name",
				n.self.Name, n.options.Dir)
		}
	}
	if m == nil {
		var err error
		if m, err = n.plan(found); m == nil {
			return err
		}
	}
	if m.Founder != n.self.Name {
		return fmt.Errorf("waiting for node %s, which makes the cluster", m.Founder)
	}
	return n.found(m)
}

// plan returns the map of the new cluster, if all nodes are there and this one is to make it.
func (n *Node) plan(found map[string]Greeting) (*Map, error) {
	n.mu.Lock()
	members := []Member{n.self}
	n.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		g := found[name]
		switch {
		case g.Map != nil:
			return nil, fmt.Errorf("waiting for node %s, which makes the cluster", g.Map.Founder)
		case g.Groups != n.groupsWanted():
			return nil, fmt.Errorf(
				"node %s wants %d groups and this one %d: --cluster-groups has to be the same on all",
				name,
				g.Groups,
				n.groupsWanted(),
			)
		case g.Expect != n.options.Expect:
			return nil, fmt.Errorf(
				"node %s expects %d nodes and this one %d: --bootstrap-expect has to be the same on all",
				name,
				g.Expect,
				n.options.Expect,
			)
		}
		members = append(members, g.Member)
	}
	switch {
	case len(members) < n.options.Expect:
		return nil, fmt.Errorf("waiting for nodes: %d of %d are there", len(members), n.options.Expect)
	case len(members) > n.options.Expect:
		return nil, fmt.Errorf("there are %d nodes, and --bootstrap-expect is %d", len(members), n.options.Expect)
	}
	var id mux.ClusterID
	rand.Read(id[:])
	m := newMap(id, n.self.Name, members, n.groupsWanted())
	if m.Members[0].Name != n.self.Name {
		return nil, nil // that one's turn
	}
	return m, n.accept(m)
}

// found has all other members store the map, and then begin.
func (n *Node) found(m *Map) error {
	for _, founded := range []bool{false, true} {
		next := *m
		next.Founded = founded
		if founded {
			if err := n.adopt(&next); err != nil {
				return err
			}
		}
		for _, member := range m.Members {
			if member.Name == n.self.Name {
				continue
			}
			p := n.peerNamed(member.Name)
			err := p.call("Create", next, &struct{}{}, n.options.Timeout*10)
			p.close()
			if err != nil && !founded {
				return fmt.Errorf("making the cluster: node %s: %w", member.Name, err)
			}
			// a node that did not hear that it is founded learns it from a greeting
		}
	}
	return nil
}

// accept stores a map.
func (n *Node) accept(m *Map) error {
	n.adopting.Lock()
	defer n.adopting.Unlock()
	return n.acceptLocked(m)
}

func (n *Node) acceptLocked(m *Map) error {
	n.mu.Lock()
	before := n.m
	n.m = m
	n.mu.Unlock()
	if err := n.store(false); err != nil {
		n.mu.Lock()
		n.m = before
		n.mu.Unlock()
		return err
	}
	n.port.SetCluster(m.clusterID())
	return nil
}

// adopt makes this node a member of the cluster of a map, and begins if that is founded.
func (n *Node) adopt(m *Map) error {
	n.adopting.Lock()
	defer n.adopting.Unlock()
	if err := m.check(); err != nil {
		return err
	}
	switch {
	case m.Member(n.self.Name) == nil:
		return fmt.Errorf("node %s is no member of the cluster %s", n.self.Name, m.ID)
	case n.m != nil && n.m.ID != m.ID:
		return errors.New("the node belongs to another cluster")
	case n.m != nil && n.m.Founded:
		return nil
	case n.m == nil && m.Founded:
		return errors.New("the node has no data, and the cluster is founded")
	}
	if err := n.acceptLocked(m); err != nil || !m.Founded {
		return err
	}
	n.log.Info("the cluster is made", "id", m.ID, "nodes", len(m.Members), "groups", m.Groups())
	return n.openGroups()
}

// gossip exchanges reports with all members until the context ends.
func (n *Node) gossip(ctx context.Context) {
	var work sync.WaitGroup
	for _, member := range n.Map().Members {
		if member.Name == n.self.Name {
			continue
		}
		work.Go(func() {
			p := n.peerNamed(member.Name)
			defer p.close()
			ticker := time.NewTicker(n.options.Timeout / 4)
			defer ticker.Stop()
			for {
				var theirs Report
				if p.call("Exchange", n.report(), &theirs, n.options.Timeout) == nil {
					n.heard(theirs)
				}
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
			}
		})
	}
	work.Go(func() { n.balance(ctx) })
	work.Go(func() {
		ticker := time.NewTicker(policyInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if list, ok := n.ownPolicies(); ok {
				n.copyPolicies(list)
			}
		}
	})
	work.Wait()
}

// report returns which groups this node leads.
func (n *Node) report() Report {
	groups := n.groups()
	r := Report{
		Node:    n.self.Name,
		Leads:   make(map[int]uint64),
		Last:    make(map[int]uint64),
		Digests: make(map[int]group.Digest),
	}
	for i, g := range groups {
		if g == nil {
			continue
		}
		if d := g.Digest(); d.Index != 0 {
			r.Digests[i] = d
		}
		if st := g.Status(); st.Leads {
			r.Leads[i], r.Last[i] = st.Term, st.Last
		}
	}
	r.Policies, r.HasPolicies = n.ownPolicies()
	return r
}

// heard notes another node's report.
func (n *Node) heard(r Report) {
	if n.Map() == nil {
		return // the other one has begun already
	}
	if r.HasPolicies {
		n.copyPolicies(r.Policies)
	}
	for i, last := range r.Last {
		if g := n.Group(i); g != nil {
			g.HeardLast(last)
		}
	}
	for i, d := range r.Digests {
		if g := n.Group(i); g != nil {
			g.HeardDigest(r.Node, d)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if now.Sub(n.heardAt[r.Node]) > n.options.Timeout {
		n.heardSince[r.Node] = now
	}
	n.heardAt[r.Node] = now
	for i := range n.leaders {
		term, leads := r.Leads[i]
		switch l := &n.leaders[i]; {
		case leads && term >= l.term:
			*l = leader{r.Node, term}
		case !leads && l.name == r.Node:
			l.name = ""
		}
	}
}
