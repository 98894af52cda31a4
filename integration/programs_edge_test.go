package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// attempts is how often a machine that is too slow to hit an edge may try again before the test
// fails.
const attempts = 20

// The counter that everybody writes first: INCR, and EXPIRE when it is new. Its window begins with
// a call, so a client that makes one and saves the others for the end of the window gets nearly
// twice the limit through in a very short time. RL.SLIDE, called beside it each time, admits no
// more than the limit.
func TestCounterByHandAdmitsTwiceTheLimitAtItsEdge(t *testing.T) {
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
		t.Log("this machine was too slow to catch the edge; once more")
	}
	t.Fatalf("in %d attempts the calls before and after an edge never came close enough to it", attempts)
}

// waitForTTL waits until a key has at most so much time left, or has expired.
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

// Three messages an hour, and a sender that sends at 1:59 and 2:01; here the hours take two
// seconds. RL.FIXED counts by the clock and lets six through, as its documentation says. RL.SLIDE
// lets three through.
func TestThreeMessagesBeforeTheHourAndThreeAfter(t *testing.T) {
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
		t.Log("this machine was too slow to catch the edge; once more")
	}
	t.Fatalf("in %d attempts the calls before and after an edge never came close enough to it", attempts)
}

// A burst is the replies to calls that were sent at once, and the server time before and after
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

// admitted returns how often the limiter that is the nth call of each round admitted it.
func (b burst) admitted(nth int) (times int) {
	for _, round := range b.replies {
		if d, err := decisionIn(round[nth]); err == nil && d.Allowed == 1 {
			times++
		}
	}
	return times
}

// counted returns how often the first call of each round, INCR, returned a number within the limit.
func (b burst) counted(limit int64) (times int) {
	for _, round := range b.replies {
		if round[0].Val().(int64) <= limit {
			times++
		}
	}
	return times
}
