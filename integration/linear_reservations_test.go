package integration

import (
	"math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// makeLimiterCall makes a call of the model in package clustertest on a key.
func makeLimiterCall(t *testing.T, client *redis.Client, c clustertest.Call) (a clustertest.Answer) {
	t.Helper()
	slide := []any{"RL.SLIDE", "k", c.Limit, "10h"}
	words := map[clustertest.Kind][]any{
		clustertest.Hit:    slide,
		clustertest.Hold:   append(slide, "COST", c.Amount, "HOLD", "10h", "ID", c.Reservation),
		clustertest.Settle: {"RL.SETTLE", "k", c.Amount, "ID", c.Reservation},
		clustertest.Refund: {"RL.REFUND", "k", 1},
		clustertest.Read:   {"ZCARD", "k"},
	}[c.Kind]
	switch reply, err := client.Do(t.Context(), words...).Result(); reply := reply.(type) {
	case int64:
		return clustertest.Answer{N: reply}
	case []any:
		if key, is := reply[0].([]any); is {
			return clustertest.Answer{Allowed: key[0] == int64(1), Reserved: key[1].(int64), N: key[3].(int64)}
		}
		return clustertest.Answer{Allowed: reply[0] == int64(1), N: reply[2].(int64)}
	default:
		require.Equal(t, clustertest.Settle, c.Kind, "%v: %v", words, err)
		return clustertest.Answer{Refused: true}
	}
}

func TestConcurrentReservationsAreLinearizable(t *testing.T) {
	t.Parallel()
	requireLinear(t, clustertest.Limiter, func(client *redis.Client, r *rand.Rand) (call, answer any) {
		c := clustertest.Call{
			Kind: clustertest.Kind(r.IntN(int(clustertest.Lapse))), Limit: 9, Amount: 1 + r.Int64N(3),
			Reservation: r.IntN(clustertest.MaxReservations),
		}
		return c, makeLimiterCall(t, client, c)
	})
}
