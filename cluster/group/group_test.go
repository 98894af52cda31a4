package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
	"rlserver/cluster/mux"
	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
	"rlserver/internal/clock"
)

const (
	patience = 60 * time.Second // no condition takes so long, however slow the machine
	// steady is a timeout that no pause of a slow machine reaches. Nobody waits for it: trio.leader
	// has a node call an election at once.
	steady = 30 * time.Second
	short  = 400 * time.Millisecond // for tests that go on through any number of elections
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// trio is three nodes with a replica of one group each, in this process, over real sockets.
type trio struct {
	t     testing.TB
	dir   string
	nodes []*node

	mu    sync.Mutex
	cut   map[int]bool // nodes that reach nobody and are reached by nobody
	conns map[net.Conn][2]int

	timeout       time.Duration
	patience      time.Duration
	snapshotBytes int64
	digestEvery   time.Duration
	tickEvery     time.Duration
	trailing      uint64
	sync          bool
	log           *slog.Logger
	ahead         atomic.Int64 // by how much the system clocks are ahead, a time.Duration
}

type node struct {
	trio  *trio
	i     int
	group *Group
	// group, for the other nodes; nil: it is stopped
	running atomic.Pointer[Group]
	port    *mux.Port
	newer   byte        // see Options
	silent  atomic.Bool // it speaks with no other one, see Options.Speaks
	disk    func(types.VFS) types.VFS
	// that its engine uses; nil: its own ones
	policies *policy.Shared
	asks     func() // called when it asks for the time; nil: nothing
}

var names = []string{"a", "b", "c"}

func testLog() *slog.Logger {
	if os.Getenv("CLUSTER_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

func newTrio(t testing.TB) *trio {
	tr := &trio{
		t: t, dir: clustertest.Dir(t), timeout: steady, cut: make(map[int]bool), conns: make(map[net.Conn][2]int),
		log: testLog(),
	}
	for i := range names {
		n := &node{trio: tr, i: i}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		n.port = mux.New(mux.Options{Listener: l, Resolve: func(name string) (string, error) {
			return tr.nodes[slices.Index(names, name)].port.Addr().String(), nil
		}})
		n.port.SetCluster(mux.ClusterID{1})
		tr.nodes = append(tr.nodes, n)
	}
	t.Cleanup(func() {
		for _, n := range tr.nodes {
			n.stop()
			n.port.Close()
		}
	})
	return tr
}

func (n *node) start() {
	o := n.options(0)
	require.NoError(n.trio.t, Bootstrap(o, []ReplicaID{{Node: "a"}, {Node: "b"}, {Node: "c"}}))
	n.open(o)
}

func (n *node) options(instance uint64) Options {
	return Options{
		Node: names[n.i], Instance: instance, Dir: fmt.Sprint(n.trio.dir, "/", n.i), Sync: n.trio.sync,
		Timeout: n.trio.timeout, Patience: n.trio.patience, Policies: numbers{},
		Engine: engine.Options{Policies: n.policies},
		Clock:  n.trio.clock(), AskTime: n.askTime, Log: n.trio.log.With("node", names[n.i]),
		Layer:         func() Layer { return &cuttable{n.port.Instance(0, instance), n} },
		snapshotBytes: n.trio.snapshotBytes, digestEvery: n.trio.digestEvery, tickEvery: n.trio.tickEvery,
		Speaks: func(string) bool { return !n.silent.Load() }, newer: n.newer, Disk: n.disk, trailing: n.trio.trailing,
	}
}

// clock returns the system clock, ahead by what a test has set.
func (tr *trio) clock() clock.Source {
	system := clock.System()
	return clock.Source{Elapsed: system.Elapsed, Read: func() (int64, time.Duration) {
		wall, elapsed := system.Read()
		return wall + time.Duration(tr.ahead.Load()).Microseconds(), elapsed
	}}
}

// askTime asks the other nodes what time it is.
func (n *node) askTime(int64, func() bool) (ms int64, ok bool) {
	if n.asks != nil {
		n.asks()
	}
	for _, other := range n.trio.nodes {
		if g := other.running.Load(); other != n && g != nil {
			if at, known := g.Estimate(); known {
				ms, ok = max(ms, at), true
			}
		}
	}
	return ms, ok
}

func (n *node) open(o Options) {
	var err error
	n.group, err = Open(o)
	require.NoError(n.trio.t, err)
	n.running.Store(n.group)
}

func (n *node) stop() {
	if n.group != nil {
		n.running.Store(nil)
		assert.NoError(n.trio.t, n.group.Close())
		n.group = nil
	}
}

func (tr *trio) startAll() {
	for _, n := range tr.nodes {
		n.start()
	}
}

// cuttable is a layer whose connections a test can cut.
type cuttable struct {
	*mux.Layer
	node *node
}

func (c *cuttable) Dial(name string, instance uint64, timeout time.Duration) (net.Conn, error) {
	tr, to := c.node.trio, slices.Index(names, name)
	tr.mu.Lock()
	cut := tr.cut[c.node.i] || tr.cut[to]
	tr.mu.Unlock()
	if cut {
		return nil, errors.New("cut")
	}
	conn, err := c.Layer.Dial(name, instance, timeout)
	if err == nil {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if tr.cut[c.node.i] || tr.cut[to] {
			conn.Close()
			return nil, errors.New("cut")
		}
		tr.conns[conn] = [2]int{c.node.i, to}
	}
	return conn, err
}

// isolate cuts a node off.
func (tr *trio) isolate(i int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.cut[i] = true
	for conn, ends := range tr.conns {
		if slices.Contains(ends[:], i) {
			conn.Close()
			delete(tr.conns, conn)
		}
	}
}

func (tr *trio) heal() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	clear(tr.cut)
}

// eventually waits for a condition.
func (tr *trio) eventually(what string, condition func() bool) {
	tr.t.Helper()
	require.Eventually(tr.t, condition, patience, 5*time.Millisecond, what)
}

// leader waits until a node leads, other than those that are not to.
func (tr *trio) leader(not ...int) *node {
	tr.t.Helper()
	var found *node
	called := time.Now().Add(-time.Second)
	tr.eventually("a node leads", func() bool {
		var idle []*node
		pause := time.Second
		for _, n := range tr.nodes {
			if n.group == nil || slices.Contains(not, n.i) {
				continue
			}
			if _, err := n.group.Leading(); err == nil {
				found = n
				return true
			}
			if n.group.running.Load().raft.State() == raft.Follower {
				idle = append(idle, n)
			} else {
				pause = 5 * time.Second // an election is on; one whose log is behind never wins it
			}
		}
		if tr.timeout == steady && time.Since(called) > pause && len(idle) > 0 {
			called = time.Now()
			idle[rand.IntN(len(idle))].callElection()
		}
		return false
	})
	return found
}

// leading returns the node that leads, and its partition.
func (tr *trio) leading() (*node, *Partition) {
	tr.t.Helper()
	n := tr.leader()
	p, err := n.group.Leading()
	require.NoError(tr.t, err)
	return n, p
}

// callElection makes a node a candidate at once, as a leader does that hands over to it.
func (n *node) callElection() {
	id := n.group.ID().String()
	err := n.group.running.Load().trans.TimeoutNow(raft.ServerID(id), raft.ServerAddress(id),
		&raft.TimeoutNowRequest{RPCHeader: n.header()}, &raft.TimeoutNowResponse{})
	if err != nil {
		n.trio.t.Log("no election could be called, which is tried again:", err)
	}
}

// header returns that of a call by a node.
func (n *node) header() raft.RPCHeader {
	id := []byte(n.group.ID().String())
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: id, Addr: id}
}

const hour = int64(time.Hour / time.Millisecond)

// decide makes one call against a limit for an hour, and does not wait for its outcome.
func decide(r *Partition, key string, most int64) (allowed bool, err error) {
	tx := r.Engine.NewTx()
	k := r.Engine.Key([]byte(key))
	tx.Begin(r.Clock.Now(), 0, []engine.Key{k}, true)
	defer tx.End()
	d, err := tx.Decide(&engine.Limit{Key: k, Rule: rule.Rule{
		Kind: rule.Token, Token: limit.Bucket{Capacity: most, Refill: most, Period: hour},
	}, Cost: 1})
	return d.Allowed, err
}

// admit makes one call against a limit for an hour.
func admit(r *Partition, key string, most int64) (allowed bool, err error) {
	tx := r.Engine.NewTx()
	k := r.Engine.Key([]byte(key))
	tx.Begin(r.Clock.Now(), 0, []engine.Key{k}, true)
	d, err := tx.Slide(k, []limit.Window{{Limit: most, Length: hour}}, 1, nil)
	pos := tx.End()
	if err != nil {
		return false, err
	}
	return d.Allowed, r.Wait(pos)
}

// set sets a key to a string.
func set(r *Partition, key string, value []byte) error {
	tx := r.Engine.NewTx()
	k := r.Engine.Key([]byte(key))
	tx.Begin(r.Clock.Now(), 0, []engine.Key{k}, true)
	tx.Set(k, value, engine.SetMode{})
	return r.Wait(tx.End())
}

// used returns how many permits of a key a replica's engine has recorded.
func used(r *Replica, key string) int64 {
	tx := r.Engine.NewTx()
	k := r.Engine.Key([]byte(key))
	tx.Begin(0, 0, []engine.Key{k}, false)
	defer tx.End()
	set, err := tx.ZSet(k)
	if err != nil {
		return -1
	}
	return int64(set.Len())
}

func digest(r *Replica) object.Digest {
	tx := r.Engine.NewTx()
	tx.BeginAll(0, 0, false)
	defer tx.End()
	return tx.DigestAll()
}

// alike waits until all replicas have the same state, and nothing is on its way.
func (tr *trio) alike() {
	tr.t.Helper()
	tr.eventually("all replicas have the same state", func() bool {
		var first object.Digest
		applied := tr.nodes[0].group.running.Load().raft.AppliedIndex()
		for _, n := range tr.nodes { // first what is cheap to compare
			if n.group.running.Load().raft.AppliedIndex() != applied {
				return false
			}
		}
		for i, n := range tr.nodes {
			d := digest(n.group.running.Load().fsm.replica.Load())
			if i == 0 {
				first = d
			} else if d != first {
				return false
			}
		}
		return true
	})
}

func TestACallIsOnAllReplicas(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	_, r := tr.leading()
	for i := range 10 {
		allowed, err := admit(r, "k", 5)
		require.NoError(t, err)
		assert.Equal(t, i < 5, allowed)
	}
	tr.alike()
	for _, n := range tr.nodes {
		assert.Equal(t, int64(5), used(n.group.running.Load().fsm.replica.Load(), "k"))
	}
}

// Await is Leading, but waits for a leader until the context ends.
func (g *Group) Await(ctx context.Context) (*Partition, error) {
	for {
		p, err := g.Leading()
		if err != slot.ErrNoLeader || ctx.Err() != nil {
			return p, err
		}
		g.AwaitChange(ctx)
	}
}

func TestFollowersSayWhoLeads(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	leader := tr.leader()
	for _, n := range tr.nodes {
		if n == leader {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := n.group.Await(ctx)
		cancel()
		var moved *slot.MovedError
		require.ErrorAs(t, err, &moved)
		assert.Equal(t, names[leader.i], moved.Node)
	}
}

func TestARestartKeepsTheState(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	_, r := tr.leading()
	for range 3 {
		_, err := admit(r, "k", 5)
		require.NoError(t, err)
	}
	for _, n := range tr.nodes {
		n.stop()
	}
	tr.startAll()
	_, r = tr.leading()
	assert.Equal(t, int64(3), used(r.Replica, "k"))
	tr.alike()
}

// The time for which a whole cluster was stopped counts: replicas that apply what is left of the
// log do not take its end for the present.
func TestTimePassesWhileAllAreStopped(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	_, r := tr.leading()
	for i := range 100 {
		_, err := admit(r, fmt.Sprint("k", i), 5)
		require.NoError(t, err)
	}
	before := r.Clock.Now()
	for _, n := range tr.nodes {
		n.stop()
	}
	tr.ahead.Store(int64(time.Hour))
	tr.startAll()
	_, r = tr.leading()
	assert.GreaterOrEqual(t, r.Clock.Now(), before+hour-Slack.Milliseconds())
}

func TestALeaderThatIsCutOffAdmitsNothingAndIsRebuilt(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	old, r := tr.leading()
	allowed, err := admit(r, "k", 2)
	require.NoError(t, err)
	require.True(t, allowed)

	tr.isolate(old.i)
	_, err = admit(r, "k", 2) // decided here, and committed by nobody
	require.ErrorIs(t, err, ErrUnknown)

	next, err := tr.leader(old.i).group.Leading()
	require.NoError(t, err)
	allowed, err = admit(next, "k", 2)
	require.NoError(t, err)
	assert.True(t, allowed, "the other side has not seen it")
	tr.heal()
	tr.alike()
	assert.Equal(t, int64(1), old.group.Figures().Rebuilds)
	assert.Equal(t, int64(2), used(old.group.running.Load().fsm.replica.Load(), "k"))
}

// TestALeaderThatSpeaksWithNobodyAdmitsNothing keeps the connections to the others open.
func TestALeaderThatSpeaksWithNobodyAdmitsNothing(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	old, r := tr.leading()
	_, err := admit(r, "k", 2)
	require.NoError(t, err)
	tr.alike()

	old.silent.Store(true)
	_, err = admit(r, "k", 2)
	require.ErrorIs(t, err, ErrUnknown)
	tr.eventually("it stops", func() bool { return !r.Leads() })
	old.callElection()
	next, err := tr.leader(old.i).group.Leading()
	require.NoError(t, err)
	_, err = old.group.Leading()
	require.Error(t, err)
	_, err = admit(next, "k", 2)
	require.NoError(t, err)
	old.silent.Store(false)
	tr.alike()
	assert.Equal(t, int64(2), used(old.group.running.Load().fsm.replica.Load(), "k"))
}

func TestADeposedLeaderGivesNoDenial(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	old, r := tr.leading()
	_, err := admit(r, "k", 1)
	require.NoError(t, err)
	tr.isolate(old.i)
	_, err = admit(r, "k", 1)
	assert.Error(t, err, "a denial that nobody has confirmed")
	tr.eventually("it stops", func() bool { return !r.Leads() })
	_, err = admit(r, "k", 1)
	assert.Error(t, err)
}

func TestLeadershipThatIsHandedOverRebuildsNothing(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	seen := make(map[int]bool)
	for i := range 4 {
		leader, r := tr.leading()
		allowed, err := admit(r, "k", 100)
		require.NoError(t, err)
		require.True(t, allowed, i)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err = leader.group.HandOver(ctx, "a test")
		cancel()
		if err == nil {
			seen[tr.leader(leader.i).i] = true
		}
	}
	tr.alike()
	for _, n := range tr.nodes {
		assert.Zero(t, n.group.Figures().Rebuilds)
		assert.Equal(t, int64(4), used(n.group.running.Load().fsm.replica.Load(), "k"))
	}
	assert.NotEmpty(t, seen)
}

// A node may stop while it hands a group back to the node that should lead it. Neither of the two
// returns before leadership has ended.
func TestTwoHandOversWaitForEachOther(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	for range 5 {
		leader := tr.leader()
		node := leader.group.running.Load().raft
		term := node.CurrentTerm()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				err := leader.group.HandOver(ctx, "a test")
				leads := node.State() == raft.Leader && node.CurrentTerm() == term
				assert.True(t, err != nil || !leads, "it has returned, and raft still leads")
			})
		}
		both.Wait()
	}
}

