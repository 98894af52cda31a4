package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"

	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/internal/clock"
)

// Options are what a group's replica on a node is made of.
type Options struct {
	Number int    // of the group
	Node   string // the name of this node
	// Instance tells this replica from others that the node has had, or will have: a random number
	// that is stored with the replica. It never votes in the name of one that is lost.
	Instance uint64
	Dir      string        // where the group's files are, on this node
	Sync     bool          // whether the log is synced before an entry counts as stored
	Timeout  time.Duration // without a word of the leader until there is an election
	// Patience is for how long an entry may be on its way. Then the replica leads no more, and all
	// who wait get ErrUnknown: others hear a leader whose disk hangs, but it serves nobody. No call
	// waits for longer than twice this. 0: for ever
	Patience time.Duration
	Engine   engine.Options
	Clock    clock.Source
	Log      *slog.Logger
	Layer    func() Layer // opens the connections; closed and opened again at a rebuild
	// AskTime is called when this replica is to lead and does not know the time. It returns a
	// lower bound that the nodes have found, Unix ms. log is the latest time in the log, 0 if there
	// is none. It may ask again and again while still returns true. If it is not ok, the own system
	// clock decides.
	AskTime func(log int64, still func() bool) (ms int64, ok bool)
	// Clocks returns what the system clocks of most nodes show, Unix µs. own is what the own one
	// shows, now is the time of the group. nil: own
	Clocks func(own, now int64) int64
	// ObserveSync is called with how long entries took to be synced, ObserveSnapshot with how long
	// a snapshot took. nil: nobody needs to know
	ObserveSync, ObserveSnapshot func(time.Duration)
	// LongCall is called before a large change or a snapshot is applied, which takes many
	// milliseconds, and end afterwards. nil: nobody needs to know
	LongCall func() (end func())
	// Speaks reports whether this replica speaks with those of another node: it neither votes, nor
	// stores entries, nor counts votes and entries otherwise. It must be fast. nil: with all
	Speaks func(node string) bool
	// Policies note which version of the engine's policies has been used; nil: that is not noted
	Policies PolicyNotes
	// Begun is called before calls are served on a partition. It must not block. nil: nothing
	Begun func(*Partition)
	// Disk replaces the file system of the log, set by tests; nil: it is the system's
	Disk func(types.VFS) types.VFS

	snapshotBytes int64 // of log between snapshots, set by tests
	// between comparisons of the replicas' state, set by tests
	digestEvery time.Duration
	// entries that are kept behind a snapshot, set by tests
	trailing uint64
	// between calls of Group.tick, set by tests
	tickEvery time.Duration
	// by how much it knows later versions of entries, set by tests
	newer byte
}

// Group is this node's replica of a group. Its methods are safe for concurrent use.
type Group struct {
	options Options
	log     *slog.Logger
	time    *timeline

	running atomic.Pointer[running]
	sync    atomic.Bool // whether the log is synced now

	changing sync.Mutex // held while the members are changed
	handing  sync.Mutex // held while leadership is handed over

	// closed, and replaced, when leadership has changed
	changed atomic.Pointer[chan struct{}]

	closing    sync.Once
	quit, done chan struct{}

	leadership leadership
	lag        lag
	comparison comparison
	counters   counters
}

// running is raft on a group's files. A rebuild replaces it.
type running struct {
	raft             *raft.Raft
	fsm              *fsm
	files            files
	trans, snapshots *raft.NetworkTransport

	notify chan bool     // leadership begins, ends
	fresh  chan struct{} // capacity 1: the replica has been replaced by a snapshot
	regain chan struct{} // capacity 1: leadership could not be handed over
	fault  atomic.Pointer[error]
	work   sync.WaitGroup
	layer  Layer
	calls  chan raft.RPC // of other replicas, see prefixed
	peers  peers

	snapshot sync.Mutex // held while one is taken

	// leadership is being transferred, or could not be and is not begun again
	transfers atomic.Bool
	shutdown  func() raft.Future
	ended     chan struct{}             // closed by shutdown
	started   atomic.Pointer[raft.Raft] // raft, for the fsm, which runs before raft is set
}

// A replica has stored, synced and restored a snapshot within snapshotTimeout for each
// snapshotScale bytes, also with a slow disk: whoever has sent it learns that only at the end.
const (
	snapshotTimeout = 10 * time.Second
	snapshotScale   = 16 << 20
)

// maxAppended is how many entries a message to a follower has at most: some 4 MB, which have to
// arrive within a quarter of the timeout.
const maxAppended = 16

