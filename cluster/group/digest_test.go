package group

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/effect"
)

// exchange reports the digests of all nodes to all others, as package cluster does.
func (tr *trio) exchange() {
	for _, from := range tr.nodes {
		for _, to := range tr.nodes {
			if from != to && from.group != nil && to.group != nil {
				to.group.NoteDigest(names[from.i], from.group.Digest())
			}
		}
	}
}

// comparing returns a function that calls exchange, and has whichever node leads propose the next
// digest when all have computed the last one: they report the digest of one entry only, and on a
// slow machine they would not have those of the same entry at the same time otherwise.
func (tr *trio) comparing(exchange func()) func() {
	var proposed time.Time
	return func() {
		same := !slices.ContainsFunc(tr.nodes, func(n *node) bool {
			return n.group.Digest().Index != tr.nodes[0].group.Digest().Index
		})
		exchange()
		if !same && time.Since(proposed) < time.Second {
			return // one that was skipped, as a snapshot was open, is not waited for
		}
		for _, n := range tr.nodes {
			if p, err := n.group.Leading(); err == nil {
				now := p.Clock.Now()
				p.digest.take(p.Engine, now, func() bool { return p.mark(now) })
				proposed = time.Now()
			}
		}
	}
}

// damage changes the state of a node's replica, which no other replica learns.
func (n *node) damage() {
	e := n.group.running.Load().fsm.replica.Load().Engine
	require.NoError(n.trio.t, e.Apply(1, []effect.Effect{
		{Kind: effect.String, Key: e.Key([]byte("damaged")), Value: []byte("x")},
	}))
}

// busy keeps the group changing until stop is called, so that there is something to compare.
func (tr *trio) busy() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			case <-time.After(time.Millisecond):
			}
			for _, n := range tr.nodes {
				if p, err := n.group.Leading(); err == nil {
					admit(p, fmt.Sprint("k", i%50), 1000)
				}
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

func TestReplicasCompareTheirState(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.digestEvery = time.Millisecond
	tr.startAll()
	tr.leader()
	defer tr.busy()()
	tr.eventually("each has compared its state twice", func() bool {
		tr.exchange()
		for _, n := range tr.nodes {
			require.NoError(t, n.group.Status().Fault)
			if n.group.Figures().Digests < 2 {
				return false
			}
		}
		return true
	})
}

func TestAReplicaWhoseStateDiffersStops(t *testing.T) {
	for _, what := range []string{"follower", "leader"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tr := newTrio(t)
			tr.digestEvery = time.Hour
			tr.startAll()
			leader := tr.leader()
			bad := leader
			if what == "follower" {
				bad = tr.nodes[(leader.i+1)%3]
			}
			bad.damage()
			defer tr.busy()()
			exchange := tr.comparing(tr.exchange)
			tr.eventually("it stops", func() bool {
				exchange()
				return bad.group.Status().Fault != nil
			})
			assert.ErrorContains(t, bad.group.Status().Fault, "differs from that of the other replicas")
			assert.Equal(t, "broken", bad.group.Figures().Role)
			_, err := bad.group.Leading()
			assert.ErrorIs(t, err, ErrBroken)
			next, err := tr.leader(bad.i).group.Leading()
			require.NoError(t, err, "the others go on")
			allowed, err := admit(next, "more", 1)
			assert.NoError(t, err)
			assert.True(t, allowed)
			for _, n := range tr.nodes {
				assert.Equal(t, n == bad, n.group.Status().Fault != nil)
			}
		})
	}
}

// With two replicas there is no majority for either state: the leader's counts, when it differs a
// second time.
func TestTheLeadersStateCountsWithoutAMajority(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.digestEvery = time.Hour
	tr.startAll()
	leader := tr.leader()
	bad, third := tr.nodes[(leader.i+1)%3], tr.nodes[(leader.i+2)%3]
	bad.damage()
	defer tr.busy()()
	exchange := tr.comparing(func() {
		bad.group.NoteDigest(names[leader.i], leader.group.Digest())
		leader.group.NoteDigest(names[bad.i], bad.group.Digest())
	})
	tr.eventually("it stops", func() bool {
		exchange()
		return bad.group.Status().Fault != nil
	})
	assert.ErrorContains(t, bad.group.Status().Fault, "differs from that of the leader, node "+names[leader.i])
	assert.NoError(t, leader.group.Status().Fault)
	assert.NoError(t, third.group.Status().Fault)
}

