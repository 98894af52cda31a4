package resp

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

// What clients that track keys are told of calls is compared with Redis in package integration.

// tracker returns a client that tracks keys.
func (s *testServer) tracker(options string) *testClient {
	c := s.named("tracker")
	require.Contains(s.t, c.do("HELLO 3"), "proto :3")
	require.Equal(s.t, "+OK", c.do("CLIENT TRACKING ON "+options))
	return c
}

// A client that does not read what it is told is closed by its output limit. It costs neither those
// who change keys nor other clients anything.
func TestSlowTrackerIsClosed(t *testing.T) {
	for name, limit := range map[string]string{
		"hard": "normal 1mb 0 0", "soft": "normal 0 200kb 1", "none": "normal 0 0 0",
	} {
		t.Run(name, func(t *testing.T) {
			ts := startServer(t, config.Defaults{})
			admin := ts.dial()
			slow, quick := ts.tracker("BCAST"), ts.tracker("BCAST PREFIX k")
			require.Equal(t, "+OK", slow.do("CLIENT SETNAME slow"))
			require.Equal(t, "+OK", admin.send("CONFIG", "SET", "client-output-buffer-limit", limit))
			if name == "none" {
				require.Equal(t, "+OK", admin.do("CONFIG SET maxmemory-clients 2mb"))
			}
			key := "k" + strings.Repeat("x", 10_000)
			for closed := 0; closed < 100; { // until long after the slow one is closed
				require.Equal(t, "+OK", admin.do("SET "+key+" 1"))
				require.Equal(t, ">2 $10 invalidate *1 $10001 "+key+" ", quick.read())
				if admin.number("tracking_clients") == 1 {
					closed++
				}
			}
			assert.NotContains(t, admin.do("CLIENT LIST"), "name=slow")
			if name == "none" {
				assert.Equal(t, "1", admin.field("evicted_clients"))
			} else {
				assert.Equal(t, "1", admin.field("client_output_buffer_limit_disconnections"))
			}
			assert.Equal(t, "1", admin.field("tracking_total_prefixes"))
		})
	}
}

// What a client is told of a change follows the reply that shows the value before it, also if that
// has to wait for the log.
func TestInvalidationsFollowReplies(t *testing.T) {
	journal := newSlowJournal()
	ts := startServer(t, config.Defaults{}, withJournal(journal))
	a, b := ts.tracker(""), ts.dial()
	_, err := io.WriteString(a, "SET mine 1\r\nGET k\r\nPING\r\n") // its replies wait
	require.NoError(t, err)
	b.eventually("the calls have run", func() bool { return ts.Tracking.Sizes().Keys == 1 })
	_, err = io.WriteString(b, "SET k v\r\n")
	require.NoError(t, err)
	b.eventually("the call has run", func() bool { return journal.length() == 2 })
	requireSilence(t, a)
	journal.sync()
	assert.Equal(t, "+OK ", b.read())
	for _, want := range []string{"+OK ", "_ ", "+PONG ", ">2 $10 invalidate *1 $1 k "} {
		assert.Equal(t, want, a.read())
	}
}

// Clients are told of keys that no call has changed: those that have expired, or were evicted.
func TestInvalidationsOfNobodysCalls(t *testing.T) {
	ts := startServer(t, config.Defaults{"maxmemory": "40mb", "maxmemory-policy": "allkeys-lru"})
	c, tracker := ts.dial(), ts.tracker("NOLOOP")
	value := strings.Repeat("x", 1<<20)
	got := ":1"
	for i := 0; i < 60 && got == ":1"; i++ { // 40 fit
		key := fmt.Sprintf("k%02d", i)
		require.Equal(t, "+OK", c.send("SET", key, value))
		got = tracker.do("EXISTS " + key)
	}
	assert.Regexp(t, `^>2 \$10 invalidate \*1 \$3 k\d\d$`, got)
}

// The INFO lines, and a lower bound that applies at once.
func TestTrackingIsBounded(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, tracker := ts.dial(), ts.tracker("")
	for i := range 20 {
		tracker.do(fmt.Sprintf("GET key%02d", i))
	}
	for name, want := range map[string]int{
		"tracking_clients": 1, "tracking_total_keys": 20, "tracking_total_items": 20, "tracking_total_prefixes": 0,
		"tracking_total_key_bytes": 100, "tracking_forgotten_keys": 0,
	} {
		assert.Equal(t, strconv.Itoa(want), c.field(name), name)
	}
	require.Equal(t, "+OK", c.do("CONFIG SET tracking-table-max-keys 5"))
	for range 15 {
		assert.Contains(t, tracker.read(), ">2 $10 invalidate *1 $5 key")
	}
	assert.Equal(t, "5", c.field("tracking_total_keys"))
	assert.Equal(t, "15", c.field("tracking_forgotten_keys"))
	assert.Equal(t, "+OK", tracker.do("CLIENT TRACKING OFF"))
	assert.Equal(t, "0", c.field("tracking_total_keys"))
	tracker.do("CLIENT TRACKING ON BCAST PREFIX " + strings.Repeat("x", 1000))
	assert.Equal(t, "1", c.field("tracking_total_prefixes"))
	before := c.clientField("tracker", "tot-mem")
	assert.Equal(t, "+OK", tracker.do("CLIENT TRACKING OFF"))
	assert.Equal(t, 1200, before-c.clientField("tracker", "tot-mem"), "prefixes count in the memory of their client")
}

// A client with many nested prefixes and long keys costs those who change keys little: what a key
// begins with is found by one search.
func TestLongPrefixes(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	for i := range 200 {
		ts.tracker("BCAST PREFIX " + strings.Repeat("y", 50*i+1))
	}
	key := strings.Repeat("y", 50_000)
	begun := time.Now()
	for range 20 {
		require.Equal(t, "+OK", c.do("SET "+key+"z 1"))
	}
	assert.Less(t, time.Since(begun), time.Minute)
}

// When this node no longer leads, all that clients have read counts as changed. So it does for the
// links of other nodes.
func TestInvalidationsWhenLeadershipEnds(t *testing.T) {
	f, ts := newFakeCluster(t)
	tracker, broadcast := ts.tracker(""), ts.tracker("BCAST")
	require.Equal(t, "_", strings.TrimSpace(tracker.do("GET k")))
	f.absent.Store(true)
	close(f.ended)
	assert.Equal(t, ">2 $10 invalidate _ ", tracker.read())
	assert.Equal(t, ">2 $10 invalidate _ ", broadcast.read())
	assert.Equal(t, 0, tracker.number("tracking_total_keys"))
}

// A reply that has waited for an election is followed, not preceded, by what the client is told of
// a change that comes before the reply is sent.
func TestInvalidationsFollowRepliesAfterElections(t *testing.T) {
	f, ts := newFakeCluster(t)
	tracker, other := ts.tracker(""), ts.dial()
	f.absent.Store(true)
	_, err := tracker.Write([]byte(frame("GET", "k")))
	require.NoError(t, err)
	hold := make(chan struct{})
	f.waits.Store(&hold)
	f.awaited <- struct{}{}
	other.eventually("the call has run", func() bool { return ts.Tracking.Sizes().Keys == 1 })
	f.waits.Store(nil)
	require.Equal(t, "+OK", other.do("SET k v"))
	close(hold)
	assert.Equal(t, "_ ", tracker.read())
	assert.Equal(t, ">2 $10 invalidate *1 $1 k ", tracker.read())
}