// defaultSnapshotBytes is the size of the log, in bytes, at which a snapshot is taken.
const defaultSnapshotBytes = 64 << 20

// defaultTickEvery is the time between calls of Group.tick.
const defaultTickEvery = time.Second

// Open opens a group's replica. Without state it belongs to no group yet: another replica that
// leads the group has to add it, see AddNonvoter.
func Open(o Options) (*Group, error) {
	o.snapshotBytes = cmp.Or(o.snapshotBytes, defaultSnapshotBytes)
	o.digestEvery = cmp.Or(o.digestEvery, defaultDigestEvery)
	o.tickEvery = cmp.Or(o.tickEvery, defaultTickEvery)
	g := newGroup(o)
	if o.Clocks != nil {
		g.time.clocks = o.Clocks
	}
	g.leadership.since = time.Now()
	run, err := g.open()
	if err != nil {
		return nil, err
	}
	g.running.Store(run)
	go g.manage()
	return g, nil
}

// newGroup returns a replica that is not open.
func newGroup(o Options) *Group {
	g := &Group{
		options: o, log: o.Log.With("group", o.Number), time: newTimeline(o.Clock),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	changed := make(chan struct{})
	g.changed.Store(&changed)
	g.sync.Store(o.Sync)
	return g
}

// heartbeatTimeout returns raft's heartbeat timeout for Options.Timeout: a leader that hears no
// majority for so long steps down. A follower only looks every one to two heartbeat timeouts
// whether the last word of the leader is older than one. So it calls an election after one to
// three, about Options.Timeout in the mean.
func heartbeatTimeout(timeout time.Duration) time.Duration { return timeout / 2 }

// config returns raft's settings.
func (g *Group) config(notify chan<- bool) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(g.options.id().String())
	c.HeartbeatTimeout = heartbeatTimeout(g.options.Timeout)
	c.ElectionTimeout = c.HeartbeatTimeout
	c.LeaderLeaseTimeout = c.HeartbeatTimeout
	c.CommitTimeout = min(c.CommitTimeout, g.options.Timeout/10)
	c.TrailingLogs = cmp.Or(g.options.trailing, defaultTrailing)
	c.MaxAppendEntries = maxAppended
	c.SnapshotInterval = 1000 * time.Hour // they are taken by the size of the log
	c.SnapshotThreshold = 1 << 62
	c.ShutdownOnRemove = false
	c.NoLegacyTelemetry = true
	c.NotifyCh = notify
	c.Logger = newLogger(g.log, g.leadership.logged)
	return c
}

func (g *Group) open() (run *running, err error) {
	run = &running{
		notify: make(chan bool, 64), fresh: make(chan struct{}, 1), regain: make(chan struct{}, 1),
		ended: make(chan struct{}), calls: make(chan raft.RPC),
	}
	config := g.config(run.notify)
	if run.files, err = g.openFiles(config.Logger, run.stored(g), run.hangs); err == nil {
		if err = checkLog(filepath.Join(g.options.Dir, logFolder)); err != nil {
			run.files.log.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("group %d cannot be opened: %w", g.options.Number, err)
	}
	run.fsm = &fsm{
		engine: g.options.Engine, time: g.time, newer: g.options.newer, longCall: g.options.LongCall,
		fresh: run.fresh,
		follows: func(term uint64) bool {
			started := run.started.Load()
			return started != nil && started.State() == raft.Follower && started.CurrentTerm() == term
		},
		digested: func(d Digest) { g.setDigest(run, d) },
		broken:   func(err error) { g.broken(run, err) },
	}
	run.fsm.replica.Store(newReplica(g.options.Engine))
	connectionEnded := make(chan struct{}, 1)
	run.layer = g.options.Layer()
	calling := stream{run.layer, g.options.id(), connectionEnded}
	run.trans = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: calling, MaxPool: 2, Timeout: g.options.Timeout / 4, Logger: config.Logger,
	})
	run.snapshots = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: outgoing{calling, make(chan struct{})}, Timeout: max(snapshotTimeout, g.options.Timeout),
		Logger: config.Logger,
	})
	run.snapshots.TimeoutScale = snapshotScale
	last := func() uint64 {
		if started := run.started.Load(); started != nil {
			return started.LastIndex()
		}
		return 0
	}
	again := func(term uint64, to raft.ServerID) bool { return g.sendAgain(run, term, to) }
	calls := prefixed{transport{
		run.trans, run.snapshots, &g.leadership, g.options.Timeout, again, last, &run.peers, run.ended,
		g.options.Speaks,
	}, run.calls}
	started, err := raft.NewRaft(config, run.fsm, run.files.cache, run.files.log, run.files.snapshots, calls)
	if err != nil {
		run.trans.Close()
		run.snapshots.Close()
		run.files.log.Close()
		run.fsm.replica.Load().Engine.Discard()
		return nil, fmt.Errorf("group %d cannot be opened: %w", g.options.Number, err)
	}
	run.raft = started
	// the filter is called in order, by raft's own goroutine; a channel might lose something
	started.RegisterObserver(raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		g.leadership.observe(g, o)
		return false
	}))
	run.started.Store(started)
	run.work.Go(func() { calls.pass(run.files, run.ended) })
	run.work.Go(func() { g.watch(run, connectionEnded) })
	// only the first future waits until all has ended
	run.shutdown = sync.OnceValue(func() raft.Future {
		close(run.ended)
		return started.Shutdown()
	})
	return run, nil
}

