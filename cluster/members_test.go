package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
	"rlserver/cluster/group"
	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/engine/limit"
)

// add adds a node to the fleet that is to join the others.
func (f *fleet) add(change func(*Options)) int {
	f.t.Helper()
	i := len(f.nodes)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(f.t, err)
	o := f.options[0]
	name := string(rune('a' + i))
	o.Name, o.Dir, o.Listener, o.Join = name, filepath.Join(f.dir, name), l, f.addresses[:2]
	o.Port, o.Log = 7000+i, testLog(f, name)
	if change != nil {
		change(&o)
	}
	f.addresses = append(f.addresses, l.Addr().String())
	f.options, f.nodes = append(f.options, o), append(f.nodes, nil)
	return i
}

// matches waits until the groups have the members that the map wants, and nodes have no others.
func (f *fleet) matches(names ...string) {
	f.t.Helper()
	f.eventually("the groups have the members that the map wants", func() error {
		for _, n := range f.nodes {
			if n == nil || !strings.Contains(strings.Join(names, " "), n.Name()) {
				continue
			}
			m := n.Map()
			if m == nil || len(m.Members) != len(names) {
				return fmt.Errorf("node %s has another map: %+v", n.Name(), m)
			}
			for _, name := range names {
				if m.Member(name) == nil {
					return fmt.Errorf("node %s is no member to %s", name, n.Name())
				}
			}
			for g, want := range m.Replicas {
				if by, known := n.leaderOf(g); !known || !matches(want, by.members) {
					return fmt.Errorf("group %d has %v, want %v, says %s", g, by.members, want, n.Name())
				}
				if has := n.Group(g) != nil; has != strings.Contains(strings.Join(want, " "), n.Name()) {
					return fmt.Errorf("node %s has a replica of group %d: %v, of %v", n.Name(), g, has, want)
				}
			}
		}
		return nil
	})
}

func testLogged(f *fleet, what string) {
	f.t.Helper()
	f.eventually("it is logged", func() error {
		if text := f.log.get(); !strings.Contains(text, what) {
			return fmt.Errorf("want %s, logged: %s", what, text)
		}
		return nil
	})
}

// load is clients that call the leaders, against limits of an hour.
type load struct {
	f        *fleet
	nodes    [8]atomic.Pointer[Node]
	admitted [loadKeys]atomic.Int64
	total    atomic.Int64
	stop     chan struct{}
	clients  sync.WaitGroup
}

const loadKeys = 16

func loadLimit(key int) int64 { return int64(20 + 100*key) }

func (f *fleet) load() *load {
	l := &load{f: f, stop: make(chan struct{})}
	l.update()
	for c := range 4 {
		l.clients.Go(func() {
			for n := c; ; n++ {
				select {
				case <-l.stop:
					return
				default:
				}
				l.call(n)
			}
		})
	}
	f.t.Cleanup(l.end)
	return l
}

// update lets the clients see the nodes that there are.
func (l *load) update() {
	for i := range l.nodes {
		if i < len(l.f.nodes) {
			l.nodes[i].Store(l.f.nodes[i])
		}
	}
}

func (l *load) call(n int) {
	time.Sleep(time.Millisecond / 2)
	key := n % loadKeys
	for i := range l.nodes {
		node := l.nodes[(n+i)%len(l.nodes)].Load()
		if node == nil || node.Map() == nil {
			continue
		}
		g := node.Group(key % node.Map().Groups())
		if g == nil {
			continue
		}
		p, err := g.Leading()
		if err != nil {
			continue
		}
		allowed, err := admit(p, key)
		if err != nil {
			return
		}
		if allowed {
			l.admitted[key].Add(1)
		}
		l.total.Add(1)
		return
	}
}

func admit(p *group.Partition, key int) (bool, error) {
	tx := p.Engine.NewTx()
	k := p.Engine.Key(fmt.Append(nil, "limit", key))
	tx.Begin(p.Clock.Now(), 0, []engine.Key{k}, true)
	d, err := tx.Slide(k, []limit.Window{{Limit: loadLimit(key), Length: time.Hour.Milliseconds()}}, 1, nil)
	pos := tx.End()
	if err != nil {
		return false, err
	}
	return d.Allowed, p.Wait(pos)
}

