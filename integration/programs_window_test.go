package integration

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The programs_*_test.go files compare client-side limiters, which are made of Redis' own commands,
// with the commands of this server: each client-side limiter has a flaw, which a test reproduces
// deterministically, and the server's command does not have it.

// A clientWindow is a sliding window of a client, in a sorted set: it admits a thousand calls a
// second.
type clientWindow struct {
	rdb    *redis.Client
	now    func() int64 // the client's clock, in Unix ms
	member func(now int64) string
}

const (
	perSecond = 1000
	second    = 1000 // ms
)

// fits is the first half of admitting a call: it reads the log and reports whether a hit fits.
func (w clientWindow) fits(t *testing.T, key string) bool {
	t.Helper()
	now := w.now()
	require.NoError(t, w.rdb.ZRemRangeByScore(t.Context(), key, "-inf", strconv.FormatInt(now-second, 10)).Err())
	used, err := w.rdb.ZCard(t.Context(), key).Result()
	require.NoError(t, err)
	return used < perSecond
}

// record is the second half: it adds a hit to the log.
func (w clientWindow) record(t *testing.T, key string) {
	t.Helper()
	now := w.now()
	require.NoError(t, w.rdb.ZAdd(t.Context(), key, redis.Z{Score: float64(now), Member: w.member(now)}).Err())
	require.NoError(t, w.rdb.Expire(t.Context(), key, time.Hour).Err())
}

func (w clientWindow) allows(t *testing.T, key string) bool {
	t.Helper()
	if !w.fits(t, key) {
		return false
	}
	w.record(t, key)
	return true
}

// inTheLastSecond returns the number of hits in the window, by the client's clock.
func (w clientWindow) inTheLastSecond(t *testing.T, key string) int64 {
	t.Helper()
	now := w.now()
	n, err := w.rdb.ZCount(t.Context(), key, fmt.Sprintf("(%d", now-second), strconv.FormatInt(now, 10)).Result()
	require.NoError(t, err)
	return n
}

// someTime is the time of these clients' clocks, in Unix ms. They stand still unless a test moves
// them.
const someTime = 1767225600000

func stopped(at int64) func() int64 { return func() int64 { return at } }

// uniqueNames returns a function that returns unique member names.
func uniqueNames(client string) func(int64) string {
	n := 0
	return func(now int64) string {
		n++
		return fmt.Sprintf("%d-%s-%d", now, client, n)
	}
}

// The flaw: another client may call between the read and the write of a client. The more clients,
// the more calls are admitted.
func TestClientWindowAdmitsOneTooMany(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first := clientWindow{s.connect(t), stopped(someTime), uniqueNames("first")}
	second := clientWindow{s.connect(t), stopped(someTime), uniqueNames("second")}
	for range perSecond - 1 {
		require.True(t, first.allows(t, "api"))
	}

	require.True(t, first.fits(t, "api"))
	require.True(t, second.fits(t, "api"))
	first.record(t, "api")
	second.record(t, "api")

	assert.Equal(t, int64(perSecond+1), first.inTheLastSecond(t, "api"))
}

// The flaw: hits are named by their time only, so all hits of one millisecond count as one.
func TestClientWindowLosesHitsOfOneMillisecond(t *testing.T) {
	t.Parallel()
	byTime := func(now int64) string { return strconv.FormatInt(now, 10) }
	w := clientWindow{startServer(t).connect(t), stopped(someTime), byTime}
	for range perSecond + 500 {
		require.True(t, w.allows(t, "api"))
	}
	assert.Equal(t, int64(1), w.inTheLastSecond(t, "api"))
}

// The flaw: each client uses its own clock. One that is ahead removes hits that the others still
// count.
func TestClientWindowUsesClientClocks(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	right := clientWindow{s.connect(t), stopped(someTime), uniqueNames("right")}
	ahead := clientWindow{s.connect(t), stopped(someTime + second), uniqueNames("ahead")}
	for range perSecond {
		require.True(t, right.allows(t, "api"))
	}
	require.False(t, right.allows(t, "api"))
	for range perSecond {
		require.True(t, ahead.allows(t, "api"), "a thousand more at the same time")
	}
}

// Two clients have both read that one call is left: one of them is admitted.
func TestSlideAdmitsExactly(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first, second := s.connect(t), s.connect(t)
	require.True(t, allows(t, first, "RL.SLIDE api 1000 1h COST 999"))

	require.Equal(t, int64(1), decide(t, first, "RL.SLIDE api 1000 1h COST 0").Remaining)
	require.Equal(t, int64(1), decide(t, second, "RL.SLIDE api 1000 1h COST 0").Remaining)
	require.True(t, allows(t, first, "RL.SLIDE api 1000 1h"))
	require.False(t, allows(t, second, "RL.SLIDE api 1000 1h"))

	assert.Equal(t, int64(1000), first.ZCard(t.Context(), "api").Val())
}