func TestASnapshotOfABusyLeaderRestores(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	leader, r := tr.leading()
	stop, calls := make(chan struct{}), sync.WaitGroup{}
	for i := range 8 {
		calls.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := admit(r, fmt.Sprint("k", i, "-", n%50), 1000); err != nil {
					return
				}
			}
		})
	}
	for range 5 {
		require.NoError(t, leader.group.Snapshot())
	}
	close(stop)
	calls.Wait()
	want := digest(r.Replica)
	for _, n := range tr.nodes {
		n.stop()
	}
	tr.startAll()
	tr.leader()
	tr.alike()
	assert.Equal(t, want, digest(tr.nodes[leader.i].group.running.Load().fsm.replica.Load()))
}

func TestAReplicaThatIsFarBehindLoadsASnapshot(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.trailing = 16
	tr.startAll()
	leader := tr.leader()
	behind := tr.nodes[(leader.i+1)%3]
	behind.stop()
	require.NoError(t, os.RemoveAll(fmt.Sprint(tr.dir, "/", behind.i)))
	r, err := leader.group.Leading()
	require.NoError(t, err)
	// a leader still has entries that a snapshot covers while their file is the last: begin another
	for i := range 1 + segmentSize/maxBatch {
		require.NoError(t, set(r, "big", bytes.Repeat([]byte{byte(i)}, maxBatch)))
	}
	for i := range tr.trailing + 50 {
		_, err := admit(r, fmt.Sprint("k", i%7), 1000)
		require.NoError(t, err)
	}
	require.NoError(t, leader.group.Snapshot())
	behind.start()
	tr.alike()
	assert.Positive(t, used(behind.group.running.Load().fsm.replica.Load(), "k0"))
	_, loaded := behind.group.Sizes() // it has taken none itself
	assert.Positive(t, loaded, "it has loaded a snapshot")
	assert.Zero(t, behind.group.Figures().Snapshots)
}