// someCalls is how many calls show that calls are served: on average ten of each client, on keys of
// each group.
const someCalls = 40

// goesOn waits until calls have been served.
func (l *load) goesOn() {
	l.f.t.Helper()
	before := l.total.Load()
	l.f.eventually("calls are served", func() error {
		if now := l.total.Load(); now < before+someCalls {
			return fmt.Errorf("%d calls", now-before)
		}
		return nil
	})
}

func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.clients.Wait()
}

// conserved checks that nothing was admitted twice, and nothing that was admitted is forgotten.
func (l *load) conserved() {
	l.f.t.Helper()
	l.goesOn()
	l.end()
	for key := range loadKeys {
		var have int64
		l.f.eventually("the group leads", func() error {
			for _, n := range l.f.nodes {
				if n == nil {
					continue
				}
				if g := n.Group(key % n.Map().Groups()); g != nil {
					if p, err := g.Leading(); err == nil {
						have = used(p, key)
						return p.Wait(0)
					}
				}
			}
			return slot.ErrNoLeader
		})
		assert.LessOrEqual(l.f.t, l.admitted[key].Load(), loadLimit(key), "key %d", key)
		assert.LessOrEqual(l.f.t, have, loadLimit(key), "key %d", key)
		assert.GreaterOrEqual(l.f.t, have, l.admitted[key].Load(), "key %d: an admit is forgotten", key)
	}
}

func used(p *group.Partition, key int) int64 {
	tx := p.Engine.NewTx()
	k := p.Engine.Key(fmt.Append(nil, "limit", key))
	tx.Begin(0, 0, []engine.Key{k}, false)
	defer tx.End()
	set, err := tx.ZSet(k)
	if err != nil {
		return -1
	}
	return int64(set.Len())
}

func TestAFourthNodeJoinsUnderLoad(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	l := f.load()
	l.goesOn()
	d := f.add(nil)
	require.NoError(t, f.start(d))
	l.update()
	f.matches("a", "b", "c", "d")
	spread(t, f.nodes[0].Map())
	assert.Equal(t, 3, len(f.nodes[d].groups())-absent(f.nodes[d]), "its share of the replicas of 4 groups")
	l.goesOn()
	entries, err := filepath.Glob(filepath.Join(f.dir, "*", "group-*"))
	require.NoError(t, err)
	assert.Len(t, entries, 12, "the folders of replicas that have moved away are removed")
	f.eventually("it comes to lead its share", func() error {
		for g, names := range f.nodes[d].Map().Replicas {
			if l := f.nodes[d].Leader(g); l == nil || l.Name != names[0] {
				return fmt.Errorf("group %d is led by %v, want %s", g, l, names[0])
			}
		}
		return nil
	})
	l.conserved()
}

func absent(n *Node) (count int) {
	for _, g := range n.groups() {
		if g == nil {
			count++
		}
	}
	return count
}

func TestANodeIsForgotten(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 4)
	l := f.load()
	l.goesOn()
	assert.ErrorContains(t, f.nodes[0].Forget("x"), "Unknown node x")
	f.eventually("the others are there", func() error { return f.nodes[0].Forget("d") })
	f.matches("a", "b", "c")
	f.eventually("its replicas are removed", func() error {
		if have, err := folders(f.options[3].Dir, groupPrefix); len(have) > 0 || err != nil {
			return fmt.Errorf("%v %v", have, err)
		}
		return nil
	})
	testLogged(f, "node d is no member of the cluster any more: it was removed")
	f.eventually("the others forget it", func() error {
		for _, n := range f.nodes[:3] {
			n.mu.Lock()
			_, seen := n.seen.Nodes["d"]
			d := n.others["d"]
			known := seen || !d.at.IsZero() || d.offset != 0 || d.accepted
			n.mu.Unlock()
			if known {
				return fmt.Errorf("node %s knows it", n.self.Name)
			}
		}
		return nil
	})
	f.stop(3)
	f.nodes = f.nodes[:3]
	assert.ErrorContains(t, f.start3(), "removed by CLUSTER FORGET")
	l.conserved()

	// without its directory it is a new node
	require.NoError(t, os.RemoveAll(f.options[3].Dir))
	f.nodes = append(f.nodes, nil)
	require.NoError(t, f.start(3))
	f.matches("a", "b", "c", "d")
}

