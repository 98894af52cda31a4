package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"rlserver/cluster"
	"rlserver/cluster/group"
	"rlserver/cluster/overview"
	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/internal/listen"
	"rlserver/internal/storage"
	"rlserver/resp"
	"rlserver/resp/command"
	"rlserver/resp/config"
)

// clustered reports whether the server is a node of a cluster.
func (c *setup) clustered() bool { return c.Start.Cluster.Enabled == "yes" }

// validateCluster checks the settings of a node against each other.
func (c *setup) validateCluster() error {
	ports := c.Ports()
	switch start := &c.Start; {
	case ports.Port == 0 && ports.TLSPort == 0:
		return errors.New("--cluster needs --port or --tls-port: other nodes redirect clients there")
	case nodePort(c.Settings) > math.MaxUint16:
		return fmt.Errorf("the port for the other nodes would be %d, which is not a valid port: give --cluster-port",
			nodePort(c.Settings))
	case len(start.Cluster.Join) == 0 && start.Cluster.Expect > 1:
		return errors.New("--cluster needs --join with the nodes of the cluster, such as --join rl-0,rl-1,rl-2")
	case !start.AppendOnly:
		return errors.New(
			"--cluster needs --appendonly yes: a node without a log would lose entries that it has acknowledged",
		)
	case start.Databases != 16 && start.Databases != 1:
		return fmt.Errorf("--cluster supports only database 0, and --databases is %d", start.Databases)
	case start.Cluster.ProxyPort != 0 && start.Cluster.ProxyPort == nodePort(c.Settings):
		return fmt.Errorf("--proxy-port %d is the port for the other nodes: it needs one of its own",
			start.Cluster.ProxyPort)
	case len(ports.Bind) == 0:
		return errors.New("--cluster needs --bind: other nodes and clients connect to its addresses")
	case len(c.Store().Save) > 0:
		return errors.New("--cluster does not have --save: each group of slots makes snapshots as its log grows")
	}
	c.fillCluster()
	return nil
}

// fillCluster sets the settings of a node that depend on others, so that CONFIG GET shows them.
func (c *setup) fillCluster() {
	start := &c.Start
	start.Databases = 1
	own, clients := &start.Cluster, c.Ports()
	own.Port = nodePort(c.Settings)
	own.Hold = cmp.Or(own.Hold, 2*own.Timeout)
	own.AnnouncePort = announced(own.AnnouncePort, clients.Port)
	own.AnnounceTLSPort = announced(own.AnnounceTLSPort, clients.TLSPort)
}

// nodePort returns the port at which the other nodes reach this one.
func nodePort(s *config.Settings) int {
	ports := s.Ports()
	return cmp.Or(s.Start.Cluster.Port, cmp.Or(ports.Port, ports.TLSPort)+10000)
}

// checkClusterDir returns an error if a directory has the data of a server without a cluster.
func checkClusterDir(dir string) error {
	for _, pattern := range []string{"*.log", "*.snapshot"} {
		if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) > 0 {
			return fmt.Errorf(
				"%s has the data of a server without a cluster, %s: a node of a cluster needs a --dir of its own",
				dir,
				filepath.Base(found[0]),
			)
		}
	}
	return nil
}

// groupShards is how many shards the engine of a group has: a node has several groups.
const groupShards = 16

// clusterParts are the parts of a node. It implements resp.Cluster.
type clusterParts struct {
	p      *parts
	engine engine.Options
	node   *cluster.Node
	hold   time.Duration
}

func newClusterParts(p *parts, o engine.Options) *clusterParts {
	start := &p.settings.Start.Cluster
	o.Databases, o.Shards, o.Memory = 1, groupShards, p.engine.Memory()
	c := &clusterParts{p: p, engine: o, hold: time.Duration(start.Hold) * time.Millisecond}
	p.settings.ClusterGroups = c.Groups
	return c
}

