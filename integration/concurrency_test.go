package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// callers is the number of callers that use one key at once.
const callers = 64

// All windows here are so long that no hit leaves them during the test, so the number of admitted
// calls is known.
func TestConcurrentCallsAdmitExactly(t *testing.T) {
	t.Parallel()
	const limit = 1000
	rdb := startServer(t).connect(t, func(o *redis.Options) { o.PoolSize = callers })
	farFromEdge(t, rdb, "year")
	for _, limiter := range []string{
		"RL.SLIDE %s 1000 1h",
		"RL.TOKEN %s 1000 1 3650d",
		"RL.MULTI %s 1000 1h",
		"RL.MULTI %s 5000 1h 1000 1d 2000 7d",
		"RL.FIXED %s 1000 year",
		"RL.FIXED %s 1000 year TZ Europe/Berlin",
	} {
		for _, cost := range []int64{1, 3, 7} {
			key := fmt.Sprint("key:", limiter, cost)
			call := words(limiter + " COST %d")
			call[1], call[len(call)-1] = key, cost
			t.Run(fmt.Sprintf("%s COST %d", fmt.Sprintf(limiter, "key"), cost), func(t *testing.T) {
				t.Parallel()
				decisions := press(t, rdb, limit/cost/callers+4, func(int64) []any { return call })

				var left []int64
				for _, d := range decisions {
					if d.Allowed == 1 {
						left = append(left, d.Remaining)
					} else {
						assert.Positive(t, d.RetryAfter)
					}
				}
				slices.Sort(left)
				var want []int64 // as in a sequence of calls: each admission leaves cost less
				for n := limit % cost; n <= limit-cost; n += cost {
					want = append(want, n)
				}
				assert.Equal(t, want, left, "remaining after each admission")

				call[len(call)-1] = 0
				last, err := ask(t.Context(), rdb, call...)
				require.NoError(t, err)
				assert.Equal(t, limit%cost, last.Remaining)
			})
		}
	}
}

// press makes each calls from each of the callers, all at once, and returns the decisions. call
// returns the words of the nth call.
func press(t *testing.T, rdb *redis.Client, each int64, call func(n int64) []any) []decision {
	t.Helper()
	decisions := make([]decision, callers*each)
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for caller := range int64(callers) {
		wg.Go(func() {
			<-begin
			for n := caller * each; n < (caller+1)*each; n++ {
				d, err := ask(context.Background(), rdb, call(n)...)
				if !assert.NoError(t, err) {
					return
				}
				decisions[n] = d
			}
		})
	}
	close(begin)
	wg.Wait()
	return decisions
}

// farFromEdge waits, if necessary, so that a calendar window of RL.FIXED does not end during a
// test.
func farFromEdge(t *testing.T, rdb *redis.Client, window string) {
	t.Helper()
	d := decide(t, rdb, "RL.FIXED edge 1 "+window)
	if d.ResetAfter < 2*patience.Milliseconds() {
		sleepUntil(t, rdb, serverTime(t, rdb)+d.ResetAfter)
	}
}

// A request that many clients send repeatedly, as after a timeout, counts once.
func TestIDCountsOnce(t *testing.T) {
	t.Parallel()
	rdb := startServer(t).connect(t, func(o *redis.Options) { o.PoolSize = callers })
	for _, limiter := range []string{"RL.SLIDE %s 10 1h", "RL.MULTI %s 10 1h 20 1d"} {
		once := words(fmt.Sprintf(limiter+" ID request", "once"))
		for _, d := range press(t, rdb, 16, func(int64) []any { return once }) {
			assert.Equal(t, int64(1), d.Allowed)
			assert.Equal(t, int64(9), d.Remaining)
		}
		assert.Equal(t, []string{"request"}, rdb.ZRange(t.Context(), "once", 0, -1).Val())

		// Of forty requests ten are admitted, and each gets the same reply each time it is sent.
		const requests = 40
		replies := make(map[int64]int64)
		for n, d := range press(t, rdb, requests, func(n int64) []any {
			return words(fmt.Sprintf(limiter+" ID request-%d", "many", n%requests))
		}) {
			id := int64(n) % requests
			if before, asked := replies[id]; asked {
				assert.Equal(t, before, d.Allowed, "request %d", id)
			}
			replies[id] = d.Allowed
		}
		admitted := slices.Collect(maps.Values(replies))
		slices.Sort(admitted)
		assert.Equal(t, int64(10), rdb.ZCard(t.Context(), "many").Val())
		assert.Equal(t, slices.Concat(slices.Repeat([]int64{0}, requests-10), slices.Repeat([]int64{1}, 10)), admitted)
		require.NoError(t, rdb.FlushAll(t.Context()).Err())
	}
}
