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
	"syscall"
	"time"

	"rlserver/cluster"
	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/internal/listen"
	"rlserver/internal/storage"
	"rlserver/resp"
	"rlserver/resp/config"
	"rlserver/web"
)

// validate implements mode.
func (*clusterParts) validate(c *setup) error {
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
		return errors.New("--cluster needs --appendonly yes: a node without a log would lose entries that it has " +
			"acknowledged")
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

// maxClients implements mode: calls are passed on over connections to other nodes, and from them.
func (*clusterParts) maxClients(c *setup, most int) int {
	return max(1, most/2, most-4*c.Start.Cluster.ProxyLinks)
}

// checkDir implements mode: a directory may not have the data of a server alone.
func (*clusterParts) checkDir(dir string) error {
	for _, pattern := range []string{"*.log", "*.snapshot"} {
		if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) > 0 {
			return fmt.Errorf("%s has the data of a server without a cluster, %s: a node of a cluster needs a --dir "+
				"of its own", dir, filepath.Base(found[0]))
		}
	}
	return nil
}

// ownLog implements mode: the groups have their logs.
func (*clusterParts) ownLog(*setup) bool { return false }

// connectEngine implements mode.
func (c *clusterParts) connectEngine(o *engine.Options) {
	o.Policies = new(policy.Shared)
	c.engine = *o
}

// connectServer implements mode.
func (c *clusterParts) connectServer(p *parts, o *resp.Options) {
	c.p, c.hold = p, time.Duration(p.settings.Start.Cluster.Hold)*time.Millisecond
	c.engine.Databases, c.engine.Shards, c.engine.Memory = 1, groupShards, p.engine.Memory()
	p.settings.ClusterGroups = c.Groups
	o.Cluster, o.Hold, o.Store = c, c.hold, c.store()
}

// open opens the node. It looks for the others in the background.
func (c *clusterParts) open(p *parts) error {
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
		p.log.Warn("--bootstrap-expect is even: a cluster with one node fewer tolerates as many failures",
			"nodes", own.Expect)
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
	c.Node, err = cluster.Open(cluster.Options{
		Name: name, Dir: start.Dir, Listener: listeners[0], More: listeners[1:], TLS: secure, Secret: []byte(secret),
		Join: join, Expect: own.Expect,
		Groups:  own.Groups,
		Timeout: time.Duration(own.Timeout) * time.Millisecond, Sync: p.settings.Store().Sync == storage.SyncAlways,
		// a call waits for the entry before its own, and for its own
		Patience: max(c.hold, time.Duration(own.Timeout)*time.Millisecond) / 2,
		// a short hold time must not end leases before reports renew them
		Wanted: max(c.hold*3/4, time.Duration(own.Timeout)*time.Millisecond*3/2),
		Host:   own.AnnounceHost, Port: own.AnnouncePort, TLSPort: own.AnnounceTLSPort,
		Version: version, Engine: c.engine,
		Clock: p.source, Log: p.log, Begun: c.begun, Users: p.server,
		PoliciesChanged: func() {
			if <-opened; c.Node != nil {
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

// dismissed implements mode: it is closed when the node is no longer a member of its cluster.
func (c *clusterParts) dismissed() <-chan struct{} { return c.Node.Dismissed() }

func (c *clusterParts) why() error { return c.Node.Why() }

// handOver implements mode: it is HandOver at the end of the server.
func (c *clusterParts) handOver(ctx context.Context, _ *parts) {
	if err := c.Node.Leave(ctx, "the node stops"); err != nil {
		c.p.log.Warn("not all groups were handed over: their other nodes elect leaders", "groups", err)
		return
	}
	c.p.log.Info("this node leads no group any more: it can stop")
}

// close closes the node of the cluster, or gives up: the other nodes have what it has promised.
func (c *clusterParts) close(context.Context, *parts) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	closed := make(chan error, 1)
	if within(ctx, func() { closed <- c.Node.Close() }) {
		return <-closed
	}
	return fmt.Errorf("the logs of the groups could not be closed within %v: the disk hangs", closeTime)
}

// restore implements mode: the groups load their own data.
func (*clusterParts) restore(context.Context, *parts) error { return nil }

// loaded implements mode: loading ends when the users of the cluster are known.
func (*clusterParts) loaded(*parts) {}

// accept implements mode: other nodes pass calls on.
func (c *clusterParts) accept(p *parts) { go p.server.ServeNodes(c.Node.Forwarded()) }

func (c *clusterParts) ready(*parts) error { return c.Overview().Ready() }

func (c *clusterParts) readyForTraffic(*parts) error { return c.Overview().ReadyForTraffic() }

// addState adds the cluster, and the state of the disk as its groups see it.
func (c *clusterParts) addState(_ *parts, state *web.State) {
	state.Cluster = c.Overview()
	t := state.Cluster.Totals()
	state.Disk.Saves, state.Disk.Durable, state.Disk.Syncs = t.Snapshots, 0, true
	switch err := state.Cluster.Disk(); {
	case errors.Is(err, syscall.ENOSPC):
		state.Disk.State, state.Disk.Failure = "full", err.Error()
	case err != nil:
		state.Disk.State, state.Disk.Failure = "failed", err.Error()
	}
}

// keyspaceOf implements mode.
func (c *clusterParts) keyspaceOf(_ *parts, name []byte) (e *engine.Engine, now int64) {
	groups := c.Groups()
	if groups == 0 {
		return nil, 0
	}
	p, err := c.Lead(slot.Group(slot.Of(name), groups))
	if err != nil {
		return nil, 0
	}
	return p.Engine, p.Clock.Now()
}