// openCluster opens the node. It looks for the others in the background.
func (p *parts) openCluster() error {
	start := &p.settings.Start
	own := &start.Cluster
	name := own.Node
	if name == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return fmt.Errorf("give --node-id, as the host has no name: %w", err)
		}
	}
	port := own.Port
	listeners, err := listen.TCP(p.settings.Ports().Bind, port, "--bind")
	if err != nil {
		return err
	}
	var join []string
	for _, address := range own.Join {
		if _, _, err := net.SplitHostPort(address); err != nil {
			address = net.JoinHostPort(address, strconv.Itoa(port))
		}
		join = append(join, address)
	}
	if own.Expect%2 == 0 {
		p.log.Warn(
			"--bootstrap-expect is even: a cluster with one node fewer tolerates as many failures",
			"nodes",
			own.Expect,
		)
	}
	var secure *tls.Config
	if p.certs.Loaded() {
		if secure, err = p.certs.Nodes(); err != nil {
			listen.CloseAll(listeners)
			return fmt.Errorf("--cluster with TLS: %w", err)
		}
	}
	secret, err := readNodeSecret(own.SecretFile)
	if err != nil {
		listen.CloseAll(listeners)
		return err
	}
	if secret == "" && secure == nil && slices.ContainsFunc(listeners, reachable) {
		p.log.Warn("every client that can reach the port for other nodes can run commands as any user: give the nodes "+
			"--cluster-secret-file or TLS, or keep the port in a private network", "port", port)
	}
	opened := make(chan struct{})
	defer close(opened)
	p.cluster.node, err = cluster.Open(cluster.Options{
		Name: name, Dir: start.Dir, Listener: listeners[0], More: listeners[1:], TLS: secure, Secret: []byte(secret),
		Join: join, Expect: own.Expect,
		Groups:  own.Groups,
		Timeout: time.Duration(own.Timeout) * time.Millisecond, Sync: p.settings.Store().Sync == storage.SyncAlways,
		// a call waits for the entry before its own, and for its own
		Patience: max(p.cluster.hold, time.Duration(own.Timeout)*time.Millisecond) / 2,
		// a short hold time must not end leases before reports renew them
		Wanted: max(p.cluster.hold*3/4, time.Duration(own.Timeout)*time.Millisecond*3/2),
		Host:   own.AnnounceHost, Port: own.AnnouncePort, TLSPort: own.AnnounceTLSPort,
		Version: version, Engine: p.cluster.engine,
		Clock: p.source, Log: p.log, Begun: p.cluster.begun, Users: p.server,
		PoliciesChanged: func() {
			if <-opened; p.cluster.node != nil {
				p.server.PoliciesChanged()
			}
		},
		ObserveSync: p.server.ObserveSync, ObserveSnapshot: p.server.Stats.Snapshot.Observe,
		LongCall:     p.processors.LongCall,
		ForceRecover: own.Recover == "yes",
	})
	if err != nil {
		listen.CloseAll(listeners)
	}
	return err
}

// reachable reports whether other machines may be able to reach a listener.
func reachable(l net.Listener) bool {
	address, ok := l.Addr().(*net.TCPAddr)
	return ok && !address.IP.IsLoopback()
}

// announced returns the port at which clients reach a port of this node; 0: it has none.
func announced(announce, port int) int {
	if port == 0 {
		return 0
	}
	return cmp.Or(announce, port)
}

// begun starts the background work of a partition, which ends with it.
func (c *clusterParts) begun(p *group.Partition) {
	background := p.Engine.StartBackground(engine.BackgroundOptions{
		Now: p.Clock.Now, Expire: c.p.settings.ActiveExpiry,
		Refused: func() error {
			if !p.Leads() {
				return slot.ErrNoLeader
			}
			return nil
		},
	})
	go func() {
		<-p.Ended()
		background.Stop()
	}()
	if p.Group == policyGroup && c.p.file != nil {
		go c.setPoliciesOf(p)
	}
}

// policyGroup is the group that has the policies. The other groups copy them.
const policyGroup = 0

