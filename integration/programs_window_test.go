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

// The programs_*_test.go files hold limiters as people write them by hand over Redis' own commands:
// first with the flaw that each has, reproduced without chance, then as a command of this server,
// which does not have it.

// A windowByHand admits a thousand calls a second with a log in a sorted set that the client
// maintains.
type windowByHand struct {
	rdb    *redis.Client
	now    func() int64 // the client's clock, in Unix ms
	member func(now int64) string
}

const (
	perSecond = 1000
	second    = 1000 // ms
)

// hasRoom is the first half of admitting a call: it reads the log.
func (w windowByHand) hasRoom(t *testing.T, key string) bool {
	t.Helper()
	now := w.now()
	require.NoError(t, w.rdb.ZRemRangeByScore(t.Context(), key, "-inf", strconv.FormatInt(now-second, 10)).Err())
	used, err := w.rdb.ZCard(t.Context(), key).Result()
	require.NoError(t, err)
	return used < perSecond
}

// record is the second half: it adds a hit to the log.
func (w windowByHand) record(t *testing.T, key string) {
	t.Helper()
	now := w.now()
	require.NoError(t, w.rdb.ZAdd(t.Context(), key, redis.Z{Score: float64(now), Member: w.member(now)}).Err())
	require.NoError(t, w.rdb.Expire(t.Context(), key, time.Hour).Err())
}

func (w windowByHand) allows(t *testing.T, key string) bool {
	t.Helper()
	if !w.hasRoom(t, key) {
		return false
	}
	w.record(t, key)
	return true
}

// inTheLastSecond returns how many hits the window holds, by the caller's clock.
func (w windowByHand) inTheLastSecond(t *testing.T, key string) int64 {
	t.Helper()
	now := w.now()
	n, err := w.rdb.ZCount(t.Context(), key, fmt.Sprintf("(%d", now-second), strconv.FormatInt(now, 10)).Result()
	require.NoError(t, err)
	return n
}

// someTime is where the clocks of these clients begin. They stand still unless a test moves them.
const someTime = 1767225600000

func stopped(at int64) func() int64 { return func() int64 { return at } }

// neverTwice returns unique member names.
func neverTwice(client string) func(int64) string {
	n := 0
	return func(now int64) string {
		n++
		return fmt.Sprintf("%d-%s-%d", now, client, n)
	}
}

// The flaw: between the read and the write of one client comes another. The more clients, the more
// calls get through.
func TestWindowByHandAdmitsOneTooMany(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first := windowByHand{s.connect(t), stopped(someTime), neverTwice("first")}
	second := windowByHand{s.connect(t), stopped(someTime), neverTwice("second")}
	for range perSecond - 1 {
		require.True(t, first.allows(t, "api"))
	}

	require.True(t, first.hasRoom(t, "api"))
	require.True(t, second.hasRoom(t, "api"))
	first.record(t, "api")
	second.record(t, "api")

	assert.Equal(t, int64(perSecond+1), first.inTheLastSecond(t, "api"))
}

// The flaw: only their time distinguishes hits, so all hits of one millisecond are one.
func TestWindowByHandLosesHitsOfOneMillisecond(t *testing.T) {
	t.Parallel()
	byTime := func(now int64) string { return strconv.FormatInt(now, 10) }
	w := windowByHand{startServer(t).connect(t), stopped(someTime), byTime}
	for range perSecond + 500 {
		require.True(t, w.allows(t, "api"))
	}
	assert.Equal(t, int64(1), w.inTheLastSecond(t, "api"))
}

// The flaw: each client uses its own clock. One that is ahead removes hits that the others still
// count.
func TestWindowByHandBelievesEveryClock(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	right := windowByHand{s.connect(t), stopped(someTime), neverTwice("right")}
	ahead := windowByHand{s.connect(t), stopped(someTime + second), neverTwice("ahead")}
	for range perSecond {
		require.True(t, right.allows(t, "api"))
	}
	require.False(t, right.allows(t, "api"))
	for range perSecond {
		require.True(t, ahead.allows(t, "api"), "a thousand more at the same moment")
	}
}

// Two clients that both know of the last free place: one gets it.
func TestSlideAdmitsNotOneTooMany(t *testing.T) {
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

// However many hits fall into one millisecond, each is counted.
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

// The clock that counts is the server's. Clients have no influence on it.
func TestSlideGoesByOneClock(t *testing.T) {
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

// Two clients that call as fast as they can never get a thousand and one calls through in any
// second. The log has those that were admitted.
func TestSlideAThousandASecond(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	log := make(map[any]int64) // when which hit was admitted
	clients := []*redis.Client{s.connect(t), s.connect(t)}
	admitted, denials := 0, 0
	for denials < 2 { // so that more than one second is looked at
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

// assertAtMost checks every stretch of a window's length.
func assertAtMost(t *testing.T, limit int, window int64, hits []int64) {
	t.Helper()
	slices.Sort(hits)
	for i := range len(hits) - limit {
		require.GreaterOrEqual(t, hits[i+limit]-hits[i], window, "%d hits from %d on", limit+1, hits[i])
	}
}

// A service can move from one to the other while it runs: both use the same log.
func TestSlideSharesTheLogOfWindowByHand(t *testing.T) {
	t.Parallel()
	rdb := startServer(t).connect(t)
	byHand := windowByHand{rdb, func() int64 { return serverTime(t, rdb) }, neverTwice("by hand")}
	const minute = 60_000
	for _, minutesAgo := range []int64{61, 59, 30} {
		at := byHand.now() - minutesAgo*minute
		require.NoError(t, rdb.ZAdd(t.Context(), "api", redis.Z{Score: float64(at), Member: byHand.member(at)}).Err())
	}

	before := serverTime(t, rdb)
	d := decide(t, rdb, "RL.SLIDE api 3 1h")
	assert.Equal(t, int64(1), d.Allowed, "of the hits by hand one has left the window")
	assert.Equal(t, int64(0), d.Remaining)
	assert.Equal(t, int64(3), rdb.ZCard(t.Context(), "api").Val())

	d = decide(t, rdb, "RL.SLIDE api 3 1h")
	assert.Equal(t, int64(0), d.Allowed)
	assert.LessOrEqual(t, d.RetryAfter, int64(minute), "when the hit of 59 minutes ago leaves")

	assert.Equal(t, int64(1), rdb.ZCount(t.Context(), "api", strconv.FormatInt(before, 10), "+inf").Val(),
		"a limiter by hand counts the hit of RL.SLIDE")
}
