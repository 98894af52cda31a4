package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
	"rlserver/internal/clock"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// patience is when a test gives up. A machine that does other work as well gives the nodes of a
// test, with the race detector, as little as a twentieth of a processor: an election then takes
// many seconds, and so do a few calls.
const patience = 3 * time.Minute

// fleet is nodes in this process, over real sockets.
type fleet struct {
	t         *testing.T
	dir       string
	addresses []string
	options   []Options
	nodes     []*Node
	log       lines
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(p)
	if os.Getenv("CLUSTER_TEST_LOG") != "" {
		os.Stderr.Write(p)
	}
	return len(p), nil
}

func (l *lines) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

func newFleet(t *testing.T, size int, change func(i int, o *Options)) *fleet {
	f := &fleet{t: t, dir: clustertest.Dir(t), options: make([]Options, size), nodes: make([]*Node, size)}
	listeners := make([]net.Listener, size)
	for i := range size {
		var err error
		listeners[i], err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		f.addresses = append(f.addresses, listeners[i].Addr().String())
	}
	for i := range size {
		name := string(rune('a' + i))
		f.options[i] = Options{
			Name: name, Dir: filepath.Join(f.dir, name), Listener: listeners[i], Join: f.addresses, Expect: size,
			Groups: 4, Timeout: calm, Port: 7000 + i, Clock: clock.System(), Log: testLog(f, name),
			balanceInterval: 100 * time.Millisecond, roundInterval: 50 * time.Millisecond,
			awaitOthers: calm / 6,
		}
		if change != nil {
			change(i, &f.options[i])
		}
	}
	t.Cleanup(func() {
		for i := range f.nodes {
			f.stop(i)
		}
	})
	return f
}

// calm is a timeout that is rarely reached on a loaded machine. Tests do not wait for it, except
// for nodes that are to count as gone.
const calm = 3 * time.Second

func testLog(f *fleet, name string) *slog.Logger {
	return slog.New(slog.NewTextHandler(&f.log, nil)).With("node", name)
}

// start starts a node, on the address that it had before.
func (f *fleet) start(i int) error {
	o := f.options[i]
	if o.Listener == nil {
		f.eventually("the address is free", func() (err error) {
			o.Listener, err = net.Listen("tcp", f.addresses[i])
			return err
		})
	}
	f.options[i].Listener = nil
	n, err := Open(o)
	if err != nil {
		o.Listener.Close()
		return err
	}
	f.nodes[i] = n
	return nil
}

// startFleet is newFleet, and starts all nodes and waits until they are a cluster.
func startFleet(t *testing.T, size int) *fleet {
	f := newFleet(t, size, nil)
	f.startAll()
	f.stable()
	return f
}

func (f *fleet) startAll() {
	for i := range f.nodes {
		require.NoError(f.t, f.start(i))
	}
}

func (f *fleet) stop(i int) {
	if f.nodes[i] != nil {
		assert.NoError(f.t, f.nodes[i].Close())
		f.nodes[i] = nil
	}
}

func (f *fleet) eventually(what string, try func() error) {
	f.t.Helper()
	var err error
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if err = try(); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	require.NoError(f.t, err, what)
}

// stable waits until all running nodes agree on who leads each group.
func (f *fleet) stable() {
	f.t.Helper()
	f.eventually("each group has a leader", func() error {
		for _, n := range f.nodes {
			if n == nil {
				continue
			}
			if n.Map() == nil {
				return fmt.Errorf("node %s is no member yet", n.Name())
			}
			for g, names := range n.Map().Replicas {
				if slices.Contains(names, n.Name()) && n.Group(g) == nil {
					return fmt.Errorf("node %s has not opened its replica of group %d", n.Name(), g)
				}
				leader := n.Leader(g)
				if leader == nil {
					return fmt.Errorf("node %s knows no leader of group %d", n.Name(), g)
				}
				i := slices.IndexFunc(f.nodes, func(o *Node) bool { return o != nil && o.Name() == leader.Name })
				if i < 0 {
					return fmt.Errorf("node %s has not noticed that %s is gone", n.Name(), leader.Name)
				}
				led := f.nodes[i].Group(g)
				if led == nil {
					return fmt.Errorf("node %s has not opened group %d", leader.Name, g)
				}
				if _, err := led.Leading(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func TestNodesMakeACluster(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, func(i int, o *Options) {
		if i == 2 {
			o.Clock = clockThatIsOff(-time.Hour)
		}
	})
	f.startAll()
	f.stable()
	f.eventually("all have the map that group 0 holds", func() error {
		for _, n := range f.nodes {
			if n.Map().Version != 2 {
				return fmt.Errorf("node %s has version %d", n.Name(), n.Map().Version)
			}
		}
		return nil
	})
	m := f.nodes[0].Map()
	for i, n := range f.nodes {
		assert.Equal(t, m, n.Map())
		assert.Equal(t, 7000+i, m.Member(n.Name()).Port)
		assert.Equal(t, f.addresses[i], m.Member(n.Name()).Address)
	}
	assert.Equal(t, [][]string{{"a", "b", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"a", "b", "c"}}, m.Replicas)
	testLogged(f, "differs from the time of the cluster") // by c, or by those that follow its time
}

// TestAClusterThatStartsElectsAtOnce has nodes with a timeout that is never reached.
func TestAClusterThatStartsElectsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, func(_ int, o *Options) { o.Timeout = 10 * patience })
	for range 2 {
		f.startAll()
		f.stable()
		for g, names := range f.nodes[0].Map().Replicas {
			assert.Equal(t, names[0], f.nodes[0].Leader(g).Name)
		}
		for i := range f.nodes {
			f.stop(i)
		}
	}
}

func TestFiveNodesHaveThreeReplicasOfEachGroup(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 5)
	for _, n := range f.nodes {
		have := 0
		for g := range n.Map().Groups() {
			if n.Group(g) != nil {
				have++
			}
			require.NotNil(t, n.Leader(g), "node %s knows who leads group %d", n.Name(), g)
		}
		assert.Less(t, have, n.Map().Groups())
	}
}

func TestAClusterStartsAgain(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	id := f.nodes[0].Map().ID
	for i := range f.nodes {
		f.stop(i)
	}
	f.startAll()
	f.stable()
	assert.Equal(t, id, f.nodes[0].Map().ID)
}

func TestANodeThatLeavesHandsOver(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f.nodes[0].HandOver(ctx, "a test")
	f.stop(0)
	f.stable()
	for g := range f.nodes[1].Map().Groups() {
		assert.NotEqual(t, "a", f.nodes[1].Leader(g).Name)
	}
}

func TestWaitsForAllNodesThatAreExpected(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, nil)
	require.NoError(t, f.start(0))
	require.NoError(t, f.start(1))
	f.eventually("it says what it waits for", func() error {
		if text := f.log.get(); !strings.Contains(text, "2 of 3 are there") {
			return fmt.Errorf("logged: %s", text)
		}
		return nil
	})
	assert.Nil(t, f.nodes[0].Map())
	require.NoError(t, f.start(2))
	f.stable()
}

func TestWhatDoesNotFitIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		change func(i int, o *Options)
		says   string
	}{
		{"another number of groups", func(i int, o *Options) { o.Groups += i / 2 }, "--cluster-groups has to be the " +
			"same"},
		{"another number of nodes", func(i int, o *Options) { o.Expect += i / 2 }, "--bootstrap-expect has to be " +
			"the same"},
		{"two nodes with one name", func(i int, o *Options) {
			if i == 1 {
				o.Name = "a"
			}
		}, "two nodes have the name a"},
		{"a name that does not resolve", func(i int, o *Options) {
			o.Join = append(o.Join[:2:2], "no-such-host.invalid:1")
		}, "no-such-host.invalid"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 3, c.change)
			f.startAll()
			f.eventually("it is logged", func() error {
				if text := f.log.get(); !strings.Contains(text, c.says) {
					return fmt.Errorf("logged: %s", text)
				}
				return nil
			})
			assert.Nil(t, f.nodes[0].Map())
		})
	}
}

func TestANodeOfAnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	f.stop(2)
	other := startFleet(t, 1)
	other.stop(0)
	o := other.options[0]
	o.Listener, _ = net.Listen("tcp", f.addresses[2])
	require.NotNil(t, o.Listener)
	n, err := Open(o)
	require.NoError(t, err)
	defer n.Close()
	p := f.nodes[0].peerAt(f.addresses[2])
	defer p.close()
	err = p.call("Exchange", f.nodes[0].report(""), &Report{}, patience)
	assert.ErrorContains(t, err, "belongs to another cluster")
}

func TestADirectoryThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 1)
	f.stop(0)
	before := f.options[0]

	f.options[0].Name = "b"
	assert.ErrorContains(t, f.start(0), "belongs to node a, and this one is b")
	f.options[0] = before
	f.options[0].Groups = 5
	assert.ErrorContains(t, f.start(0), "the cluster has 4 groups, and --cluster-groups is 5")
	f.options[0] = before

	path := filepath.Join(before.Dir, mapFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, cut := range []int{0, 1, len(whole) / 2} {
		require.NoError(t, os.WriteFile(path, whole[:cut], 0o640))
		assert.ErrorContains(t, f.start(0), "cluster.json cannot be used")
	}
	require.NoError(t, os.Remove(path))
	assert.ErrorContains(t, f.start(0), "and no file cluster.json")
	s := saved{Format: stateFormat + 1, Node: "a"}
	require.NoError(t, s.save(before.Dir))
	assert.ErrorContains(t, f.start(0), "of another version")
}

func TestEachNodeComesToLeadItsGroups(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	f.eventually("the nodes that should lead do", func() error {
		m := f.nodes[0].Map()
		for g, names := range m.Replicas {
			if leader := f.nodes[0].Leader(g); leader == nil || leader.Name != names[0] {
				return fmt.Errorf("group %d is led by %v, want %s", g, leader, names[0])
			}
		}
		return nil
	})
	for _, n := range f.nodes {
		for g := range n.Map().Groups() {
			assert.Zero(t, n.Group(g).Figures().Rebuilds, "nothing is rebuilt for that")
		}
	}
}

func TestAReportThatComesBeforeTheClusterIsMadeIsIgnored(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, nil)
	require.NoError(t, f.start(0))
	var own Report
	c := &control{f.nodes[0]}
	require.NoError(t, c.Exchange(Report{Node: "b", Leads: map[int]uint64{0: 2}}, &own))
	assert.Empty(t, own.Leads)
}

func TestATroubleIsLoggedAtIntervals(t *testing.T) {
	logged := new(lines)
	n := &Node{log: slog.New(slog.NewTextHandler(logged, nil)), warned: make(map[string]time.Time)}
	for port := range 10 {
		n.warnOften(fmt.Sprintf("rl-0: read tcp 10.0.0.1:%d->10.0.0.2:16379: connection reset by peer", 40000+port))
		n.warnOften("rl-0: connection refused")
	}
	assert.Equal(t, 1, strings.Count(logged.get(), "connection reset by peer"))
	assert.Equal(t, 1, strings.Count(logged.get(), "connection refused"))
	assert.Len(t, n.warned, 2)
}