// leads returns the partition of a group if this node leads it, otherwise nil.
func (c *clusterParts) leads(number int) *group.Partition {
	if g := c.node.Group(number); g != nil {
		if p, err := g.Leading(); err == nil {
			return p
		}
	}
	return nil
}

// setPoliciesOf sets the policies of the file when this node begins to serve the partition that has
// them.
func (c *clusterParts) setPoliciesOf(p *group.Partition) {
	for !p.Leads() {
		select {
		case <-p.Ended():
			return
		case <-time.After(time.Millisecond):
		}
	}
	c.p.file.SetAgain()
}

// Groups implements resp.Cluster.
func (c *clusterParts) Groups() int {
	if c.node == nil { // it is being opened
		return 0
	}
	if m := c.node.Map(); m != nil {
		return m.Groups()
	}
	return 0
}

// Lead implements resp.Cluster.
func (c *clusterParts) Lead(number int) (led resp.Partition, err error) {
	var m *cluster.Member
	if g := c.node.Group(number); g != nil {
		p, err := g.Leading()
		if err == nil {
			return resp.Partition{Engine: p.Engine, Clock: p.Clock, Leadership: p}, nil
		}
		if moved, ok := errors.AsType[*slot.MovedError](err); ok {
			m = c.node.Map().Member(moved.Node)
		}
	}
	if m == nil {
		m = c.node.Leader(number)
	}
	if m != nil && m.Name != c.node.Name() {
		return led, movedTo(m)
	}
	return led, slot.ErrNoLeader
}

// Await implements resp.Cluster.
func (c *clusterParts) Await(ctx context.Context, number int) (resp.Partition, error) {
	ctx, cancel := context.WithTimeout(ctx, c.hold)
	defer cancel()
	return c.await(ctx, number)
}

func (c *clusterParts) await(ctx context.Context, number int) (resp.Partition, error) {
	for {
		p, err := c.Lead(number)
		if err != slot.ErrNoLeader || ctx.Err() != nil {
			return p, err
		}
		c.node.AwaitChange(ctx, number)
	}
}

// Leader implements forward.Nodes.
func (c *clusterParts) Leader(ctx context.Context, number int) (node string, err error) {
	_, err = c.await(ctx, number)
	if moved, ok := errors.AsType[*slot.MovedError](err); ok {
		return moved.Node, nil
	}
	return c.node.Name(), err
}

// DialNode implements forward.Nodes.
func (c *clusterParts) DialNode(node string) (net.Conn, error) { return c.node.DialForward(node) }

// ChangeUsers implements resp.Cluster.
func (c *clusterParts) ChangeUsers(change []byte) (deleted int, err error) {
	deleted, refused, err := c.node.ChangeUsers(change, c.hold)
	switch {
	case refused:
		err = engine.Error(err.Error())
	case err != nil:
		err = engine.Error("TRYAGAIN the users may have been changed or not: " + err.Error())
	}
	return deleted, err
}

// Epoch implements forward.Nodes.
func (c *clusterParts) Epoch(node string) string { return c.node.Epoch(node) }

// Hears implements forward.Nodes.
func (c *clusterParts) Hears(node string) bool { return c.node.Hears(node) }

// Over implements forward.Nodes.
func (c *clusterParts) Over(node, epoch string) bool { return c.node.Over(node, epoch) }

// End implements forward.Nodes.
func (c *clusterParts) End(node, epoch string) { c.node.End(node, epoch) }

// Wanted implements resp.Cluster.
func (c *clusterParts) Wanted(epoch string) func() bool { return c.node.Wanted(epoch) }

func hostOf(m *cluster.Member) string {
	if m.Host != "" {
		return m.Host
	}
	host, _, _ := net.SplitHostPort(m.Address)
	return host
}

func addressOf(m *cluster.Member, tls bool) string {
	ports := command.ClusterNode{Port: m.Port, TLSPort: m.TLSPort}
	return net.JoinHostPort(hostOf(m), strconv.Itoa(ports.PortFor(tls)))
}

