package group

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A leader whose process has ended is replaced without waiting for the timeout.
func TestALeaderThatHasEndedIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	var log lines
	tr := newTrio(t)
	tr.timeout = 15 * time.Second // so that no election is called otherwise
	tr.log = slog.New(slog.NewJSONHandler(&log, nil))
	tr.startAll()
	tr.nodes[0].callElection()
	leader := tr.await(t)
	ended := names[leader.i]
	follower := tr.nodes[(leader.i+1)%len(tr.nodes)]
	tr.eventually("the leader is known", func() bool { return follower.group.Status().Leader == ended })
	_, gone := follower.group.leaderGone(follower.group.running.Load())
	assert.False(t, gone, "its port answers")
	leader.port.Close() // it refuses connections before those that there are end
	leader.stop()
	next := tr.await(t)
	assert.NotEqual(t, leader.i, next.i)
	assert.Contains(t, log.because(t, gainedLine),
		"the process of node "+ended+" has ended: its port refuses connections")
}

// await waits for a leader without calling elections.
func (tr *trio) await(t *testing.T) (found *node) {
	t.Helper()
	tr.eventually("a node leads", func() bool {
		at := slices.IndexFunc(tr.nodes, func(n *node) bool {
			return n.group != nil && n.group.running.Load().fsm.replica.Load().Leads()
		})
		if at >= 0 {
			found = tr.nodes[at]
		}
		return at >= 0
	})
	return found
}
