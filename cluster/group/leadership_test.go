package group

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
	"rlserver/cluster/overview"
	"rlserver/internal/clock"
)

// lines collects what is logged, as JSON.
type lines struct{ clustertest.Text }

// because returns why nodes have begun or ended to lead, as the lines with a message say, in order.
func (l *lines) because(t testing.TB, message string) (list []string) {
	for line := range strings.Lines(l.String()) {
		var fields struct {
			Msg, Because string
			Term         uint64
		}
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		if fields.Msg == message {
			assert.NotZero(t, fields.Term)
			list = append(list, fields.Because)
		}
	}
	return list
}

const (
	gainedLine = "this node leads the group"
	lostLine   = "this node does not lead the group any more"
)

// Each change of leadership is a line of the nodes that it concerns, with the reason, and counted.
// Leadership may change at any time on a slow machine, so each change is tried until it is seen.
func TestLogsSayWhyLeadershipChanged(t *testing.T) {
	t.Parallel()
	var log lines
	tr := newTrio(t)
	tr.timeout, tr.tickEvery = short, 50*time.Millisecond
	tr.log = slog.New(slog.NewJSONHandler(&log, nil))
	tr.startAll()
	logged := func(message, reason string) bool {
		match := regexp.MustCompile("^" + reason + "$").MatchString
		return slices.ContainsFunc(log.because(t, message), match)
	}
	until := func(what string, try func() bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); !try(); {
			require.True(t, time.Now().Before(deadline), what)
		}
	}
	first := tr.leader()

	until("a node hands the group over", func() bool {
		tr.leader().group.HandOver(context.Background(), "a test wants it")
		return logged(lostLine, "handed over to [abc]: a test wants it") &&
			logged(gainedLine, "node [abc] has handed it over")
	})

	until("a leader is cut off", func() bool {
		cut := tr.leader()
		tr.isolate(cut.i)
		tr.leader(cut.i)
		tr.eventually("it knows no leader", func() bool {
			f := cut.group.Figures()
			return f.Leader == "" && f.LagTime > 0 && (f.Role == "follower" || f.Role == "candidate")
		})
		tr.eventually("the log says so", func() bool {
			return strings.Contains(log.String(), "the group has no leader that this node hears")
		})
		tr.heal()
		tr.eventually("it has caught up", func() bool {
			f := cut.group.Figures()
			return f.Role == "leader" || f.Role == "follower" && f.LagTime == 0
		})
		return logged(lostLine, "cut off: no majority of the replicas has answered for .*s") &&
			logged(gainedLine, "no word from node [abc] for .*s")
	})

	until("a leader stops", func() bool {
		last := tr.leader()
		last.stop()
		defer last.start()
		return logged(lostLine, "the node stops")
	})
	var sum overview.ReplicaCounts
	for _, n := range tr.nodes {
		if n != first {
			f := n.group.Figures()
			sum.ElectionsCalled += f.ElectionsCalled
			sum.ElectionsWon += f.ElectionsWon
			sum.LeaderChanges += f.LeaderChanges
		}
	}
	assert.Positive(t, sum.LeaderChanges)
	assert.GreaterOrEqual(t, sum.ElectionsCalled, sum.ElectionsWon)
}

func TestReasonsOfGainedLeadership(t *testing.T) {
	l := &leadership{}
	assert.Equal(t, "the group had no leader", l.gained("a"))
	l.previous = "a"
	assert.Equal(t, "no other node has led since this one did", l.gained("a"))
	l.silence = time.Second
	assert.Equal(t, "no word from node a for 1s", l.gained("b"))
	l.asked = true
	assert.Equal(t, "node a has handed it over", l.gained("b"))
}

func TestReasonsOfLostLeadership(t *testing.T) {
	l := &leadership{leader: "b"}
	l.leader = "a"
	assert.Equal(t, "this node was elected again: another one had called an election, as it had not heard this one",
		l.lost("a", time.Second))
	l.leader = "b"
	assert.Equal(t, "node b was elected, as others have not heard this one", l.lost("a", time.Second))
	l.leader = ""
	assert.Equal(t, "another node has called an election, as it has not heard this one", l.lost("a", time.Second))
	l.disk = errors.New("no space left on device")
	assert.Equal(t, "the disk has failed: no space left on device", l.lost("a", time.Second))
}

func TestFailuresOfTheDiskAreNoted(t *testing.T) {
	synced := 0
	g := newGroup(Options{
		Dir: t.TempDir(), Sync: true, ObserveSync: func(time.Duration) { synced++ },
		Clock: clock.System(), Log: testLog(),
	})
	l := &g.leadership
	f, err := g.openFiles(newLogger(testLog(), l.logged), g.stored, func() {})
	require.NoError(t, err)
	require.NoError(t, f.cache.StoreLogs([]*raft.Log{{Index: 1, Term: 1}}))
	require.NoError(t, l.diskError())
	assert.Equal(t, 1, synced)
	assert.True(t, f.cache.(raft.MonotonicLogStore).IsMonotonic(), "as the log behind it is")
	require.NoError(t, f.log.Close())
	require.Error(t, f.cache.StoreLogs([]*raft.Log{{Index: 2, Term: 1}}))
	require.ErrorIs(t, l.diskError(), wal.ErrClosed)
	assert.Equal(t, 1, synced)
}

func TestLag(t *testing.T) {
	var l lag
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	expect := func(last, applied uint64, ms int, entries uint64, behind int) {
		t.Helper()
		n, d := l.behind(last, last, applied, at(ms))
		assert.Equal(t, entries, n)
		assert.Equal(t, time.Duration(behind)*time.Millisecond, d)
	}
	expect(5, 5, 0, 0, 0)
	l.note(10, at(100))
	l.note(20, at(200))
	expect(5, 5, 300, 15, 200)
	expect(15, 12, 300, 8, 100)
	expect(20, 20, 300, 0, 0)
	for i := range 1000 {
		l.note(uint64(100+i), at(400+i))
	}
	assert.Len(t, l.marks, maxMarks)
	expect(20, 20, 2000, 1079, 1600)
	expect(1099, 1099, 2000, 0, 0)
	l.note(2000, at(2000))
	l.reset()
	expect(1100, 1099, 2100, 1, 0)
}

// An idle group writes an entry each second. That a replica has stored it, and does not know yet
// that it is committed, is no lag.
func TestAnEntryThatIsNotKnownToBeCommittedIsNoLag(t *testing.T) {
	var l lag
	now := time.UnixMilli(0)
	entries, _ := l.behind(8, 7, 7, now)
	assert.Zero(t, entries)
	l.note(8, now) // by the report of the leader, before raft says so
	entries, _ = l.behind(8, 7, 7, now)
	assert.Zero(t, entries)
	entries, _ = l.behind(8, 8, 7, now)
	assert.EqualValues(t, 1, entries)
	l.note(9, now)
	entries, _ = l.behind(8, 7, 7, now)
	assert.EqualValues(t, 2, entries, "one is not here yet")
}
