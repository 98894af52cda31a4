package resp

import (
	"bytes"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/forward"
)

// beginCall begins a call that changes a key of the partition, and returns its Tx. The caller ends
// it.
func (f *fakeCluster) beginCall(key string) (*engine.Tx, engine.Key) {
	e := f.partition.Engine
	k, tx := e.Key([]byte(key)), e.NewTx()
	tx.Begin(f.partition.Clock.Now(), 0, []engine.Key{k}, true)
	return tx, k
}

// CLIENT PAUSE replies when the calls that run on the partitions of the node have ended.
func TestPauseAwaitsCallsOfPartitions(t *testing.T) {
	f, ts := newFakeCluster(t)
	c, other := ts.dial(), ts.dial()
	tx, _ := f.beginCall("k")
	var ended atomic.Bool
	repliedAfter := make(chan bool)
	go func() {
		assert.Equal(t, "+OK", c.do("CLIENT PAUSE 1000000 WRITE"))
		repliedAfter <- ended.Load()
	}()
	require.Eventually(t, func() bool { return ts.paused.Load() != nil }, time.Minute, time.Millisecond)
	for range 200 { // so long it could have replied
		other.do("PING")
	}
	ended.Store(true)
	tx.End()
	assert.True(t, <-repliedAfter)
}

// Calls that wait on a partition run when CLIENT UNPAUSE ends the pause.
func TestUnpauseWakesCallsThatWaitOnPartitions(t *testing.T) {
	f, ts := newFakeCluster(t)
	c, other := ts.dial(), ts.dial()
	other.do("RL.LEASE l 1 1h a")
	c.Write([]byte(frame("RL.LEASE", "l", "1", "1h", "b", "WAIT", "2h")))
	queues := ts.partitionOf(0, f.partition).queues
	require.Eventually(t, func() bool { return queues.Waiting.Load() == 1 }, time.Minute, time.Millisecond)
	require.Equal(t, "+OK", other.do("CLIENT PAUSE 1000000 WRITE"))
	tx, k := f.beginCall("l")
	tx.Delete(k)
	tx.End()
	assert.EqualValues(t, 1, queues.Waiting.Load(), "the call is paused")
	require.Equal(t, "+OK", other.do("CLIENT UNPAUSE"))
	assert.Contains(t, c.read(), "*5 :1")
}

// CLIENT PAUSE on a node holds back FLUSHALL of clients of other nodes as well, which they forward
// for each group.
func TestPauseHoldsCallsOnAllGroupsOfOtherNodes(t *testing.T) {
	_, ts := newFakeCluster(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go ts.ServeNodes(ln)
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	c, node := ts.dial(), ts.over(conn)
	require.Equal(t, "+OK", c.do("SET k v"))
	require.Equal(t, "+OK", c.do("CLIENT PAUSE 1000000 WRITE"))
	_, err = node.Write(forward.AppendOnGroup([]byte(frame(forward.Control, "default", "2", "0", "link")), 0,
		words("FLUSHALL")))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return ts.held.Load() == 1 }, time.Minute, time.Millisecond)
	assert.Equal(t, "$1 v", c.do("GET k"))
	require.Equal(t, "+OK", c.do("CLIENT UNPAUSE"))
	assert.Equal(t, "+OK ", node.read())
	assert.Equal(t, "$-1", c.do("GET k"))
}

// A call on all groups that a pause holds back when it has its locks keeps its arguments, whatever
// the client sends meanwhile.
func TestPausedCallsOnAllGroupsKeepTheirArguments(t *testing.T) {
	f, ts := newFakeCluster(t)
	c, other := ts.dial(), ts.dial()
	tx, _ := f.beginCall("k")
	c.Write([]byte(frame("FLUSHALL", "SYNC")))
	stacks := make([]byte, 1<<20)
	require.Eventually(t, func() bool { // it waits for the locks
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*session).runOn("))
	}, time.Minute, time.Millisecond)
	paused := make(chan string)
	go func() { paused <- other.do("CLIENT PAUSE 1000000 WRITE") }()
	require.Eventually(t, func() bool { return ts.paused.Load() != nil }, time.Minute, time.Millisecond)
	tx.End()
	require.Equal(t, "+OK", <-paused)
	require.Eventually(t, func() bool { return ts.held.Load() == 1 }, time.Minute, time.Millisecond)
	c.Write([]byte(frame("ECHO", strings.Repeat("x", 100))))
	require.Eventually(t, func() bool {
		return strings.Contains(other.do("CLIENT LIST"), " qbuf=1")
	}, time.Minute, time.Millisecond)
	require.Equal(t, "+OK", other.do("CLIENT UNPAUSE"))
	assert.Equal(t, "+OK ", c.read())
	assert.Contains(t, c.read(), "xxx")
}

