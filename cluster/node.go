package cluster

import (
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft-wal/types"

	"rlserver/cluster/group"
	"rlserver/cluster/mux"
	"rlserver/cluster/wanted"
	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/internal/clock"
	"rlserver/internal/stats"
)

// The number of groups of a cluster.
const (
	DefaultGroups = 6
	MaxGroups     = stats.MaxGroups
)

// Options are what a node is made of.
type Options struct {
	Name     string // of this node
	Dir      string
	Listener net.Listener   // of the connections between nodes
	More     []net.Listener // the same for further addresses of this machine
	TLS      *tls.Config    // of these; nil: none
	Secret   []byte         // that all nodes know; empty: none
	Join     []string       // host:port of nodes to look for, this one may be among them
	Expect   int            // how many nodes make a new cluster
	Groups   int            // of a new cluster; 0: DefaultGroups, or what the cluster has
	Timeout  time.Duration
	Patience time.Duration // see group.Options; 0: for ever
	// for how long calls of another node may begin here after it was heard; 0: three halves of
	// Timeout
	Wanted  time.Duration
	Sync    bool   // whether logs are synced before an entry counts as stored
	Host    string // for clients; "": that of the node's address
	Port    int    // for clients without TLS; 0: none
	TLSPort int    // for clients with TLS; 0: none
	Version string
	Engine  engine.Options // of each group; the journal is set here, and Policies if they are nil
	Clock   clock.Source
	Log     *slog.Logger
	// ObserveSync and ObserveSnapshot are those of each group
	ObserveSync, ObserveSnapshot func(time.Duration)
	LongCall                     func() (end func()) // see group.Options
	// called when this node begins to lead a group; nil: nothing
	Begun func(*group.Partition)
	// called, on a goroutine of its own, when the policies have changed; nil: nothing
	PoliciesChanged func()

	Users Users // nil: the cluster has none
	// ForceRecover makes the node go on alone if no majority is there, see recover.go.
	ForceRecover bool

	// set by tests: called at each step of a forced recovery, may end it
	recovery func() error
	// set by tests; 0: the default
	balanceInterval time.Duration
	roundInterval   time.Duration // between two rounds of gossip's work
	awaitOthers     time.Duration // see await
	disk            func(types.VFS) types.VFS
}

// Node is this process as a member of a cluster. Its methods are safe for concurrent use.
type Node struct {
	options Options
	log     *slog.Logger
	port    *mux.Port
	control *mux.Layer
	forward *mux.Layer
	self    Member
	nonce   uint64
	wanted  *wanted.Table

	started time.Time

	confirmed atomic.Bool // see confirmUsers
	taking    sync.Mutex  // held while users are taken over

	changing    sync.Mutex  // held while the map of group 0 is changed
	committed   *Map        // the one of committedIn
	committedIn *group.Note // of group 0

	// adopting is held while the map is replaced, and groups are opened and closed
	adopting sync.Mutex
	saved    saved       // what the directory has, but for what store adds
	syncs    atomic.Bool // whether the logs are synced now
	closed   bool

	out     chan struct{}          // closed when the node is dismissed or refused
	leave   func()                 // closes out
	opened  atomic.Pointer[opened] // nil until the cluster is founded
	leaving atomic.Bool            // it is about to stop
	// this start is in the directory: others may hear of it
	startStored atomic.Bool
	// of one goroutine each, see gossip
	noteRead  uint64 // version of the note of group 0 that was read last
	truncated []int  // groups whose replica was set aside
	movers    []mover
	elected   []bool // by group, see elect

	mu          sync.Mutex
	m           *Map                 // nil: this node belongs to no cluster yet
	others      map[string]other     // what is known of other nodes, by name
	warned      map[string]time.Time // what was logged, see warnOften
	invitations []string             // addresses to join
	addresses   map[string]string    // where nodes were last found, by name
	seen        seen                 // of the others
	stored      string               // what the file of that has; of the goroutine that writes it
	saveSeen    chan struct{}        // capacity 1: a start is to be written
	orders      uint64               // how many reports it has made
	setBack     string               // why it is refused by others; "": it is not
	awaited     time.Duration        // how long that of all others was waited for
	allReported bool                 // all have, or were waited for long enough
	leaders     []leader             // of each group, as other nodes report
	// groups that this node was told to hand over, and does not get back, see drain.go
	declined map[int]bool
	ready    chan struct{} // closed when the groups are open
	changed  chan struct{} // closed, and replaced, when there is work for a round

	trusted atomic.Pointer[[]string] // whose replicas are spoken with, sorted; nil: nobody's

	syncTimes latest // of the disk of this node
	// of the goroutine that balances
	slow     int               // at how many intervals in a row another disk was much faster
	yielded  map[int]time.Time // when groups were handed to a faster disk
	warnedOf time.Duration     // the --cluster-timeout that the log says is needed; 0: none

	reporting sync.Mutex // held while a report is made

	quit context.CancelFunc
	work sync.WaitGroup
}

