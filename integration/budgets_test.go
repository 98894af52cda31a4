package integration

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
	"rlserver/integration/budgets"
)

// budgetCalls returns how many reservations are made: BUDGET_CALLS, or a few thousand by default.
func budgetCalls(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("BUDGET_CALLS")
	if text == "" {
		return 6000
	}
	calls, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return calls
}

// runBudgets runs the load while servers are killed again and again.
func runBudgets(t *testing.T, addresses []string, fast, slow time.Duration, kill func()) {
	t.Helper()
	done := make(chan *budgets.Report, 1)
	due := make(chan struct{})
	load := budgets.Load{
		Addresses: addresses, Calls: budgetCalls(t), Clients: 200, Fast: fast, Slow: slow, Due: due, Kills: 3,
	}
	if load.Calls > 100_000 {
		load.Kills = 20
	}
	go func() { done <- budgets.Run(t.Context(), load) }()
	for killed := 0; ; killed++ {
		select {
		case r := <-done:
			t.Logf("servers killed %d times\n%s", killed, r)
			assert.Empty(t, r.Findings())
			assert.LessOrEqual(t, r.Overshoot(), 1.0)
			return
		case <-due:
			kill()
		}
	}
}

// No budget is exceeded, and each reservation comes back, while a server is killed.
func TestBudgetsOfAServer(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	port, dir := freePort(t), t.TempDir()
	begin := func() *process {
		p := start(t, rlserver(t, "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--appendfsync", "always",
			"--auto-aof-rewrite-min-size", "1mb"))
		require.True(t, p.becomesReady(), "%s", p.output())
		return p
	}
	p := begin()
	runBudgets(t, []string{"127.0.0.1:" + port}, 2*time.Millisecond, 2*time.Millisecond, func() {
		require.NoError(t, p.cmd.Process.Kill())
		<-p.ended
		p = begin()
	})
	p.stop(t)
}

// The same in a cluster whose leaders are killed.
func TestBudgetsOfACluster(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	c := startCluster(t, 3, "--cluster-timeout", "2000") // leaders stay on a busy machine
	var addresses []string
	for _, port := range c.proxy {
		addresses = append(addresses, "127.0.0.1:"+port)
	}
	killed := 0
	runBudgets(t, addresses, 100*time.Millisecond, 2*time.Second, func() {
		c.kill(killed % 3)
		time.Sleep(rand.N(500 * time.Millisecond))
		c.start(killed % 3)
		c.settled()
		killed++
	})
}

// A gateway that counts after the answer goes far beyond the limit: the check reports it.
func TestBudgetsWithoutReservationsAreExceeded(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	s := startServer(t, "--appendonly", "no")
	r := budgets.Run(t.Context(), budgets.Load{Addresses: []string{s.addr}, Calls: 400, Clients: 200, Naive: true})
	t.Log("\n" + r.String())
	assert.Greater(t, r.Overshoot(), 1.0)
	assert.NotEmpty(t, r.Findings())
}