// A long call that another node forwards for a group has ended when its reply is sent, whether the
// link has a call before or after it or not.
func TestLongCallsOfOtherNodesEnd(t *testing.T) {
	var begun, running atomic.Int64
	_, ts := newFakeCluster(t, func(o *Options) {
		now := commandtest.FrozenTime()
		// each look finds that much time gone
		o.Clock = commandtest.ClockBy(func() int64 { return now.Add(6) })
		o.LongCall = func() (end func()) {
			begun.Add(1)
			running.Add(1)
			return func() { running.Add(-1) }
		}
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go ts.ServeNodes(ln)
	require.Equal(t, "+OK", ts.dial().do("SET k v"))
	for call, want := range map[string]string{"KEYS *": "*1 $1 k ", "SCAN 0": "*2 $1 0 *1 $1 k "} {
		conn, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		node := ts.over(conn)
		_, err = node.Write(forward.AppendOnGroup([]byte(frame(forward.Control, "default", "2", "0", "link")), 0,
			words(strings.Fields(call)...)))
		require.NoError(t, err)
		require.Equal(t, want, node.read())
		require.Positive(t, begun.Swap(0), "%s took long", call)
		require.Zero(t, running.Load(), "%s is over", call)
	}
}

// A call that takes no time is not a long one, however long its link was idle.
func TestShortCallsOfOtherNodesAreNotLong(t *testing.T) {
	var begun atomic.Int64
	_, ts := newFakeCluster(t, func(o *Options) {
		o.LongCall = func() (end func()) { begun.Add(1); return func() {} }
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go ts.ServeNodes(ln)
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	node := ts.over(conn)
	_, err = node.Write([]byte(frame(forward.Control, "default", "2", "0", "link") + frame("PING")))
	require.NoError(t, err)
	require.Equal(t, "+PONG ", node.read())
	ts.advance(60_000)
	_, err = node.Write(forward.AppendOnGroup(nil, 0, words("KEYS", "*")))
	require.NoError(t, err)
	require.Equal(t, "*0 ", node.read())
	assert.Zero(t, begun.Load())
}

// A long call that a pause holds back has not begun: its client may go away meanwhile.
func TestPausedCallsAreNotLong(t *testing.T) {
	var begun, running atomic.Int64
	ts := startServer(t, config.Defaults{}, func(o *Options) {
		o.LongCall = func() (end func()) {
			begun.Add(1)
			running.Add(1)
			return func() { running.Add(-1) }
		}
	})
	c, other := ts.dial(), ts.dial()
	k, tx := ts.Engine.Key([]byte("k")), ts.Engine.NewTx()
	tx.Begin(testStart, 0, []engine.Key{k}, true)
	go c.Write([]byte(frame(slices.Insert(slices.Repeat([]string{"k"}, command.LongWork), 0, "DEL")...)))
	require.Eventually(t, func() bool { return begun.Load() == 1 }, time.Minute, time.Millisecond)
	paused := make(chan string)
	go func() { paused <- other.do("CLIENT PAUSE 1000000 WRITE") }()
	require.Eventually(t, func() bool { return ts.paused.Load() != nil }, time.Minute, time.Millisecond)
	tx.End()
	require.Equal(t, "+OK", <-paused)
	require.Eventually(t, func() bool { return ts.held.Load() == 1 }, time.Minute, time.Millisecond)
	assert.Zero(t, running.Load())
	c.Close()
	require.Eventually(t, func() bool { return ts.held.Load() == 0 }, time.Minute, time.Millisecond)
	assert.Zero(t, running.Load())
}
