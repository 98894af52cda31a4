package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"rlserver/cluster/mux"
)

// How a cluster begins: each node greets the addresses of --join until it finds as many nodes as
// are expected, none of which belongs to a cluster. Then the one whose name sorts first founds it.
// It stores the map, has all others store it (Create), and when all have, it tells them that the
// cluster is founded. Only then the replicas are written, once, and opened. So a founder that ends
// in between begins again where it was, and a node that has lost its data later does not take
// itself for one that the cluster begins with.
//
// A node that finds a cluster that is founded joins it, see members.go.

// greeting returns what this node tells others about itself.
func (n *Node) greeting() Greeting {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Greeting{Member: n.self, Nonce: n.nonce, Groups: n.groupsWanted(), Expect: n.options.Expect, Map: n.m}
}

func (n *Node) groupsWanted() int { return cmp.Or(n.options.Groups, DefaultGroups) }

const (
	seekInterval = 100 * time.Millisecond // between two rounds of greetings
	warnInterval = 10 * time.Second       // between two log lines about the same trouble
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
	for ctx.Err() == nil {
		n.mu.Lock()
		for _, address := range n.invitations {
			if peers[address] == nil {
				peers[address] = n.peerAt(address)
			}
		}
		n.mu.Unlock()
		found := n.greetAll(peers)
		select {
		case <-n.ready:
			n.gossip(ctx)
			return
		default:
		}
		if err := n.tryToFound(found); err != nil {
			n.warnOften(err.Error())
		}
		select {
		case <-ctx.Done():
		case <-n.ready:
		case <-time.After(seekInterval):
		}
	}
}

// localAddress is what differs in the same network error of two connections.
var localAddress = regexp.MustCompile(`\S+->`)

// warnOften logs a warning that may be repeated often, at intervals.
func (n *Node) warnOften(what string, args ...any) {
	trouble := localAddress.ReplaceAllString(what, "")
	n.mu.Lock()
	due := time.Since(n.warned[trouble]) > warnInterval
	if due {
		n.warned[trouble] = time.Now()
	}
	n.mu.Unlock()
	if due {
		n.log.Warn(what, args...)
	}
}

// greetAll greets all addresses, and returns what other nodes have answered, by name.
func (n *Node) greetAll(peers map[string]*peer) map[string]Greeting {
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
				n.warnOften(fmt.Sprintf("a node of --join cannot be reached yet: %s: %s", address, err))
			case g.Nonce == n.nonce:
				n.mu.Lock()
				n.self.Address = address
				n.mu.Unlock()
			case g.Member.Name == n.self.Name:
				n.warnOften(fmt.Sprintf("two nodes have the name %s, this one and the one at %s: give each its own "+
					"--node-id", n.self.Name, address))
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
	m := n.known()
	for _, g := range found {
		switch {
		case g.Map == nil || !g.Map.Founded:
		case m == nil:
			return n.join(g.Member.Address, g.Map.Groups())
		case m.ID == g.Map.ID:
			began := *m // as all have it that it begins with
			began.Founded = true
			return n.adopt(&began)
		}
	}
	if m == nil {
		var err error
		if m, err = n.plan(found); m == nil || err != nil {
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
			return nil, fmt.Errorf("node %s wants %d groups and this one %d: --cluster-groups has to be the same on "+
				"all", name, g.Groups, n.groupsWanted())
		case g.Expect != n.options.Expect:
			return nil, fmt.Errorf("node %s expects %d nodes and this one %d: --bootstrap-expect has to be the same "+
				"on all", name, g.Expect, n.options.Expect)
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
	n.adopting.Lock()
	defer n.adopting.Unlock()
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
			err := n.callNode(member.Name, "Create", next, &struct{}{}, n.options.Timeout*10)
			if err != nil && !founded {
				return fmt.Errorf("making the cluster: node %s: %w", member.Name, err)
			}
			// a node that did not hear that it is founded learns it from a greeting
		}
	}
	return nil
}

// accept stores a map. n.adopting is held.
func (n *Node) accept(m *Map) error {
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
	case !m.has(&n.self):
		return fmt.Errorf("node %s has another directory than the one that the cluster %s knows", n.self.Name, m.ID)
	case n.closed:
		return errors.New("the node stops")
	}
	if err := n.accept(m); err != nil || !m.Founded {
		return err
	}
	if err := n.begin(m); err != nil {
		return err
	}
	if err := n.store(false); err != nil {
		return err
	}
	n.log.Info("the cluster is made", "id", m.ID, "nodes", len(m.Members), "groups", m.Groups())
	return n.openGroups()
}