// start3 starts the fourth node, which is expected to be refused.
func (f *fleet) start3() error {
	f.nodes = append(f.nodes, nil)
	defer func() { f.nodes = f.nodes[:3] }()
	return f.start(3)
}

func TestADeadNodeIsForgottenAndReplaced(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	f := startFleet(t, 3)
	l := f.load()
	l.goesOn()
	f.stop(2)
	l.update()
	f.eventually("it is not there any more", func() error {
		if f.nodes[0].up("c") {
			return fmt.Errorf("heard")
		}
		return nil
	})
	f.eventually("a second one cannot be forgotten", func() error {
		if err := f.nodes[0].Forget("b"); err == nil ||
			!strings.Contains(err.Error(), "without node b, only 1 of 2 nodes would be there") {
			return fmt.Errorf("it was: %w", err)
		}
		return nil
	})
	d := f.add(nil)
	require.NoError(t, f.start(d))
	f.eventually("it is a member, and knows who leads", func() error { return f.nodes[d].Forget("c") })
	l.update()
	f.matches("a", "b", "d")
	l.conserved()

	require.NoError(t, f.start(2))
	testLogged(f, "node c is no member of the cluster any more")
	f.eventually("its replicas are removed", func() error {
		if have, err := folders(f.options[2].Dir, groupPrefix); len(have) > 0 || err != nil {
			return fmt.Errorf("%v %v", have, err)
		}
		return nil
	})
	f.stop(2)
	assert.ErrorContains(t, f.start(2), "removed by CLUSTER FORGET")
}

func TestReplicasShrinkAndGrowWithTheNodes(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	f := startFleet(t, 3)
	l := f.load()
	for i, name := range []string{"c", "b"} {
		f.eventually("the others are there", func() error { return f.nodes[0].Forget(name) })
		f.matches([]string{"a", "b"}[:2-i]...)
		l.goesOn()
		f.stop(2 - i)
		l.update()
	}
	assert.ErrorContains(t, f.nodes[0].Forget("a"), "node a is the last one")
	l.conserved()
	for i := 1; i < 3; i++ { // they come back empty, at other addresses
		require.NoError(t, os.RemoveAll(f.options[i].Dir))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		f.addresses = slices.Clone(f.addresses) // the others read theirs
		f.options[i].Listener, f.addresses[i] = l, l.Addr().String()
		require.NoError(t, f.start(i))
	}
	f.matches("a", "b", "c")
}

// TestANodeThatHasLostItsDataIsANewMember has a node start without its directory: it joins again by
// itself, and votes for nothing that it has forgotten.
func TestANodeThatHasLostItsDataIsANewMember(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	f := startFleet(t, 3)
	before := f.nodes[0].Map().Member("c").Instance
	l := f.load()
	l.goesOn()
	f.stop(2)
	l.update()
	require.NoError(t, os.RemoveAll(f.options[2].Dir))
	require.NoError(t, f.start(2))
	f.matches("a", "b", "c")
	f.eventually("it is another instance in all groups", func() error {
		for g := range f.nodes[0].Map().Replicas {
			by, _ := f.nodes[0].leaderOf(g)
			for _, s := range by.members {
				if s.ID.Node == "c" && s.ID.Instance == before {
					return fmt.Errorf("group %d: %v", g, by.members)
				}
			}
		}
		return nil
	})
	l.update()
	l.conserved()
}