func TestADigestIsThatOfItsEntry(t *testing.T) {
	one, two := newFSM(t), newFSM(t)
	sums := make(chan Digest, 8)
	for _, f := range []*fsm{one, two} {
		f.digested = func(d Digest) { sums <- d }
	}
	set := func(value string) func(*engine.Tx, func(string) engine.Key) {
		return func(tx *engine.Tx, k func(string) engine.Key) {
			for i := range 100 {
				tx.Set(k(fmt.Sprint("k", i)), []byte(value), engine.SetMode{})
			}
			tx.ZIncrBy(k("z"), 0, []byte(value), 1)
		}
	}
	p := one.lead(5)
	p.change(set("1"))
	now := p.Clock.Now()
	p.digest.take(p.Engine, now, func() bool { return p.mark(now) })
	p.change(set("2")) // the leader is ahead of the entry
	var logs []*raft.Log
	for _, b := range p.take(nil) {
		logs = append(logs, &raft.Log{Index: uint64(len(logs) + 1), Term: 5, Type: raft.LogCommand, Data: b.entry})
	}
	require.Len(t, logs, 2)
	for _, l := range logs {
		assert.Nil(t, one.Apply(l))
		assert.Nil(t, two.Apply(l))
	}
	first, second := <-sums, <-sums
	assert.Equal(t, uint64(2), first.Index)
	assert.NotZero(t, first.Sum)
	assert.Equal(t, first, second)
}

func TestASnapshotEndsTheWorkOnADigest(t *testing.T) {
	f := newFSM(t)
	p := f.lead(5)
	p.change(rename)
	now := p.Clock.Now()
	p.digest.take(p.Engine, now, func() bool { return p.mark(now) })
	require.NotNil(t, p.digest.own)
	s, err := f.Snapshot()
	require.NoError(t, err)
	assert.Nil(t, p.digest.own)
	p.digest.take(p.Engine, now, func() bool { return p.mark(now) })
	assert.Nil(t, p.digest.own, "while the snapshot is open")
	s.Release()
	p.digest.take(p.Engine, now, func() bool { return p.mark(now) })
	assert.NotNil(t, p.digest.own)
}

// A script that takes long holds up neither entries nor what follows the leadership: there is no
// snapshot and no digest until its end.
func TestNothingWaitsForAScript(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	leader, p := tr.leading()
	_, err := admit(p, "k", 10)
	require.NoError(t, err)
	tx := p.Engine.NewTx()
	tx.Begin(p.Clock.Now(), 0, []engine.Key{p.Engine.Key([]byte("held"))}, false)
	require.True(t, tx.Hold(true))
	run := leader.group.running.Load()
	assert.ErrorContains(t, run.await(run.raft.Snapshot()), "a script runs that takes long")
	p.digest.take(p.Engine, p.Clock.Now(), func() bool { panic("the state is not the one of one moment") })
	saved := make(chan error)
	go func() { saved <- leader.group.Snapshot() }()
	for range 10 {
		_, err = admit(p, "k", 100)
		require.NoError(t, err)
	}
	select {
	case <-saved:
		require.Fail(t, "a snapshot of half a script")
	default:
	}
	tx.Resume()
	tx.End()
	require.NoError(t, <-saved)
	_, snapshot := leader.group.Sizes()
	assert.NotZero(t, snapshot)
}

// A snapshot finds its moment though there is always a script that takes long: after some time no
// other one may do so.
func TestASnapshotDoesNotStarveBesideScripts(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	leader, p := tr.leading()
	_, err := admit(p, "k", 10)
	require.NoError(t, err)
	begin := func(i int) (tx *engine.Tx, held bool) {
		tx = p.Engine.NewTx()
		tx.Begin(p.Clock.Now(), 0, []engine.Key{p.Engine.Key(fmt.Append(nil, i))}, false)
		return tx, tx.Hold(false)
	}
	end := func(tx *engine.Tx) {
		tx.Resume()
		tx.End()
	}
	last, held := begin(0)
	require.True(t, held)
	saved := make(chan error)
	go func() { saved <- leader.group.Snapshot() }()
	for i := 1; held; i++ {
		var next *engine.Tx
		next, held = begin(i)
		end(last)
		last = next
	}
	end(last)
	require.NoError(t, <-saved)
	last, held = begin(0)
	assert.True(t, held, "scripts may take long again")
	end(last)
}