// TestNothingIsAdmittedTwice has clients call the leader, while leaders are cut off, stopped and
// hand over. What is acknowledged never exceeds the limit, and is never forgotten.
func TestNothingIsAdmittedTwice(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.timeout, tr.snapshotBytes = short, 64<<10
	tr.startAll()
	const keys = 20
	maxOf := func(key int) int64 { return int64(10 + 30*key) } // some are used up soon, others not
	var groups [3]atomic.Pointer[Group]
	for i, n := range tr.nodes {
		groups[i].Store(n.group)
	}
	var acknowledged, unknown [keys]atomic.Int64
	var total atomic.Int64
	stop, clients := make(chan struct{}), sync.WaitGroup{}
	for c := range 12 {
		clients.Go(func() {
			for n := c; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				r, err := groups[n%3].Load().Leading()
				if err != nil {
					time.Sleep(100 * time.Microsecond)
					continue
				}
				k := n % keys
				allowed, err := admit(r, fmt.Sprint("k", k), maxOf(k))
				switch {
				case err != nil && allowed:
					unknown[k].Add(1)
				case err == nil && allowed:
					acknowledged[k].Add(1)
					total.Add(1)
				case err == nil:
					total.Add(1)
				}
			}
		})
	}
	for round := range 9 {
		before := total.Load()
		tr.eventually("calls are served", func() bool { return total.Load() > before+200 })
		leader := tr.leader()
		switch round % 3 {
		case 0:
			tr.isolate(leader.i)
			tr.leader(leader.i)
			tr.heal()
		case 1:
			leader.stop()
			tr.leader(leader.i)
			leader.start()
			groups[leader.i].Store(leader.group)
		case 2:
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			leader.group.HandOver(ctx, "a test")
			cancel()
		}
	}
	close(stop)
	clients.Wait()
	tr.leader()
	tr.alike()
	var admitted, lost int64
	r := &Partition{Replica: tr.nodes[0].group.running.Load().fsm.replica.Load()}
	for k := range keys {
		have := used(r.Replica, fmt.Sprint("k", k))
		assert.LessOrEqual(t, acknowledged[k].Load(), maxOf(k))
		assert.LessOrEqual(t, have, maxOf(k))
		assert.GreaterOrEqual(t, have, acknowledged[k].Load(), "an acknowledged admit is forgotten")
		assert.LessOrEqual(t, have, acknowledged[k].Load()+unknown[k].Load())
		admitted += acknowledged[k].Load()
		lost += have - acknowledged[k].Load()
	}
	t.Logf(
		"%d calls, %d admitted, %d permits lost to unknown outcomes, rebuilds %d %d %d",
		total.Load(),
		admitted,
		lost,
		tr.nodes[0].group.Figures().Rebuilds,
		tr.nodes[1].group.Figures().Rebuilds,
		tr.nodes[2].group.Figures().Rebuilds,
	)
}

// A leader that cannot hand over goes on, though raft takes no entries until the transfer has
// ended.
func TestALeaderThatCannotHandOverGoesOn(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	leader := tr.leader()
	gone := tr.nodes[(leader.i+1)%3]
	tr.isolate(gone.i)
	r, err := leader.group.Leading()
	require.NoError(t, err)
	_, err = admit(r, "k", 10) // which the other one does not get
	require.NoError(t, err)
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), short)
		require.Error(t, leader.group.HandOver(ctx, "a test", names[gone.i]))
		cancel()
		tr.eventually("it serves", func() bool {
			r, err := leader.group.Leading()
			if err != nil {
				return false
			}
			_, err = admit(r, "k", 10)
			return err == nil
		})
	}
}