// TestAMachineThatWasRestartedUncleanlyDoesNotVoteWithACutLog starts a node without synced logs as
// after a power failure.
func TestAMachineThatWasRestartedUncleanlyDoesNotVoteWithACutLog(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	f.stop(2)
	state, err := loadState(f.options[2].Dir)
	require.NoError(t, err)
	require.True(t, state.Clean)
	state.Clean, state.Boot = false, "another"
	require.NoError(t, state.save(f.options[2].Dir))
	old, err := instanceOf(filepath.Join(f.options[2].Dir, folder(groupPrefix, 0)))
	require.NoError(t, err)
	require.NoError(t, f.start(2))
	testLogged(f, "It must not vote with them")
	f.matches("a", "b", "c")
	now, err := instanceOf(filepath.Join(f.options[2].Dir, folder(groupPrefix, 0)))
	require.NoError(t, err)
	assert.NotEqual(t, old, now)
	f.eventually("what may be truncated is removed", func() error {
		if have, err := folders(f.options[2].Dir, truncatedPrefix); len(have) > 0 || err != nil {
			return fmt.Errorf("%v %v", have, err)
		}
		return nil
	})
}

// TestAMoveGoesOnAfterACrash stops nodes while groups are moved to a fourth one: the leader of the
// first group, and the new node.
func TestAMoveGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	l := f.load()
	l.goesOn()
	d := f.add(nil)
	require.NoError(t, f.start(d))
	moving := func() {
		f.eventually("a move has begun", func() error {
			for _, n := range f.nodes {
				if n != nil && n.Moves() > 0 {
					return nil
				}
			}
			if f.nodes[d].Map() != nil {
				return nil // all has moved already
			}
			return errNotMade
		})
	}
	moving()
	first := 0
	for i, n := range f.nodes {
		if g := n.Group(0); g != nil && g.Status().Leads {
			first = i
		}
	}
	f.stop(first)
	l.update()
	moving()
	f.stop(d)
	require.NoError(t, f.start(first))
	l.update()
	l.goesOn()
	require.NoError(t, f.start(d))
	l.update()
	moving()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f.nodes[1].Leave(ctx, "the node stops")
	f.stop(1)
	l.update()
	l.goesOn()
	require.NoError(t, f.start(1))
	l.update()
	f.matches("a", "b", "c", "d")
	spread(t, f.nodes[0].Map())
	l.conserved()
}

func TestNodesThatCannotJoinAreToldWhy(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	f := startFleet(t, 3)
	refused := func(says string, change func(o *Options)) {
		t.Helper()
		i := f.add(change)
		require.NoError(t, f.start(i))
		testLogged(f, says)
		assert.Nil(t, f.nodes[i].Map())
		f.stop(i)
		require.NoError(t, os.RemoveAll(f.options[i].Dir))
		f.addresses, f.options, f.nodes = f.addresses[:i], f.options[:i], f.nodes[:i]
	}
	refused("the cluster has 4 groups, and --cluster-groups is 5", func(o *Options) { o.Groups = 5 })
	refused("two nodes have the name c", func(o *Options) {
		o.Name, o.Dir = "c", filepath.Join(f.dir, "another-c")
	})

	other := startFleet(t, 1)
	f.eventually("a node of another cluster is not met", func() error {
		err := f.nodes[0].Meet(t.Context(), other.addresses[0])
		if err == nil || !strings.Contains(err.Error(), "belongs to another cluster") {
			return fmt.Errorf("it was: %w", err)
		}
		return nil
	})
	f.eventually("a member is not met again", func() error { return f.nodes[0].Meet(t.Context(), f.addresses[1]) })

	// without a majority a node waits, and joins when there is one
	f.stop(1)
	f.stop(2)
	d := f.add(nil)
	require.NoError(t, f.start(d))
	testLogged(f, "the node cannot join the cluster yet, which is tried again: no node leads the first group")
	f.eventually("nothing can be forgotten", func() error {
		if err := f.nodes[0].Forget("c"); err != ErrNoMajority {
			return fmt.Errorf("it was: %w", err)
		}
		return nil
	})
	require.NoError(t, f.start(1))
	require.NoError(t, f.start(2))
	f.matches("a", "b", "c", "d")
}
