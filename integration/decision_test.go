package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// A decision is the reply of a limiter: its five integers, with times in ms, and for RL.MULTI the
// index of the rule that they describe.
type decision struct {
	Allowed, Limit, Remaining, RetryAfter, ResetAfter, Rule int64
}

// ask makes a call of a limiter.
func ask(ctx context.Context, rdb *redis.Client, call ...any) (decision, error) {
	return decisionIn(rdb.Do(ctx, call...))
}

// decisionIn reads a limiter's reply.
func decisionIn(reply *redis.Cmd) (d decision, err error) {
	n, err := reply.Int64Slice()
	switch {
	case err != nil:
		return d, err
	case len(n) == 6:
		d.Rule = n[5]
	case len(n) != 5:
		return d, fmt.Errorf("%v is not a decision", n)
	}
	d.Allowed, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter = n[0], n[1], n[2], n[3], n[4]
	return d, nil
}

// decide makes a call of a limiter, given as words separated by spaces.
func decide(t *testing.T, rdb *redis.Client, call string) decision {
	t.Helper()
	d, err := ask(t.Context(), rdb, words(call)...)
	require.NoError(t, err, call)
	return d
}

// allows reports whether a limiter admits a call.
func allows(t *testing.T, rdb *redis.Client, call string) bool {
	t.Helper()
	return decide(t, rdb, call).Allowed == 1
}

// serverTime returns the time of the clock that all limits use, in Unix ms.
func serverTime(t *testing.T, rdb *redis.Client) int64 {
	t.Helper()
	now, err := rdb.Time(t.Context()).Result()
	require.NoError(t, err)
	return now.UnixMilli()
}

// sleepUntil waits until the server's clock has reached a time.
func sleepUntil(t *testing.T, rdb *redis.Client, moment int64) {
	t.Helper()
	for {
		left := moment - serverTime(t, rdb)
		if left <= 0 {
			return
		}
		time.Sleep(time.Duration(left) * time.Millisecond)
	}
}
