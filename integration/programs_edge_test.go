package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// attempts is how often a test is repeated on a machine that is too slow to hit the edge of a
// window.
const attempts = 20

// The simplest client-side limiter: INCR, and EXPIRE if the counter is new. Its window begins with
// a call, so a client that makes one call then and the others at the end of the window gets nearly
// twice the limit admitted in a very short time. RL.SLIDE with the same calls admits no more than
// the limit.
func TestClientCounterAdmitsTwiceTheLimitAtEdge(t *testing.T) {
	t.Parallel()
	const limit, window = 10, 5000
	rdb := startServer(t).connect(t)
	for attempt := range attempts {
		calls := []string{fmt.Sprint("INCR counter", attempt), fmt.Sprintf("PEXPIRE counter%d %d NX", attempt, window),
			fmt.Sprintf("RL.SLIDE slide%d %d %dms", attempt, limit, window)}
		require.Equal(t, 1, sendAtOnce(t, rdb, 1, calls).counted(limit))
		waitForTTL(t, rdb, fmt.Sprint("counter", attempt), 500*time.Millisecond)
		before := sendAtOnce(t, rdb, limit-1, calls)
		waitForTTL(t, rdb, fmt.Sprint("counter", attempt), 0)
		after := sendAtOnce(t, rdb, limit, calls)

		if stretch := after.to - before.from; stretch < window &&
			before.counted(limit)+after.counted(limit) == 2*limit-1 {
			assert.LessOrEqual(t, before.admitted(2)+after.admitted(2), limit, "RL.SLIDE, within %d ms", stretch)
			return
		}
		t.Log("this machine was too slow to hit the edge; trying again")
	}
	t.Fatalf("in %d attempts the calls were never close enough to the edge", attempts)
}

// waitForTTL waits until a key's TTL is at most left, or the key has expired.
func waitForTTL(t *testing.T, rdb *redis.Client, key string, left time.Duration) {
	t.Helper()
	for {
		ttl, err := rdb.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		if ttl <= left {
			return
		}
		time.Sleep(ttl - left)
	}
}

// Three messages an hour, and a sender that sends at 1:59 and 2:01; here an hour is two seconds.
// RL.FIXED counts in windows of the clock and admits six, as its documentation says. RL.SLIDE
// admits three.
func TestFixedAdmitsTwiceTheLimitAtEdge(t *testing.T) {
	t.Parallel()
	const limit, hour, minute = 3, 2000, 2000 / 60
	rdb := startServer(t).connect(t)
	for attempt := range attempts {
		calls := []string{
			fmt.Sprintf("RL.FIXED fixed%d %d %dms", attempt, limit, hour),
			fmt.Sprintf("RL.SLIDE slide%d %d %dms", attempt, limit, hour),
		}
		two := serverTime(t, rdb)/hour*hour + hour
		sleepUntil(t, rdb, two-3*minute)
		before := sendAtOnce(t, rdb, limit, calls)
		sleepUntil(t, rdb, two+minute)
		after := sendAtOnce(t, rdb, limit, calls)

		require.Equal(t, limit, before.admitted(1))
		if stretch := after.to - before.from; before.to < two && stretch < hour {
			assert.Equal(t, 2*limit, before.admitted(0)+after.admitted(0), "RL.FIXED, within %d ms", stretch)
			assert.Equal(t, 0, after.admitted(1), "RL.SLIDE, within %d ms", stretch)
			return
		}
		t.Log("this machine was too slow to hit the edge; trying again")
	}
	t.Fatalf("in %d attempts the calls were never close enough to the edge", attempts)
}

// A burst holds the replies to calls that were sent at once, and the server time before and after
// them, in Unix ms.
type burst struct {
	replies  [][]*redis.Cmd // of each round, to each call
	from, to int64
}

// sendAtOnce sends rounds of calls in one pipeline.
func sendAtOnce(t *testing.T, rdb *redis.Client, rounds int, calls []string) burst {
	t.Helper()
	pipe := rdb.Pipeline()
	b := burst{replies: make([][]*redis.Cmd, rounds)}
	begin := pipe.Time(t.Context())
	for round := range b.replies {
		for _, call := range calls {
			b.replies[round] = append(b.replies[round], pipe.Do(t.Context(), words(call)...))
		}
	}
	end := pipe.Time(t.Context())
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	b.from, b.to = begin.Val().UnixMilli(), end.Val().UnixMilli()
	return b
}

// admitted returns in how many rounds the nth call, of a limiter, was admitted.
func (b burst) admitted(nth int) (times int) {
	for _, round := range b.replies {
		if d, err := decisionIn(round[nth]); err == nil && d.Allowed == 1 {
			times++
		}
	}
	return times
}

// counted returns in how many rounds the first call, INCR, returned a number within the limit.
func (b burst) counted(limit int64) (times int) {
	for _, round := range b.replies {
		if round[0].Val().(int64) <= limit {
			times++
		}
	}
	return times
}