// stored returns what is called when entries were stored, or could not be. If the next file of the
// log could not be made, the disk being full, the log has to be opened again to take entries.
func (run *running) stored(g *Group) func(time.Duration, error) {
	return func(took time.Duration, err error) {
		if errors.Is(err, types.ErrSealed) {
			run.fsm.replica.Load().discard(fmt.Errorf("the log has to be opened again: %w", err))
			return
		}
		g.stored(took, err)
	}
}

// close ends raft and closes its files. The replica is discarded first, so that nothing waits for
// it.
func (run *running) close(why error) error {
	run.fsm.replica.Load().discard(why)
	err := run.shutdown().Error()
	last := run.fsm.replica.Load() // raft may have replaced it meanwhile
	last.discard(why)
	last.Engine.Discard()
	run.work.Wait()
	return errors.Join(err, run.trans.Close(), run.snapshots.Close(), run.files.log.Close())
}

// broken is called when this replica cannot go on: its log cannot be applied. The other replicas
// are not affected.
func (g *Group) broken(run *running, err error) {
	if run.fault.CompareAndSwap(nil, &err) {
		advice := "this replica cannot be used any more: stop the node, remove the group's folder and start it " +
			"again, and it gets the state from the others"
		if _, ok := errors.AsType[*VersionError](err); ok {
			advice = "this replica cannot be used by this version of the server: start the node with the version " +
				"that the other nodes have. Its data is kept"
		}
		g.log.Error(advice, "error", err)
		run.fsm.replica.Load().discard(err)
	}
}

// Close ends the replica. Leadership should have been handed over before.
func (g *Group) Close() (err error) {
	g.closing.Do(func() {
		close(g.quit)
		<-g.done
		err = g.running.Load().close(errStopping)
	})
	return err
}

// manage follows leadership and replaces what has failed, until Close.
func (g *Group) manage() {
	defer close(g.done)
	for {
		run := g.running.Load()
		run.work.Go(func() { g.propose(run) })
		again := g.follow(run)
		run.shutdown() // what is on its way fails
		if !again {
			return
		}
		g.rebuild(run)
	}
}

// follow follows the leadership of this node in one running raft. It reports whether that is to be
// rebuilt, rather than closed.
func (g *Group) follow(run *running) (rebuild bool) {
	ticker := time.NewTicker(g.options.tickEvery)
	defer ticker.Stop()
	term := uint64(0) // in which this node leads; 0: it does not
	begins := noBeginning
	defer func() { begins.cancel() }()
	lost := func(why string) {
		if term != 0 {
			g.log.Info("this node does not lead the group any more", "term", term, "because", why)
			term = 0
		}
	}
	for {
		r := run.fsm.replica.Load()
		select {
		case <-g.quit:
			lost(errStopping.Error())
			return false
		case <-run.fresh:
		case <-r.failed:
			if run.fault.Load() != nil { // it must neither lead nor vote
				lost("the replica cannot be used any more")
				g.noteChange()
				return false
			}
			if r == run.fsm.replica.Load() {
				why := r.why()
				if gaveUp, ok := errors.AsType[*gaveUpError](why); ok {
					lost(gaveUp.Error())
				} else {
					lost(g.leadership.lost(g.options.Node, heartbeatTimeout(g.options.Timeout)))
				}
				g.log.Info("rebuilding the state from the log", "because", why)
				return true
			}
		case <-run.regain:
			// otherwise run.notify says how it went on
			if run.raft.State() == raft.Leader && !r.Leads() && begins.ready == nil {
				begins = g.begin(run, true)
			}
		case p := <-begins.ready:
			if g.lead(run, p) {
				term = p.term
			} else if begins.again { // raft takes no entries until the transfer has ended
				time.AfterFunc(regainInterval, run.goOn)
			}
			begins.cancel()
			begins = noBeginning
		case leads := <-run.notify:
			begins.cancel()
			begins = noBeginning
			if leads {
				begins = g.begin(run, false)
			} else {
				run.transfers.Store(false) // one that has failed is over as well
				r.end(errors.New("another node leads or may lead"))
				g.noteChange()
				lost(g.leadership.lost(g.options.Node, heartbeatTimeout(g.options.Timeout)))
			}
		case <-ticker.C:
			g.tick(run)
		}
	}
}