// opened is what a member has. It is replaced, not changed.
type opened struct {
	m      *Map
	groups []*group.Group // by number, nil without a replica here
}

// other is what a node knows of another one.
type other struct {
	report   Report    // the last one
	at       time.Time // when that has come; zero: there is none
	accepted bool      // it accepts this start
	offset   int64     // its system clock minus this monotonic clock, µs
	off      bool      // its system clock is not followed, which may be that of this node as well
	trips    *latest   // round trips to it; nil: none is known
}

// leader is who leads a group, and what that node says of it.
type leader struct {
	name       string // "": none is known
	term       uint64
	members    []group.Server
	keepUp     []group.ReplicaID
	mapVersion uint64 // of the map that it knows
}

// Open opens the node in its directory, and looks for the others in the background.
func Open(o Options) (*Node, error) {
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return nil, err
	}
	state, err := loadState(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := usable(o, state); err != nil {
		return nil, err
	}
	if o.Engine.Policies == nil {
		o.Engine.Policies = new(policy.Shared)
	}
	o.balanceInterval = cmp.Or(o.balanceInterval, defaultBalanceInterval)
	o.roundInterval = cmp.Or(o.roundInterval, o.Timeout/8)
	o.Wanted = cmp.Or(o.Wanted, o.Timeout*3/2)
	o.awaitOthers = cmp.Or(o.awaitOthers, awaitTimeouts*o.Timeout)
	id := sha1.Sum([]byte(o.Name))
	n := &Node{
		options: o, log: o.Log, nonce: rand.Uint64(), started: time.Now(),
		self: Member{
			Name: o.Name, ID: hex.EncodeToString(id[:]), Address: addressOf(o.Listener.Addr()),
			Host: o.Host, Port: o.Port, TLSPort: o.TLSPort, Version: o.Version, Instance: rand.Uint64(),
		},
		addresses: make(map[string]string), others: make(map[string]other), saveSeen: make(chan struct{}, 1),
		ready: make(chan struct{}), out: make(chan struct{}), yielded: make(map[int]time.Time),
		declined: make(map[int]bool), warned: make(map[string]time.Time), changed: make(chan struct{}),
	}
	n.leave = sync.OnceFunc(func() { close(n.out) })
	n.wanted = wanted.New(o.Name, o.Wanted, time.Now())
	n.saved.Synced = o.Sync
	n.syncs.Store(o.Sync)
	n.port = mux.New(mux.Options{
		Listener: o.Listener, More: o.More, TLS: o.TLS, Secret: o.Secret, Log: o.Log, Resolve: n.resolve,
	})
	n.control, n.forward = n.port.Layer(mux.Control), n.port.Layer(mux.Forward)
	n.work.Go(func() { n.serveControl(n.control) })
	n.adopting.Lock()
	err = n.resume(state)
	n.adopting.Unlock()
	if err != nil {
		n.control.Close()
		n.port.Close()
		n.work.Wait()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.quit = cancel
	n.work.Go(func() { n.seek(ctx) })
	return n, nil
}

// resume goes on with what the directory has. n.adopting is held.
func (n *Node) resume(state *saved) error {
	err := removeLeftovers(n.options.Dir)
	if err == nil {
		n.seen, err = loadSeen(n.options.Dir)
	}
	n.mu.Lock()
	n.allReported = state == nil // it has acknowledged nothing
	if state != nil {
		n.saved, n.self.Instance, n.m = *state, state.Instance, state.Map
		n.saved.Map = nil // it is replaced
		n.saved.Synced = n.options.Sync && (state.Synced || state.Clean)
		n.keepName()
	}
	if n.m != nil {
		prune(n.seen.Nodes, n.m)
		n.port.SetCluster(n.m.clusterID())
	}
	n.saved.Starts++
	n.saved.History = append(n.saved.History, n.nonce)
	n.saved.History = n.saved.History[max(0, len(n.saved.History)-maxStarts):]
	n.mu.Unlock()
	if n.m != nil {
		n.takeUsers()
	}
	if err == nil && state != nil && mayBeCut(state) {
		n.log.Warn("the machine was restarted while this node was running without --appendfsync always: the " +
			"ends of its logs may be missing. It must not vote with them, and gets its groups from the other nodes")
		err = setAside(n.options.Dir)
	}
	if err == nil {
		n.truncated, err = folders(n.options.Dir, truncatedPrefix)
	}
	if err == nil {
		err = n.forceRecover(state)
	}
	if err == nil {
		err = n.store(false)
	}
	n.startStored.Store(err == nil)
	if err == nil && n.m != nil && n.m.Founded {
		if !n.saved.Begun {
			err = n.begin(n.m)
		}
		if err == nil {
			err = n.store(false)
		}
		if err == nil {
			err = n.openGroups()
		}
	}
	return err
}

// keepName has a node that listens on all addresses go by the host name that the others know,
// rather than by its present IP address. n.mu is held.
func (n *Node) keepName() {
	if n.self.Address != "" || n.m == nil || !n.m.has(&n.self) {
		return
	}
	known := n.m.Member(n.self.Name).Address
	if host, _, err := net.SplitHostPort(known); err == nil && net.ParseIP(host) == nil {
		n.self.Address = known
	}
}

// addressOf returns where a listener can be reached; "": it listens on all addresses.
func addressOf(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return ""
	}
	return a.String()
}

