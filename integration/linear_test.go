package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// The replies to concurrent clients must be possible in some sequential order. Windows are so long
// that nothing expires meanwhile, so the model of a limiter is a number, and that of leases a set.

const (
	linearLimit  = 6
	linearLeases = 2
)

// linearCall is one call.
type linearCall struct {
	command string // SLIDE, TOKEN, LEASE, RELEASE, REFUND or ALL
	key     string // a log or a bucket
	n       int64  // cost, or the units to refund
	id      string // of a lease
}

// linearAnswer is the reply to a call.
type linearAnswer struct {
	allowed   bool
	remaining int64
	given     int64 // returned by REFUND and RELEASE
}

// linearState is the state of the model: hits taken from each log and bucket, and leases.
type linearState struct {
	used   map[string]int64
	leases []string // in order
}

func (s linearState) copied() linearState {
	return linearState{maps.Clone(s.used), slices.Clone(s.leases)}
}

func (s linearState) fits(key string, cost int64) bool { return s.used[key]+cost <= linearLimit }

func (s linearState) mayLease(id string) bool {
	return slices.Contains(s.leases, id) || len(s.leases) < linearLeases
}

func (s *linearState) lease(id string) {
	if !slices.Contains(s.leases, id) {
		s.leases = append(s.leases, id)
		slices.Sort(s.leases)
	}
}

// step returns the state after a call, and its reply. out is the reply that was seen: it decides
// where the model does not know the time.
func (s linearState) step(c linearCall, out linearAnswer) (linearState, linearAnswer) {
	next := s.copied()
	switch c.command {
	case "SLIDE", "TOKEN":
		allowed := s.fits(c.key, c.n)
		if allowed {
			next.used[c.key] += c.n
		}
		return next, linearAnswer{allowed: allowed, remaining: linearLimit - next.used[c.key]}
	case "LEASE":
		allowed := s.mayLease(c.id)
		if allowed {
			next.lease(c.id)
		}
		return next, linearAnswer{allowed: allowed, remaining: linearLeases - int64(len(next.leases))}
	case "RELEASE":
		at := slices.Index(s.leases, c.id)
		if at < 0 {
			return s, linearAnswer{}
		}
		next.leases = slices.Delete(next.leases, at, at+1)
		return next, linearAnswer{given: 1}
	case "REFUND":
		given := min(c.n, s.used[c.key])
		// a part of a token has flowed back: one that is whole is missing less
		if c.key == "bucket" && out.given == given-1 && given == s.used[c.key] {
			given--
		}
		next.used[c.key] -= given
		return next, linearAnswer{given: given}
	default: // ALL
		if !s.fits("log", c.n) || !s.fits("bucket", c.n) || !s.mayLease(c.id) {
			return s, linearAnswer{}
		}
		next.used["log"] += c.n
		next.used["bucket"] += c.n
		next.lease(c.id)
		return next, linearAnswer{allowed: true}
	}
}

// call makes a call through a client.
func (c linearCall) call(t *testing.T, client *redis.Client) linearAnswer {
	t.Helper()
	var words []any
	switch c.command {
	case "SLIDE":
		words = []any{"RL.SLIDE", c.key, linearLimit, "10h", "COST", c.n}
	case "TOKEN":
		words = []any{"RL.TOKEN", c.key, linearLimit, 1, "1000h", "COST", c.n}
	case "LEASE":
		words = []any{"RL.LEASE", "leases", linearLeases, "10h", c.id}
	case "RELEASE":
		words = []any{"RL.RELEASE", "leases", c.id}
	case "REFUND":
		words = []any{"RL.REFUND", c.key, c.n}
	case "ALL":
		words = []any{"RL.ALL", "log", "SLIDE", linearLimit, "10h", "bucket", "TOKEN", linearLimit, 1, "1000h",
			"leases", "LEASE", linearLeases, "10h", c.id, "COST", c.n}
	}
	reply, err := client.Do(t.Context(), words...).Result()
	require.NoError(t, err, "%v", words)
	switch reply := reply.(type) {
	case int64:
		return linearAnswer{given: reply}
	default:
		d := reply.([]any)
		a := linearAnswer{allowed: d[0] == int64(1)}
		if c.command != "ALL" { // its reply describes one rule of several
			a.remaining = d[2].(int64)
		}
		return a
	}
}

var linearModel = porcupine.Model{
	Init: func() any { return linearState{used: map[string]int64{}} },
	Step: func(state, input, output any) (bool, any) {
		next, want := state.(linearState).step(input.(linearCall), output.(linearAnswer))
		return want == output.(linearAnswer), next
	},
	Equal: func(a, b any) bool {
		x, y := a.(linearState), b.(linearState)
		return maps.Equal(x.used, y.used) && slices.Equal(x.leases, y.leases)
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

func randomLinearCall(r *rand.Rand) linearCall {
	c := linearCall{n: 1 + r.Int64N(2), id: fmt.Sprint("id", r.IntN(4))}
	switch r.IntN(6) {
	case 0:
		c.command, c.key = "SLIDE", "log"
	case 1:
		c.command, c.key = "TOKEN", "bucket"
	case 2:
		c.command = "LEASE"
	case 3:
		c.command = "RELEASE"
	case 4:
		c.command, c.key = "REFUND", []string{"log", "bucket"}[r.IntN(2)]
	default:
		c.command = "ALL"
	}
	return c
}

func TestConcurrentCallsAreLinearizable(t *testing.T) {
	t.Parallel()
	requireLinear(t, linearModel, func(client *redis.Client, r *rand.Rand) (call, answer any) {
		c := randomLinearCall(r)
		return c, c.call(t, client)
	})
}

// requireLinear checks that the replies to random calls of concurrent clients are possible in some
// order of the calls.
func requireLinear(t *testing.T, m porcupine.Model, do func(*redis.Client, *rand.Rand) (call, answer any)) {
	t.Helper()
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
					begin := time.Since(start).Nanoseconds()
					call, answer := do(client, r)
					end := time.Since(start).Nanoseconds()
					mu.Lock()
					operations = append(operations,
						porcupine.Operation{ClientId: i, Input: call, Output: answer, Call: begin, Return: end})
					mu.Unlock()
				}
			})
		}
		running.Wait()
		if porcupine.CheckOperationsTimeout(m, operations, patience) != porcupine.Ok {
			for _, o := range operations {
				t.Logf("client %d, %d to %d: %s", o.ClientId, o.Call, o.Return, m.DescribeOperation(o.Input, o.Output))
			}
			t.Fatalf("no order of these calls gives these replies, seed %d", seed)
		}
	}
}