// tick is called each second, or each Options.tickEvery.
func (g *Group) tick(run *running) {
	r := run.fsm.replica.Load()
	if p := r.leading.Load(); p != nil {
		p.Clock.Check()
		r.beat()
		g.proposeDigest(r)
		last, now := run.raft.LastIndex(), time.Now()
		g.lag.note(last, now)
		run.peers.prune(serversOf(run))
		run.peers.tick(last, now, g.options.Timeout)
	} else {
		g.leadership.warn(g)
	}
	if run.fsm.logBytes.Load() >= g.options.snapshotBytes && run.snapshot.TryLock() {
		run.work.Go(func() {
			defer run.snapshot.Unlock()
			g.snapshotLocked(run)
		})
	}
}

// snapshotLocked takes a snapshot and shortens the log. run.snapshot is held.
func (g *Group) snapshotLocked(run *running) error {
	start := time.Now()
	run.awaitScripts(start)
	defer run.fsm.allowScripts()
	switch err := run.await(run.raft.Snapshot()); {
	case err == nil:
		g.counters.snapshots.Add(1)
		if observe := g.options.ObserveSnapshot; observe != nil {
			observe(time.Since(start))
		}
		return nil
	case errors.Is(err, raft.ErrNothingNewToSnapshot):
		return nil
	default:
		g.counters.failedSnapshots.Add(1)
		g.log.Warn("the snapshot has failed and is tried again", "error", err)
		return err
	}
}

const (
	// maxScriptWait is for how long a snapshot waits for the end of scripts before it fails.
	maxScriptWait = time.Minute
	// scriptPatience is for how long it waits for a moment without any before others may not begin.
	scriptPatience = time.Second
	scriptInterval = 5 * time.Millisecond // between looks
)

// awaitScripts returns when no script runs that takes long, or it is late, or raft ends.
func (run *running) awaitScripts(start time.Time) {
	for {
		holds, waited := &run.fsm.replica.Load().Engine.Holds, time.Since(start)
		if holds.Empty() || waited >= maxScriptWait || isClosed(run.ended) {
			return
		}
		if waited >= scriptPatience && run.fsm.starved.Load() == nil {
			end := holds.Starve()
			run.fsm.starved.Store(&end)
		}
		time.Sleep(scriptInterval)
	}
}

// Sizes returns the bytes of the log since the last snapshot, and of that snapshot.
func (g *Group) Sizes() (log, snapshot int64) {
	run := g.running.Load()
	if list, err := run.files.snapshots.List(); err == nil && len(list) > 0 {
		snapshot = list[0].Size
	}
	return run.fsm.logBytes.Load(), snapshot
}

// Snapshot takes a snapshot and shortens the log.
func (g *Group) Snapshot() error {
	run := g.running.Load()
	run.snapshot.Lock()
	defer run.snapshot.Unlock()
	return g.snapshotLocked(run)
}

// rebuild replaces raft and the replica: the state is built anew from the last snapshot and the log
// that is committed.
func (g *Group) rebuild(old *running) {
	g.noteChange()
	start := time.Now()
	g.counters.rebuilds.Add(1)
	if err := old.close(errors.New("being rebuilt")); err != nil {
		g.log.Warn("the replica was not closed in order", "error", err)
	}
	for {
		run, err := g.open()
		if err == nil {
			g.running.Store(run)
			g.log.Info("the state is rebuilt", "took", time.Since(start).Round(time.Millisecond))
			g.noteChange()
			return
		}
		g.log.Error("the state cannot be rebuilt, which is tried again", "error", err)
		select {
		case <-g.quit:
			return
		case <-time.After(time.Second):
		}
	}
}