// mayBeCut reports whether the end of the logs may be missing.
func mayBeCut(state *saved) bool { return !state.Synced && !state.Clean && state.Boot != bootID() }

// usable returns why the state in a directory cannot be used with these options.
func usable(o Options, state *saved) error {
	switch {
	case state == nil:
		if found, _ := filepath.Glob(filepath.Join(o.Dir, groupPrefix+"*")); len(found) > 0 {
			return fmt.Errorf("the directory %s has the groups of a node, and no file %s: restore it, or remove "+
				"all of the directory to let the node join as a new one", o.Dir, mapFile)
		}
		return nil
	case state.Node != o.Name:
		return fmt.Errorf("the directory %s belongs to node %s, and this one is %s: start with --node-id %[2]s, or "+
			"with another --dir", o.Dir, state.Node, o.Name)
	case state.Map != nil && o.Groups != 0 && o.Groups != state.Map.Groups():
		return otherGroups(state.Map.Groups(), o.Groups)
	case state.Dismissed != "":
		return errors.New(state.Dismissed)
	}
	return nil
}

// otherGroups returns the error for a number of groups that is not that of the cluster.
func otherGroups(has, wanted int) error {
	return fmt.Errorf("the cluster has %d groups, and --cluster-groups is %d: the number is fixed when a cluster is "+
		"made", has, wanted)
}

// store writes what the node knows to the directory.
func (n *Node) store(clean bool) error {
	s := n.saved
	s.Format, s.Node, s.Instance, s.Boot, s.Map = stateFormat, n.options.Name, n.self.Instance, bootID(), n.m
	s.Clean = clean
	n.mu.Lock()
	s.Dismissed = cmp.Or(s.Dismissed, n.setBack)
	n.mu.Unlock()
	return s.save(n.options.Dir)
}

// itself returns what this node is now.
func (n *Node) itself() Member {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.self
}

func closeGroups(groups []*group.Group) (err error) {
	var work sync.WaitGroup
	errs := make([]error, len(groups))
	for i, g := range groups {
		if g != nil {
			work.Go(func() { errs[i] = g.Close() })
		}
	}
	work.Wait()
	return errors.Join(errs...)
}

// SetSync sets whether the logs are synced from now on, in place of Options.Sync. If the file that
// says so cannot be written, nothing changes.
func (n *Node) SetSync(on bool) error {
	n.adopting.Lock()
	defer n.adopting.Unlock()
	if n.closed || n.syncs.Load() == on {
		return nil
	}
	if n.saved.Synced && !on {
		n.saved.Synced = false
		if err := n.store(false); err != nil {
			n.saved.Synced = true
			return err
		}
	}
	n.syncs.Store(on)
	for _, g := range n.Replicas() {
		g.SetSync(on)
	}
	return nil
}

