package group

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lines collects what is logged, as JSON.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// because returns why a node has begun or ended to lead, as its lines say, in order.
func (l *lines) because(t testing.TB, node, message string) (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.text.Bytes()) {
		var fields struct {
			Node, Msg, Because string
			Term               uint64
		}
		require.NoError(t, json.Unmarshal(line, &fields))
		if fields.Node == node && fields.Msg == message {
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
func TestLogsSayWhyLeadershipChanged(t *testing.T) {
	t.Parallel()
	var log lines
	tr := newTrio(t)
	tr.timeout = time.Second
	tr.log = slog.New(slog.NewJSONHandler(&log, nil))
	tr.startAll()
	expect := func(n *node, message, reason string) {
		t.Helper()
		var list []string
		matches := func() bool {
			list = log.because(t, names[n.i], message)
			return len(list) > 0 && regexp.MustCompile("^"+reason+"$").MatchString(list[len(list)-1])
		}
		if !assert.Eventually(t, matches, patience, 5*time.Millisecond) {
			assert.Fail(t, "another reason", "%s: %q: %q", names[n.i], message, list)
		}
	}

	first := tr.leader()
	expect(first, gainedLine, "the group had no leader")

	require.NoError(t, first.group.HandOver(context.Background(), "", "a test wants it"))
	expect(first, lostLine, "handed over to another node: a test wants it")
	second := tr.leader()
	if second != first { // it may have been elected again at once
		expect(second, gainedLine, "node "+names[first.i]+" has handed it over")
	}
	assert.EqualValues(t, 1, first.group.Figures().HandOvers)

	tr.isolate(second.i)
	expect(second, lostLine, "cut off: no majority of the replicas has answered for 500ms")
	third := tr.leader(second.i)
	expect(third, gainedLine, "no word from node "+names[second.i]+" for .*s")
	alone := second.group.Figures()
	assert.Contains(t, []string{"follower", "candidate"}, alone.Role)
	assert.Positive(t, alone.LagTime, "it hears no leader")
	tr.eventually("the log says that there is no leader", func() bool {
		log.mu.Lock()
		defer log.mu.Unlock()
		return bytes.Contains(log.text.Bytes(), []byte("the group has no leader that this node hears"))
	})
	tr.heal()
	tr.eventually("it has caught up", func() bool {
		f := second.group.Figures()
		return f.Role == "follower" && f.LagTime == 0
	})

	f := third.group.Figures()
	assert.Equal(t, "leader", f.Role)
	assert.Positive(t, f.ElectionsWon)
	assert.GreaterOrEqual(t, f.ElectionsCalled, f.ElectionsWon)
	assert.Positive(t, f.LeaderChanges)
	third.stop()
	expect(third, lostLine, "the node stops")
}

func TestReasonsOfLostLeadership(t *testing.T) {
	l := &leadership{leader: "b"}
	assert.Equal(t, "node b was elected, as others have not heard this one", l.lost(time.Second))
	l.leader = ""
	assert.Equal(t, "another node has called an election, as it has not heard this one", l.lost(time.Second))
	l.setDisk(errors.New("no space left on device"))
	assert.Equal(t, "the disk has failed: no space left on device", l.lost(time.Second))
}

func TestFailuresOfTheDiskAreNoted(t *testing.T) {
	synced := 0
	g := &Group{options: Options{Sync: true, ObserveSync: func(time.Duration) { synced++ }}}
	l := &g.leadership
	f, err := openFiles(t.TempDir(), g.syncs, &logger{to: testLog(), said: l.said}, g.stored)
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
		n, d := l.behind(last, applied, at(ms))
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
	assert.Len(t, l.marks, mostMarks)
	expect(20, 20, 2000, 1079, 1600)
	expect(1099, 1099, 2000, 0, 0)
	l.note(2000, at(2000))
	l.reset()
	expect(1100, 1099, 2100, 1, 0)
}