func movedTo(m *cluster.Member) *slot.MovedError {
	return &slot.MovedError{Node: m.Name, Address: addressOf(m, false), TLSAddress: addressOf(m, true)}
}

// View implements resp.Cluster.
func (c *clusterParts) View() (v command.ClusterView) {
	m := c.node.Map()
	if m == nil {
		return v
	}
	ids := make(map[string]string)
	for i := range m.Members {
		member := &m.Members[i]
		_, busPort, _ := net.SplitHostPort(member.Address)
		bus, _ := strconv.Atoi(busPort)
		ago, heard := c.node.Heard(member.Name)
		up := member.Name == c.node.Name() || heard && ago < c.hold
		ids[member.Name] = member.ID
		v.Nodes = append(v.Nodes, command.ClusterNode{
			ID: member.ID, Name: member.Name, Host: hostOf(member), Port: member.Port, TLSPort: member.TLSPort,
			BusPort: bus, Up: up,
		})
		if member.Name == c.node.Name() {
			v.Me = member.ID
		}
	}
	for number, names := range m.Replicas {
		nodes := []string{""}
		leader := c.node.Leader(number)
		if leader != nil && ids[leader.Name] != "" { // it may be a later member than the map has
			nodes[0] = leader.ID
		}
		for _, name := range names {
			if leader == nil || name != leader.Name {
				nodes = append(nodes, ids[name])
			}
		}
		v.Groups = append(v.Groups, nodes)
		voters := 0
		if g := c.node.Group(number); g != nil {
			st := g.Status()
			v.Term = max(v.Term, st.Term)
			for _, s := range st.Members {
				if s.Voter {
					voters++
				}
			}
		}
		v.Voters = append(v.Voters, voters)
	}
	return v
}

// Overview returns what this node knows about its cluster.
func (c *clusterParts) Overview() *overview.Cluster {
	o := c.node.Overview(c.hold, func(m *cluster.Member) string { return addressOf(m, false) })
	for i := range o.Groups {
		o.Groups[i].GroupCounts = c.p.server.Stats.Group(i).Snapshot()
	}
	o.Proxy = c.p.server.ProxyCounts()
	return o
}

// Refusal implements resp.Cluster.
func (c *clusterParts) Refusal() error { return nil }

// WriteInfo implements resp.Cluster.
func (c *clusterParts) WriteInfo(section string, write func(string, any)) {
	switch section {
	case "cluster":
		write("cluster_enabled", 1)
		c.Overview().WriteCluster(write)
	case "replication":
		c.Overview().WriteReplication(write)
	}
}

// HandOver implements resp.Cluster.
func (c *clusterParts) HandOver(ctx context.Context) error {
	return c.node.HandOver(ctx, "CLUSTER FAILOVER")
}

// Drain implements resp.Cluster.
func (c *clusterParts) Drain(ctx context.Context) error {
	err := c.node.Drain(ctx, "CLUSTER DRAIN")
	if err != nil {
		c.p.log.Warn("not all groups were handed over: the node goes on trying", "because", err)
		return err
	}
	c.p.log.Info("this node leads no group any more, and gets none until it is started again")
	return nil
}

// dismissed is closed when the node is no longer a member of its cluster; nil without a cluster.
func (c *clusterParts) dismissed() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.node.Dismissed()
}

// Meet implements resp.Cluster.
func (c *clusterParts) Meet(ctx context.Context, address string) error {
	return c.node.Meet(ctx, address)
}

// Forget implements resp.Cluster.
func (c *clusterParts) Forget(node string) error { return c.node.Forget(node) }

// handOver is HandOver at the end of the server.
func (c *clusterParts) handOver(ctx context.Context) {
	if err := c.node.Leave(ctx, "the node stops"); err != nil {
		c.p.log.Warn("not all groups were handed over: their other nodes elect leaders", "groups", err)
		return
	}
	c.p.log.Info("this node leads no group any more: it can stop")
}
