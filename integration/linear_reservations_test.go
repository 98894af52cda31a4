package integration

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
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
	const clients, calls, histories = 6, 25, 4
	seed := rand.Uint64()
	t.Log("seed", seed)
	s := startServer(t, "--appendonly", "no")
	flush := s.connect(t)
	for history := range histories {
		require.NoError(t, flush.FlushAll(t.Context()).Err())
		var mu sync.Mutex
		var operations []porcupine.Operation
		var running sync.WaitGroup
		start := time.Now()
		for i := range clients {
			client := s.connect(t)
			r := rand.New(rand.NewPCG(seed, uint64(history*clients+i)))
			running.Go(func() {
				for range calls {
					c := clustertest.Call{
						Kind: clustertest.Kind(r.IntN(int(clustertest.Lapse))), Limit: 9, Amount: 1 + r.Int64N(3),
						Reservation: r.IntN(clustertest.MaxReservations),
					}
					begin := time.Since(start).Nanoseconds()
					answer := makeLimiterCall(t, client, c)
					end := time.Since(start).Nanoseconds()
					mu.Lock()
					operations = append(operations,
						porcupine.Operation{ClientId: i, Input: c, Output: answer, Call: begin, Return: end})
					mu.Unlock()
				}
			})
		}
		running.Wait()
		if porcupine.CheckOperationsTimeout(clustertest.Limiter, operations, patience) != porcupine.Ok {
			for _, o := range operations {
				t.Logf("client %d, %d to %d: %s", o.ClientId, o.Call, o.Return,
					clustertest.Limiter.DescribeOperation(o.Input, o.Output))
			}
			t.Fatalf("no order of these calls gives these replies, seed %d", seed)
		}
	}
}