// propose proposes the batches of the replicas until raft ends. All calls that come while an entry
// is on its way share the next one: an entry costs about as much CPU time as 50 calls, so several
// on their way would only be smaller. Full ones are proposed together.
func (g *Group) propose(run *running) {
	var batches []*batch
	var futures []raft.ApplyFuture
	for {
		r := run.fsm.replica.Load()
		select {
		case <-run.ended:
			return
		case <-r.work:
		case <-time.After(100 * time.Millisecond): // the replica may have been replaced
		}
		for batches = r.take(batches[:0]); len(batches) > 0; batches = r.take(batches[:0]) {
			stuck := time.AfterFunc(g.patience(), func() { // it ends what r serves
				r.discard(fmt.Errorf("an entry was not committed within %v", g.patience()))
			})
			for _, b := range batches {
				futures = append(futures, run.raft.ApplyLog(raft.Log{Data: b.entry}, 0))
			}
			for i, b := range batches {
				r.applied(b, run.result(futures[i]))
			}
			stuck.Stop()
			clear(batches)
			clear(futures)
			futures = futures[:0]
		}
	}
}

func (g *Group) patience() time.Duration {
	return cmp.Or(g.options.Patience, time.Duration(math.MaxInt64))
}

// hangs ends raft if the disk of a leader hangs: the others hear it, but it serves nobody. It may
// not have begun to serve, as that waits for the disk as well.
func (run *running) hangs() {
	if r := run.started.Load(); r != nil && r.State() == raft.Leader {
		run.giveUp("the disk of the leader hangs")
	}
}

// noteChange wakes those who wait for a change of leadership.
func (g *Group) noteChange() {
	next := make(chan struct{})
	close(*g.changed.Swap(&next))
}

// ErrBroken reports that the replica cannot be used: other nodes serve the group.
var ErrBroken = errors.New("the replica of the group on this node cannot be used")

// Leading returns the partition if calls are served here. Otherwise the error is a
// *slot.MovedError, slot.ErrNoLeader or ErrBroken.
func (g *Group) Leading() (*Partition, error) {
	run := g.running.Load()
	if run.fault.Load() != nil { // first: it may not have given up the lead yet
		return nil, ErrBroken
	}
	if p := run.fsm.replica.Load().leading.Load(); p != nil {
		return p, nil
	}
	if leader := g.leader(run); leader != "" && leader != g.options.Node {
		return nil, &slot.MovedError{Node: leader}
	}
	return nil, slot.ErrNoLeader
}

// leader returns the node that leads, as far as this one knows. One that was not heard for longer
// than a few of its heartbeats take is likely to be gone: clients should not be sent there.
func (g *Group) leader(run *running) string {
	_, server := run.raft.LeaderWithID()
	id, err := ParseReplicaID(string(server))
	if err != nil || id != g.options.id() && time.Since(run.raft.LastContact()) > g.options.Timeout/3 {
		return ""
	}
	return id.Node
}

// AwaitChange returns when this node may have come to lead, or when it is time to look who else
// does: raft does not say when another node begins to lead.
func (g *Group) AwaitChange(ctx context.Context) {
	select {
	case <-*g.changed.Load():
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
	}
}

// Estimate returns the group's time as far as this node knows it, Unix ms. ok is false if it has
// applied no entry of a present leadership since it was started.
func (g *Group) Estimate() (ms int64, ok bool) { return g.time.estimate() }

// LatestTime returns the latest time in the log as far as it is applied here, Unix ms; 0: none.
func (g *Group) LatestTime() int64 { return g.time.latest() }

// Status is the state of a group on this node.
type Status struct {
	Leader    string // "": none is known
	Leads     bool   // this node serves the group's calls
	Term      uint64
	Last      uint64 // index of the last entry of the log
	Committed uint64 // of the last one that is known to be committed
	Applied   uint64 // of the last one that is applied
	Members   []Server
	Fault     error // why the replica cannot be used; nil: it can
}

// Status returns the state of the group on this node.
func (g *Group) Status() Status {
	run := g.running.Load()
	s := Status{
		Leader: g.leader(run), Leads: run.fsm.replica.Load().Leads(), Term: run.raft.CurrentTerm(),
		Last: run.raft.LastIndex(), Committed: run.raft.CommitIndex(), Applied: run.fsm.index.Load(),
		Members: serversOf(run),
	}
	if err := run.fault.Load(); err != nil {
		s.Fault = *err
	}
	return s
}
