package group

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"rlserver/cluster/overview"
)

// Figures are the state of a group on this node, and what its replica has counted.
type Figures struct {
	Status
	Role       string // as in package overview
	LagEntries uint64 // committed entries that this replica has not applied
	// LagTime is for how long the oldest of them is missing or, while no leader is heard, for how
	// long that is so.
	LagTime time.Duration
	Disk    error // why the last entry could not be stored; nil: it was
	overview.ReplicaCounts
}

type counters struct {
	electionsCalled, electionsWon, leaderChanges, handOvers, rebuilds, snapshots, failedSnapshots, digests atomic.Int64
}

func (c *counters) snapshot() overview.ReplicaCounts {
	return overview.ReplicaCounts{
		ElectionsCalled: c.electionsCalled.Load(), ElectionsWon: c.electionsWon.Load(),
		LeaderChanges: c.leaderChanges.Load(), HandOvers: c.handOvers.Load(), Rebuilds: c.rebuilds.Load(),
		Snapshots: c.snapshots.Load(), FailedSnapshots: c.failedSnapshots.Load(),
		Digests: c.digests.Load(),
	}
}

// Figures returns the figures of the group on this node.
func (g *Group) Figures() Figures {
	f := Figures{Status: g.Status(), ReplicaCounts: g.counters.snapshot()}
	run := g.running.Load()
	switch {
	case f.Fault != nil:
		f.Role = overview.Broken
	case f.Leads:
		f.Role = overview.Leader
	case run.raft.State() == raft.Follower:
		f.Role = overview.Follower
	default:
		f.Role = overview.Candidate // or elected, and not serving yet
	}
	f.Disk = g.leadership.diskError()
	now := time.Now()
	f.LagEntries, f.LagTime = g.lag.behind(f.Last, f.Committed, f.Applied, now)
	if f.Leader == "" {
		f.LagTime = max(f.LagTime, g.leadership.without(now))
	}
	return f
}

// NoteCommitted notes the index of the last entry that the node that leads knows to be committed.
func (g *Group) NoteCommitted(index uint64) { g.lag.note(index, time.Now()) }

// Level reports whether this replica leads, or lacks nothing for longer than Options.Timeout that
// its leader had, since it has caught up once after it was opened.
func (g *Group) Level() bool {
	f := g.Figures()
	g.lag.mu.Lock()
	defer g.lag.mu.Unlock()
	return f.Leads || g.lag.level && f.LagTime <= g.options.Timeout
}

// lag measures how far a replica is behind its leader. A mark is how far the leader had come at a
// time: it is removed when the replica has come so far.
type lag struct {
	mu    sync.Mutex
	last  uint64 // the latest mark's index
	marks []mark // in order
	level bool   // nothing was missing once
}

type mark struct {
	index uint64
	at    time.Time
}

// maxMarks is how many marks are kept; further ones replace the last.
const maxMarks = 64

func (l *lag) note(index uint64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if index <= l.last {
		return
	}
	l.last = index
	if n := len(l.marks); n == maxMarks {
		l.marks[n-1].index = index
	} else {
		l.marks = append(l.marks, mark{index, now})
	}
}

// reset forgets the marks: the log of another leader may be shorter.
func (l *lag) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.marks = 0, nil
}

// behind returns how many committed entries are missing and for how long the oldest is. last is the
// end of the replica's own log. Up to there raft says what is committed: an entry that is stored
// and waits for that, as each idle second brings one, is not missing.
func (l *lag) behind(last, committed, applied uint64, now time.Time) (entries uint64, since time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	done := 0
	for done < len(l.marks) && l.marks[done].index <= applied {
		done++
	}
	l.marks = append(l.marks[:0], l.marks[done:]...)
	if len(l.marks) > 0 {
		since = now.Sub(l.marks[0].at)
	}
	l.level = l.level || l.last > 0 && len(l.marks) == 0
	if l.last > last {
		committed = max(committed, l.last)
	}
	if committed > applied {
		entries = committed - applied
	}
	return entries, since
}
