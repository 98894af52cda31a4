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
