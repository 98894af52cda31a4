package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"time"

	"rlserver/cluster/group"
	"rlserver/cluster/mux"
)

// Nodes call each other on the control channel, by net/rpc.

// Greeting is what nodes tell each other until the cluster is founded, and when one starts.
type Greeting struct {
	Member Member
	Nonce  uint64 // of the process: a node that finds its own has dialled itself
	Groups int    // that it expects a new cluster to have
	Expect int
	Map    *Map // nil: it belongs to no cluster yet
}

// control serves the calls of other nodes.
type control struct{ n *Node }

func (c *control) Greet(theirs Greeting, own *Greeting) error {
	*own = c.n.greeting()
	return nil
}

// Create makes the node a member of the cluster that a map describes, or tells it that the cluster
// is founded.
func (c *control) Create(m Map, _ *struct{}) error { return c.n.adopt(&m) }

// errStarting is the answer of a node whose start is not in its directory yet. If it ends before,
// its next start has the same number and another identity. Whoever had noted the first one would
// take the directory for one that was set back.
var errStarting = errors.New("this node is starting, and its start is not stored yet")

// Exchange takes a report and answers with one.
func (c *control) Exchange(theirs Report, own *Report) error {
	if !c.n.startStored.Load() {
		return errStarting
	}
	c.n.receive(theirs)
	*own = c.n.report(theirs.Node)
	if m := c.n.Map(); m != nil && theirs.MapVersion < m.Version {
		own.Map = m
	}
	return nil
}

// MapFor is a map for the leader of groups.
type MapFor struct {
	Map    Map
	Groups []int
}

// Follow has the node take over a map, and answers which of the groups it has led since.
func (c *control) Follow(args MapFor, led *[]int) error {
	if c.n.Map() != nil {
		*led = c.n.followFor(&args.Map, args.Groups)
	}
	return nil
}

// Ask changes the members.
func (c *control) Ask(r Request, answer *Answer) (err error) {
	*answer, err = c.n.ask(r)
	return err
}

// Invite has the node join a cluster.
func (c *control) Invite(i Invitation, _ *struct{}) error { return c.n.invited(i) }

// RemovedArgs name a replica of a group.
type RemovedArgs struct {
	Group   int
	Replica group.ReplicaID
}

// Removed is what the leader of a group knows about a replica.
type Removed struct {
	Known   bool // false: it does not lead
	Removed bool // the group has committed its removal
	Term    uint64
}

// Removed answers whether a replica is no member of its group any more.
func (c *control) Removed(args RemovedArgs, answer *Removed) error {
	if g := c.n.Group(args.Group); g != nil {
		answer.Removed, answer.Term, answer.Known = g.Removed(args.Replica)
	}
	return nil
}

// Time answers what this node knows about the time.
func (c *control) Time(number int, t *Time) error {
	*t = c.n.timeOf(number)
	return nil
}

// serveControl serves the control channel until it is closed.
func (n *Node) serveControl(l *mux.Layer) {
	server := rpc.NewServer()
	if err := server.RegisterName("Cluster", &control{n}); err != nil {
		panic(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go server.ServeConn(c)
	}
}

// peer is the connection to the control channel of another node. It is dialled when it is used, by
// one goroutine at a time.
type peer struct {
	n      *Node
	dial   func() (net.Conn, error)
	client *rpc.Client // nil: there is no connection
	conn   net.Conn
}

var errTooLong = errors.New("no answer in time")

// call calls the other node, and closes the connection if that fails. After an error, the reply is
// not to be used: an answer that comes late may be written to it.
func (p *peer) call(method string, args, reply any, timeout time.Duration) (err error) {
	if p.client == nil {
		c, err := p.dial()
		if err != nil {
			return err
		}
		p.n.seeOwnAddress(c)
		p.client, p.conn = rpc.NewClient(c), c
	}
	p.conn.SetWriteDeadline(time.Now().Add(timeout)) // a large map waits for the other node to read
	select {
	case done := <-p.client.Go("Cluster."+method, args, reply, make(chan *rpc.Call, 1)).Done:
		err = done.Error
	case <-time.After(timeout):
		err = errTooLong
	}
	if _, answered := err.(rpc.ServerError); err != nil && !answered {
		p.close()
	}
	return err
}

func (p *peer) close() {
	if p.client != nil {
		p.client.Close()
		p.client = nil
	}
}

func (n *Node) peerAt(address string) *peer {
	return &peer{n: n, dial: func() (net.Conn, error) {
		return n.port.DialAddress(address, mux.Control, 0, n.options.Timeout)
	}}
}

// peerNamed returns a peer by its name, whose address may change.
func (n *Node) peerNamed(name string) *peer {
	return &peer{n: n, dial: func() (net.Conn, error) { return n.port.Dial(name, mux.Control, n.options.Timeout) }}
}

// callNode calls a node once, by its name.
func (n *Node) callNode(name, method string, args, reply any, timeout time.Duration) error {
	p := n.peerNamed(name)
	defer p.close()
	return p.call(method, args, reply, timeout)
}

// seeOwnAddress notes from where other nodes are reached, if the node listens on all addresses and
// nothing says how it is called.
func (n *Node) seeOwnAddress(c net.Conn) {
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	_, port, errPort := net.SplitHostPort(n.port.Addr().String())
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.self.Address == "" && err == nil && errPort == nil {
		n.self.Address = net.JoinHostPort(host, port)
	}
}

// resolve returns where a node can be dialled.
func (n *Node) resolve(name string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if address := n.addresses[name]; address != "" {
		return address, nil
	}
	if n.m != nil {
		if member := n.m.Member(name); member != nil {
			return member.Address, nil
		}
	}
	return "", fmt.Errorf("the address of node %s is not known", name)
}