// Close ends the node. Leave should have been called before.
func (n *Node) Close() error {
	n.quit()
	n.control.Close()
	n.adopting.Lock()
	n.closed = true
	n.adopting.Unlock()
	err := closeGroups(n.groups())
	err = errors.Join(err, n.port.Close())
	n.work.Wait()
	err = errors.Join(err, n.storeSeen())
	return errors.Join(err, n.store(err == nil))
}

// Ready is closed when the node is a member of a cluster that is founded.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Forwarded returns the listener of the connections on which other nodes pass on calls of clients.
func (n *Node) Forwarded() net.Listener { return n.forward }

// DialNode opens a connection on which calls of clients are passed on to a node.
func (n *Node) DialNode(node string) (net.Conn, error) {
	return n.port.Dial(node, mux.Forward, n.options.Timeout)
}

// Epoch returns the epoch of calls that are sent to a node now, see package wanted.
func (n *Node) Epoch(node string) string { return n.wanted.Epoch(node) }

// Reachable reports whether a node has reported lately, see package wanted.
func (n *Node) Reachable(node string) bool { return n.wanted.Reachable(node, time.Now()) }

// Over reports whether calls of an epoch cannot begin any more at a node.
func (n *Node) Over(node, epoch string) bool { return n.wanted.Over(node, epoch, time.Now()) }

// End ends an epoch, and has the node hear of it.
func (n *Node) End(node, epoch string) {
	if n.wanted.End(node, epoch) {
		n.wake()
	}
}

// Wanted returns a function that reports whether calls of an epoch, which another node has sent,
// may begin now; nil if they always may.
func (n *Node) Wanted(epoch string) func() bool {
	yes := n.wanted.Wanted(epoch)
	if yes == nil {
		return nil
	}
	return func() bool { return yes(time.Now()) }
}

// Dismissed is closed when the node has learned that it is no member any more. Why says why.
func (n *Node) Dismissed() <-chan struct{} { return n.out }

// Why returns why the node is no member any more; nil: it is one, or not yet.
func (n *Node) Why() error {
	n.adopting.Lock()
	defer n.adopting.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if why := cmp.Or(n.saved.Dismissed, n.setBack); why != "" {
		return errors.New(why)
	}
	return nil
}

// Name returns the node's name.
func (n *Node) Name() string { return n.self.Name }

// Map returns the cluster's map, nil until the node belongs to one that is founded. It is not to be
// changed.
func (n *Node) Map() *Map {
	if o := n.opened.Load(); o != nil {
		return o.m
	}
	return nil
}

// known is Map before the cluster is founded as well.
func (n *Node) known() *Map {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.m
}

// groups returns the replicas on this node, by number.
func (n *Node) groups() []*group.Group {
	if o := n.opened.Load(); o != nil {
		return o.groups
	}
	return nil
}

// Group returns the replica of a group on this node, nil if there is none.
func (n *Node) Group(number int) *group.Group {
	if groups := n.groups(); number < len(groups) {
		return groups[number]
	}
	return nil
}

// Replicas returns the replicas on this node.
func (n *Node) Replicas() []*group.Group {
	return slices.DeleteFunc(slices.Clone(n.groups()), func(g *group.Group) bool { return g == nil })
}

// Partition returns the partition of a group if this node leads it, otherwise nil.
func (n *Node) Partition(number int) *group.Partition {
	if g := n.Group(number); g != nil {
		if p, err := g.Leading(); err == nil {
			return p
		}
	}
	return nil
}

// Leader returns the node that leads a group, nil if none is known.
func (n *Node) Leader(number int) *Member {
	m := n.Map()
	if m == nil {
		return nil
	}
	if g := n.Group(number); g != nil {
		st := g.Status()
		switch {
		case st.Fault != nil: // it hears nothing: the reports of the others say who leads
		case st.Leader == n.self.Name && !st.Leads:
			return nil // it begins
		case st.Leader != "":
			return m.Member(st.Leader)
		case slices.Contains(st.Members, group.Server{ID: g.ID(), Voter: true}):
			return nil // there is an election, or this node is cut off
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.leaders[number]; n.upLocked(l.name) {
		return m.Member(l.name)
	}
	return nil
}

// AwaitChange returns when it is time to look again who leads a group.
func (n *Node) AwaitChange(ctx context.Context, number int) {
	if g := n.Group(number); g != nil {
		g.AwaitChange(ctx)
		return
	}
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
	}
}

// LastReport returns how long ago a node has reported, and whether it was since the start.
func (n *Node) LastReport(name string) (ago time.Duration, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.others[name].at
	return time.Since(at), !at.IsZero()
}