// The digest of a state is that of any engine with it, whatever its hash seed, and however it has
// come to the state; a change of any part changes it.
func TestEqualStatesHaveEqualDigests(t *testing.T) {
	t.Parallel()
	const at, end = int64(1_700_000_000_000), int64(1_800_000_000_000)
	key := func(name string) effect.Key { return effect.Key{Name: []byte(name)} }
	insert := func(name, kind string, rank int, elements ...string) effect.Effect {
		f := effect.Effect{Kind: effect.Insert, Key: key(name), Field: []byte(kind), Lo: rank, Hi: rank + len(elements)}
		for _, e := range elements {
			f.Value = effect.AppendElement(f.Value, e)
		}
		return f
	}
	hits := func(name string, at int64, seq uint64, n int64) effect.Effect {
		return effect.Effect{
			Kind: effect.AddHits, Key: key(name), Hits: effect.Hits{At: at, Seq: seq, N: n}, ExpireAt: end,
		}
	}
	sizes := []int{1, 10, 100, 3000}
	// whole is a state in few effects, and apart the same in many, and not in their order
	var whole, apart []effect.Effect
	for _, n := range sizes {
		var elements []string
		for i := range n {
			elements = append(elements, fmt.Sprint("element ", i))
		}
		set, list, log := fmt.Sprint("set", n), fmt.Sprint("list", n), fmt.Sprint("log", n)
		hash, zset, mixed := fmt.Sprint("hash", n), fmt.Sprint("zset", n), fmt.Sprint("mixed", n)
		whole = append(whole, insert(set, "set", 0, elements...), insert(list, "list", 0, elements...))
		apart = append(apart, hits(log, at-1, 0, 7), hits(log, at, 0, 2), hits(mixed, at-1, 0, 700))
		for i := range n {
			back := elements[n-1-i]
			apart = append(apart, insert(set, "set", 0, back), insert(list, "list", 0, back))
			for j, list := range []*[]effect.Effect{&whole, &apart} {
				e := []string{elements[i], back}[j]
				*list = append(*list,
					effect.Effect{Kind: effect.HashSet, Key: key(hash), Field: []byte(e), Value: []byte(e)},
					effect.Effect{Kind: effect.Add, Key: key(zset), Field: []byte(e), Score: float64(len(e))},
					effect.Effect{Kind: effect.Add, Key: key(mixed), Field: []byte(e), Score: float64(at)})
			}
			whole = append(whole, hits(log, at+int64(i), uint64(i%3), 2),
				hits(mixed, at+int64(i/2), uint64(i%2)*40, 40))
			if i > 0 {
				apart = append(apart, hits(log, at+int64(i), uint64(i%3), 1))
			}
		}
		for i := n - 1; i >= 0; i-- {
			if i > 0 {
				apart = append(apart, hits(log, at+int64(i), uint64(i%3)+1, 1))
			}
			for part := range int64(4) {
				apart = append(apart, hits(mixed, at+int64(i/2), uint64(i%2)*40+uint64(part)*10, 10))
			}
		}
		apart = append(apart, effect.Effect{Kind: effect.RemoveSpan, Key: key(log), Hi: 7},
			effect.Effect{Kind: effect.RemoveSpan, Key: key(mixed), Hi: 700})
	}
	// a member that becomes a hit by its score
	member := effect.Effect{Kind: effect.Add, Key: key("moved"), Field: []byte("1000-7"), Score: 1000}
	former := member
	former.Score = 5
	last := effect.Effect{Kind: effect.Expire, Key: key("moved"), ExpireAt: end}
	whole, apart = append(whole, member, last), append(apart, former, member, last)
	digestOf := func(seed uint64, list ...[]effect.Effect) [2]uint64 {
		e := engine.New(engine.Options{Databases: 1, Seed: [2]uint64{seed, seed}})
		for _, effects := range list {
			for _, f := range effects {
				require.NoError(t, e.Apply(at, []effect.Effect{f}))
			}
		}
		s := e.SnapshotAt(at, func() {})
		defer s.Close()
		sum, ok := sumOf(s, nil)
		require.True(t, ok)
		return sum
	}
	want := digestOf(1, whole)
	assert.Equal(t, want, digestOf(2, whole), "another hash seed")
	assert.Equal(t, want, digestOf(3, apart), "another way to the state")
	for _, change := range []effect.Effect{
		insert("set3000", "set", 0, "another"), insert("list3000", "list", 5, "another"),
		hits("log3000", at+5000, 0, 1), hits("log10", at+3, 9, 1), hits("mixed100", at, 1000, 1),
		{Kind: effect.Remove, Key: key("log3000"), Field: fmt.Append(nil, at+7, "-1")},
		{Kind: effect.Remove, Key: key("set100"), Field: []byte("element 7")},
		{Kind: effect.Expire, Key: key("log100"), ExpireAt: end + 1},
		{Kind: effect.Expire, Key: key("zset100"), ExpireAt: end},
		{Kind: effect.Add, Key: key("mixed10"), Field: []byte("another"), Score: 1},
	} {
		assert.NotEqual(t, want, digestOf(1, whole, []effect.Effect{change}), "%s of %s", change.Kind, change.Key.Name)
	}
}
