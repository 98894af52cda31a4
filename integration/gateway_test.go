package integration

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The gateway of docs/GUIDE.md with go-redis. The page shows the text from here to the tests.

// Budget is a limit of a gateway, and what it counts.
type Budget struct{ Key, Limit, Unit string }

// Gateway has the budgets of a key, its team and its organisation.
// All admit a call, or none counts it.
type Gateway struct {
	Redis   redis.UniversalClient
	TTL     time.Duration
	Budgets []Budget
}

func NewGateway(rdb redis.UniversalClient, org, team, key string, ttl time.Duration) *Gateway {
	tag := "{" + org + "}" // in a cluster, keys with the same tag are in one slot
	return &Gateway{rdb, ttl, []Budget{
		{tag + "requests:" + key, "SLIDE 60 1m", "requests"},
		{tag + "tokens:" + key, "TOKEN 40000 40000 1m", "tokens"},
		{tag + "tokens:" + team, "TOKEN 400000 400000 1m", "tokens"},
		{tag + "dollars", "FIXED 500000000 month", "micro-dollars"},
	}}
}

// Denied is the error for a call that a budget does not admit.
type Denied struct {
	Budget     string
	RetryAfter time.Duration
}

func (d Denied) Error() string {
	return fmt.Sprint(d.Budget, " is used up, come back in ", d.RetryAfter)
}

// Reserve reserves an estimate. Sent again, it renews the reservation, and counts once.
func (g *Gateway) Reserve(ctx context.Context, call string, estimate map[string]int64) error {
	words := []any{"RL.ALL"}
	costs := []any{"COST"}
	for _, b := range g.Budgets {
		words = append(words, b.Key)
		for _, word := range strings.Fields(b.Limit) {
			words = append(words, word)
		}
		costs = append(costs, estimate[b.Unit])
	}
	words = append(append(words, costs...), "HOLD", fmt.Sprint(g.TTL.Milliseconds(), "ms"), "ID", call)
	d, err := g.Redis.Do(ctx, words...).Int64Slice()
	if err == nil && d[0] == 0 {
		err = Denied{g.Budgets[d[5]].Key, time.Duration(d[3]) * time.Millisecond}
	}
	return err
}

// Settle counts what was used, and gives the rest back. Sent again, it counts once.
func (g *Gateway) Settle(ctx context.Context, call string, used map[string]int64) error {
	words := []any{"RL.SETTLE"}
	for _, b := range g.Budgets {
		words = append(words, b.Key, used[b.Unit])
	}
	return g.Redis.Do(ctx, append(words, "ID", call)...).Err()
}

// Ask asks a model, whose answer has at most so many tokens.
func (g *Gateway) Ask(ctx context.Context, call, prompt string, most int64, model Model) (string, error) {
	if err := g.Reserve(ctx, call, Price(prompt, most)); err != nil {
		return "", err
	}
	answer, size, err := model(prompt)
	if settled := g.Settle(context.WithoutCancel(ctx), call, Price(prompt, size)); err == nil {
		err = settled
	}
	return answer, err
}

// Model answers a prompt, and says how many tokens its answer has.
type Model func(prompt string) (answer string, size int64, err error)

// Price is what a prompt and an answer of so many tokens cost: 3 and 15 dollars for a million.
func Price(prompt string, size int64) map[string]int64 {
	read := int64(len(prompt)/4 + 1)
	return map[string]int64{"requests": 1, "tokens": read + size, "micro-dollars": 3*read + 15*size}
}

// The tests.

// left is what is left of each budget.
func (g *Gateway) left(t *testing.T) (list []int64) {
	t.Helper()
	for _, b := range g.Budgets {
		limit := strings.Fields(b.Limit)
		call := []any{"RL." + limit[0], b.Key}
		for _, number := range limit[1:] {
			call = append(call, number)
		}
		d, err := g.Redis.Do(t.Context(), append(call, "COST", 0)...).Int64Slice()
		require.NoError(t, err)
		list = append(list, d[2])
	}
	return list
}