// Each hit is counted, however many there are in one millisecond.
func TestSlideCountsHitsOfOneMillisecond(t *testing.T) {
	t.Parallel()
	rdb := startServer(t).connect(t)
	require.True(t, allows(t, rdb, "RL.SLIDE atonce 1000 1h COST 1000"))
	assert.Equal(t, int64(1000), rdb.ZCard(t.Context(), "atonce").Val())

	pipe := rdb.Pipeline()
	for range perSecond + 500 {
		pipe.Do(t.Context(), "RL.SLIDE", "api", perSecond, "1h")
	}
	replies, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	for i, reply := range replies {
		d, err := decisionIn(reply.(*redis.Cmd))
		require.NoError(t, err)
		require.Equal(t, i < perSecond, d.Allowed == 1, "call %d", i)
	}
	assert.Equal(t, int64(perSecond), rdb.ZCard(t.Context(), "api").Val())
}

// The server's clock is used, not the clients'.
func TestSlideUsesServerClock(t *testing.T) {
	t.Parallel()
	rdb := startServer(t).connect(t)
	before := serverTime(t, rdb)
	require.True(t, allows(t, rdb, "RL.SLIDE api 1000 1h"))
	after := serverTime(t, rdb)
	hits := rdb.ZRangeWithScores(t.Context(), "api", 0, -1).Val()
	require.Len(t, hits, 1)
	assert.GreaterOrEqual(t, hits[0].Score, float64(before))
	assert.LessOrEqual(t, hits[0].Score, float64(after))
}

// Two clients that call as fast as they can never get more than a thousand calls admitted within
// any second. The log holds the admitted calls.
func TestSlideLimitsEverySecond(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	log := make(map[any]int64) // time of each hit
	clients := []*redis.Client{s.connect(t), s.connect(t)}
	admitted, denials := 0, 0
	for denials < 2 { // so that the test lasts for more than one second
		for _, rdb := range clients {
			pipe := rdb.Pipeline()
			for range 300 {
				pipe.Do(t.Context(), "RL.SLIDE", "api", perSecond, "1s")
			}
			hits := pipe.ZRangeWithScores(t.Context(), "api", 0, -1)
			replies, err := pipe.Exec(t.Context())
			require.NoError(t, err)
			for _, hit := range hits.Val() {
				log[hit.Member] = int64(hit.Score)
			}
			var last decision
			for _, reply := range replies[:300] {
				last, err = decisionIn(reply.(*redis.Cmd))
				require.NoError(t, err)
				admitted += int(last.Allowed)
			}
			if last.Allowed == 0 {
				denials++
				sleepUntil(t, rdb, serverTime(t, rdb)+last.RetryAfter)
			}
		}
	}
	assert.Greater(t, admitted, perSecond)
	assertAtMost(t, perSecond, second, slices.Collect(maps.Values(log)))
}

// assertAtMost checks that no interval of a window's length has more than limit hits.
func assertAtMost(t *testing.T, limit int, window int64, hits []int64) {
	t.Helper()
	slices.Sort(hits)
	for i := range len(hits) - limit {
		require.GreaterOrEqual(t, hits[i+limit]-hits[i], window, "%d hits from %d on", limit+1, hits[i])
	}
}

// A service can change from a client-side window to RL.SLIDE while it runs: both use the same log.
func TestSlideSharesLogOfClientWindow(t *testing.T) {
	t.Parallel()
	rdb := startServer(t).connect(t)
	window := clientWindow{rdb, func() int64 { return serverTime(t, rdb) }, uniqueNames("client")}
	const minute = 60_000
	for _, minutesAgo := range []int64{61, 59, 30} {
		at := window.now() - minutesAgo*minute
		require.NoError(t, rdb.ZAdd(t.Context(), "api", redis.Z{Score: float64(at), Member: window.member(at)}).Err())
	}

	before := serverTime(t, rdb)
	d := decide(t, rdb, "RL.SLIDE api 3 1h")
	assert.Equal(t, int64(1), d.Allowed, "one of the client's hits has left the window")
	assert.Equal(t, int64(0), d.Remaining)
	assert.Equal(t, int64(3), rdb.ZCard(t.Context(), "api").Val())

	d = decide(t, rdb, "RL.SLIDE api 3 1h")
	assert.Equal(t, int64(0), d.Allowed)
	assert.LessOrEqual(t, d.RetryAfter, int64(minute), "until the hit of 59 minutes ago leaves")

	assert.Equal(t, int64(1), rdb.ZCount(t.Context(), "api", strconv.FormatInt(before, 10), "+inf").Val(),
		"the client-side window counts the hit of RL.SLIDE")
}
