package integration

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A clientBucket is a client-side token bucket in a hash that the client reads, updates and writes
// back.
type clientBucket struct {
	rdb      *redis.Client
	capacity float64
	perMs    float64 // permits refilled per ms
}

// permits are the contents of the hash.
type permits struct {
	left float64
	at   int64 // Unix ms
}

// look reads the hash and adds the permits refilled since it was written.
func (b clientBucket) look(t *testing.T, key string, now int64) permits {
	t.Helper()
	fields, err := b.rdb.HMGet(t.Context(), key, "left", "at").Result()
	require.NoError(t, err)
	if fields[0] == nil {
		return permits{b.capacity, now}
	}
	left, err := strconv.ParseFloat(fields[0].(string), 64)
	require.NoError(t, err)
	at, err := strconv.ParseInt(fields[1].(string), 10, 64)
	require.NoError(t, err)
	return permits{min(b.capacity, left+float64(now-at)*b.perMs), now}
}

// take takes permits of those that look returned, and writes back the rest. For a denial it returns
// the wait in ms.
func (b clientBucket) take(t *testing.T, key string, seen permits, weight float64) (ok bool, wait int64) {
	t.Helper()
	ok = seen.left >= weight
	if ok {
		seen.left -= weight
	} else {
		wait = int64((weight - seen.left) / b.perMs)
	}
	require.NoError(t, b.rdb.HSet(t.Context(), key, "left", seen.left, "at", seen.at).Err())
	require.NoError(t, b.rdb.Expire(t.Context(), key, time.Hour).Err())
	return ok, wait
}

// The flaw: two clients read the same permits and both take them; the last write wins.
func TestClientBucketGrantsPermitsTwice(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first := clientBucket{s.connect(t), 10, 0.01}
	second := clientBucket{s.connect(t), 10, 0.01}

	seenByFirst, seenBySecond := first.look(t, "api", someTime), second.look(t, "api", someTime)
	ok, _ := first.take(t, "api", seenByFirst, 7)
	require.True(t, ok)
	ok, _ = second.take(t, "api", seenBySecond, 7)
	require.True(t, ok)

	assert.Equal(t, 3.0, first.look(t, "api", someTime).left, "14 of 10 permits are taken, and 3 are left")
}

// The flaw: 0.1 has no exact binary representation. Ten times a tenth of a permit is a little less
// than one, so a client that calls often waits longer than one that calls once, and gets a wait of
// 0 ms.
func TestClientBucketLosesFractions(t *testing.T) {
	t.Parallel()
	b := clientBucket{startServer(t).connect(t), 1, 0.01}
	for _, key := range []string{"patient", "curious"} {
		ok, _ := b.take(t, key, b.look(t, key, someTime), 1)
		require.True(t, ok)
	}

	ok, _ := b.take(t, "patient", b.look(t, "patient", someTime+100), 1)
	assert.True(t, ok, "a permit is refilled in 100 ms")
	for ms := range int64(9) {
		ok, _ = b.take(t, "curious", b.look(t, "curious", someTime+10*(ms+1)), 1)
		require.False(t, ok)
	}
	ok, wait := b.take(t, "curious", b.look(t, "curious", someTime+100), 1)
	assert.False(t, ok)
	assert.Equal(t, int64(0), wait)
}

// Two clients have both read ten permits: one gets seven, the other a denial with the time to wait.
func TestTokenGrantsPermitsOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first, second := s.connect(t), s.connect(t)
	require.Equal(t, int64(10), decide(t, first, "RL.TOKEN api 10 10 3650d COST 0").Remaining)
	require.Equal(t, int64(10), decide(t, second, "RL.TOKEN api 10 10 3650d COST 0").Remaining)

	require.True(t, allows(t, first, "RL.TOKEN api 10 10 3650d COST 7"))
	d := decide(t, second, "RL.TOKEN api 10 10 3650d COST 7")
	assert.Equal(t, int64(0), d.Allowed)
	assert.Equal(t, int64(3), d.Remaining)
	year := (365 * 24 * time.Hour).Milliseconds()
	assert.InDelta(t, 4*year, d.RetryAfter, float64(patience.Milliseconds()), "four more permits, one a year")

	assert.Equal(t, int64(-1), decide(t, first, "RL.TOKEN api 10 10 3650d COST 11").RetryAfter,
		"more than the bucket ever holds")
	assert.True(t, allows(t, first, "RL.TOKEN api 10 10 3650d COST 3"), "the denials took nothing")
}

// A call is admitted at the time that the first denial returned, however many calls are denied
// before.
func TestRetryAfterIsKept(t *testing.T) {
	t.Parallel()
	rdb := startServer(t).connect(t)
	for i, call := range []string{
		"RL.TOKEN %s 1 10 1s",
		"RL.TOKEN %s 10 20 1s COST 7",
		"RL.TOKEN %s 1 3 1s",
		"RL.SLIDE %s 2 300ms",
		"RL.SLIDE %s 5 300ms COST 3",
		"RL.MULTI %s 1 200ms 2 500ms",
		"RL.FIXED %s 2 300ms",
	} {
		t.Run(fmt.Sprintf(call, "key"), func(t *testing.T) {
			t.Parallel()
			for range 3 {
				callUntilAdmitted(t, rdb, fmt.Sprintf(call, fmt.Sprint("key", i)))
			}
		})
	}
}

// callUntilAdmitted calls until the call is denied and then until it is admitted again. It checks
// that all denials return the same time, and that the call is denied before that time and admitted
// from then on. No other client may use the key.
func callUntilAdmitted(t *testing.T, rdb *redis.Client, call string) {
	t.Helper()
	denied := false
	// bounds of that time, in Unix ms, by what the client knows
	earliest, latest := int64(0), int64(math.MaxInt64)
	for {
		b := sendAtOnce(t, rdb, 1, []string{call})
		d, err := decisionIn(b.replies[0][0])
		require.NoError(t, err)
		if d.Allowed == 1 {
			require.GreaterOrEqual(t, b.to, earliest, "admitted too early")
			if denied {
				return
			}
			continue
		}
		denied = true
		require.Less(t, b.from, latest, "denied too late")
		require.Positive(t, d.RetryAfter)
		earliest = max(earliest, b.from+d.RetryAfter)
		latest = min(latest, b.to+d.RetryAfter)
		require.LessOrEqual(t, earliest, latest, "one denial contradicts another")
		time.Sleep(time.Duration(d.RetryAfter) * time.Millisecond / 5)
	}
}