func TestGatewayInGo(t *testing.T) {
	t.Parallel()
	rdb := startServer(t).connect(t)
	g := NewGateway(rdb, "acme", "red", "key-1", 2*time.Minute)
	answer, err := g.Ask(t.Context(), "call-1", strings.Repeat("x", 39), 4000, func(string) (string, int64, error) {
		return "yes", 100, nil
	})
	require.NoError(t, err)
	assert.Equal(t, "yes", answer)
	left := g.left(t)
	assert.Equal(t, []int64{59, 500_000_000 - 30 - 1500}, []int64{left[0], left[3]})
	assert.GreaterOrEqual(t, left[1], int64(40_000-110))
}

// Never more than the budget is promised, and all that was used is counted.
func TestGatewayOfManyClients(t *testing.T) {
	t.Parallel()
	g := NewGateway(startServer(t).connect(t), "many", "red", "key-1", time.Hour)
	var answers, denials, promised atomic.Int64
	var clients sync.WaitGroup
	for i := range 20 {
		clients.Go(func() {
			for n := range 10 {
				_, err := g.Ask(t.Context(), fmt.Sprint(i, "-", n), strings.Repeat("x", 399), 3900,
					func(string) (string, int64, error) {
						defer promised.Add(-4000)
						assert.LessOrEqual(t, promised.Add(4000), int64(40_000))
						time.Sleep(time.Millisecond)
						return "", 900, nil
					})
				if err == nil {
					answers.Add(1)
				} else if assert.ErrorAs(t, err, &Denied{}) {
					denials.Add(1)
				}
			}
		})
	}
	clients.Wait()
	assert.GreaterOrEqual(t, answers.Load(), int64(10))
	assert.Positive(t, denials.Load())
	assert.Equal(t, 500_000_000-answers.Load()*(300+13_500), g.left(t)[3])
}

// Whoever goes away leaves nothing behind, and settling twice counts once.
func TestGatewayWhoseClientGoesAway(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g := NewGateway(startServer(t).connect(t), "gone", "red", "key-1", 300*time.Millisecond)
	require.NoError(t, g.Reserve(ctx, "call-1", Price(strings.Repeat("x", 399), 39_900)))
	var denied Denied
	for g.left(t)[1] == 0 { // it is called again, as this machine may be slow
		if err := g.Reserve(ctx, "call-2", Price("x", 100)); err != nil {
			require.ErrorAs(t, err, &denied)
			assert.LessOrEqual(t, denied.RetryAfter, 300*time.Millisecond)
			time.Sleep(denied.RetryAfter)
		}
	}
	require.NoError(t, g.Reserve(ctx, "call-2", Price("x", 100)))
	for range 2 {
		require.NoError(t, g.Settle(ctx, "call-2", Price("x", 100)))
	}
	assert.Equal(t, int64(500_000_000-1503), g.left(t)[3])
}

func TestGatewayInPython(t *testing.T) {
	t.Parallel()
	python := "/usr/bin/python3"
	if dir := os.Getenv("CLIENTS_DIR"); dir != "" {
		python = dir + "/python/bin/python"
	}
	needsProgram(t, python, "-c", "import redis")
	_, port, err := net.SplitHostPort(startServer(t).addr)
	require.NoError(t, err)
	out, err := exec.Command(python, "clients/gateway.py", port).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "right\n", string(out))
}

// TestGuideShowsTheGateways compares the gateways in the guide with those that are tested here.
func TestGuideShowsTheGateways(t *testing.T) {
	t.Parallel()
	text := documentText(t, guide)
	_, inGo, _ := strings.Cut(documentText(t, "gateway_test.go"), "shows the text from here to the tests.\n")
	inGo, _, _ = strings.Cut(inGo, "\n// The tests.\n")
	assert.Contains(t, text, "```go\n"+strings.TrimSpace(inGo)+"\n```\n")
	_, inPython, _ := strings.Cut(documentText(t, "clients/gateway.py"), "\"\"\"\n")
	inPython, _, _ = strings.Cut(inPython, "\n\n# The test.\n")
	inPython = strings.Replace(inPython, "import sys\nimport threading\nimport time\n", "", 1)
	assert.Contains(t, text, "```python\n"+strings.TrimSpace(inPython)+"\n```\n")
}
