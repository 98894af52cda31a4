package integration

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mailCounters are client-side limits on mail to one person: a counter each for a minute, an hour
// and a day.
var mailCounters = []struct {
	key    string
	limit  int64
	window time.Duration
}{
	{"ann:minute", 1, time.Minute},
	{"ann:hour", 5, time.Hour},
	{"ann:day", 10, 24 * time.Hour},
}

// clientMayMail counts the mail in one window after another, and stops at the first that is
// exhausted.
func clientMayMail(t *testing.T, rdb *redis.Client) bool {
	t.Helper()
	for _, counter := range mailCounters {
		n, err := rdb.Incr(t.Context(), counter.key).Result()
		require.NoError(t, err)
		if n == 1 {
			require.NoError(t, rdb.Expire(t.Context(), counter.key, counter.window).Err())
		}
		if n > counter.limit {
			return false
		}
	}
	return true
}

// The flaw: a mail that the day's limit denies has been counted in the minute and the hour. A
// client that keeps trying exhausts the hour with mail that was never sent, and after midnight the
// hour's limit denies it.
func TestClientCountersCountDeniedMail(t *testing.T) {
	t.Parallel()
	rdb := startServer(t).connect(t)
	require.NoError(t, rdb.Set(t.Context(), "ann:day", 10, time.Hour).Err())
	for range 5 {
		require.False(t, clientMayMail(t, rdb), "ten mails were sent today")
		require.NoError(t, rdb.Del(t.Context(), "ann:minute").Err()) // a minute passes
	}

	require.NoError(t, rdb.Del(t.Context(), "ann:day").Err()) // the day ends
	assert.False(t, clientMayMail(t, rdb))
	assert.Equal(t, "6", rdb.Get(t.Context(), "ann:hour").Val(), "no mail was sent in this hour")
}

const mayMail = "RL.MULTI mail:ann 1 1m 5 1h 10 1d"

// The first mail is sent, the second is denied for a minute, and the denial is not counted.
func TestMultiDenialIsNotCounted(t *testing.T) {
	t.Parallel()
	rdb := startServer(t).connect(t)
	d := decide(t, rdb, mayMail)
	assert.Equal(t, decision{Allowed: 1, Limit: 1, ResetAfter: d.ResetAfter}, d)
	for range 20 {
		d = decide(t, rdb, mayMail)
		assert.Equal(t, decision{Limit: 1, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter}, d)
		assert.LessOrEqual(t, d.RetryAfter, time.Minute.Milliseconds())
	}
	assert.Equal(t, int64(1), rdb.ZCard(t.Context(), "mail:ann").Val())
}

// The reply names the window that denies, and how long: until its oldest mail leaves it.
func TestMultiReportsDenyingWindow(t *testing.T) {
	t.Parallel()
	rdb := startServer(t).connect(t)
	const day = 24 * time.Hour
	for _, c := range []struct {
		sent   string // ages of the mails
		rule   int64
		limit  int64
		oldest int           // the index in sent of the mail that must leave
		window time.Duration // the window that it must leave
	}{
		{"30s", 0, 1, 0, time.Minute},
		{"90m 50m 40m 30m 30s", 0, 1, 4, time.Minute},
		{"90m 50m 40m 30m 20m 10m", 1, 5, 1, time.Hour},
		{"50m 40m 30m 20m 30s", 1, 5, 0, time.Hour},
		{"23h 22h 21h 20h 19h 18h 17h 16h 15h 14h", 2, 10, 0, day},
		{"25h 23h 22h 21h 20h 19h 18h 17h 16h 15h 30s", 2, 10, 1, day},
		{"23h 22h 21h 20h 19h 50m 40m 30m 20m 10m", 2, 10, 0, day},
		// the day admits it in ten minutes, the hour in thirty
		{"1430m 22h 21h 20h 19h 30m 25m 20m 15m 10m", 1, 5, 5, time.Hour},
	} {
		require.NoError(t, rdb.FlushAll(t.Context()).Err())
		var sent []int64 // Unix ms
		now := serverTime(t, rdb)
		for _, word := range strings.Fields(c.sent) {
			ago, err := time.ParseDuration(word)
			require.NoError(t, err)
			sent = append(sent, now-ago.Milliseconds())
			require.NoError(
				t,
				rdb.ZAdd(t.Context(), "mail:ann", redis.Z{Score: float64(now - ago.Milliseconds()), Member: word}).
					Err(),
			)
		}

		b := sendAtOnce(t, rdb, 1, []string{mayMail})
		d, err := decisionIn(b.replies[0][0])
		require.NoError(t, err)
		until := sent[c.oldest] + c.window.Milliseconds()
		assert.Equal(t, decision{Limit: c.limit, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter, Rule: c.rule}, d,
			c.sent)
		assert.GreaterOrEqual(t, until, b.from+d.RetryAfter, c.sent)
		assert.LessOrEqual(t, until, b.to+d.RetryAfter, c.sent)
		counted := rdb.ZCount(t.Context(), "mail:ann", strconv.FormatInt(sent[c.oldest], 10), "+inf").Val()
		assert.Equal(t, int64(len(sent)-c.oldest), counted, "the denial is not counted")
	}
}
