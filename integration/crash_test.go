package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// crashRounds returns how often the server is killed: CRASH_ROUNDS, or 5 by default.
func crashRounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CRASH_ROUNDS")
	if text == "" {
		return 5
	}
	rounds, err := strconv.Atoi(text)
	require.NoError(t, err)
	return rounds
}

const (
	crashClients  = 32
	crashLimiters = 8
	crashLimit    = 10_000 // of each limiter, within an hour
)

// crashing is a server that is killed repeatedly under load, and the calls that it has
// acknowledged.
type crashing struct {
	dir   string
	flags []string
	// the highest count of each client's key that was acknowledged
	counted  [crashClients]atomic.Int64
	sent     [crashClients]atomic.Int64  // the highest count of each client's key that was sent
	admitted [crashLimiters]atomic.Int64 // acknowledged hits
	tokens   atomic.Int64                // acknowledged tokens of the bucket
}

func (c *crashing) start(t *testing.T) *server {
	t.Helper()
	return startServer(t, append([]string{"--dir", c.dir, "--auto-aof-rewrite-min-size", "256kb"}, c.flags...)...)
}

// load makes calls from all clients until the server is killed, after a number of acknowledged
// calls.
func (c *crashing) load(t *testing.T, s *server, calls int64, kill func()) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.addr, PoolSize: crashClients, MaxRetries: -1})
	defer client.Close()
	var done atomic.Int64
	var clients sync.WaitGroup
	for i := range crashClients {
		clients.Go(func() {
			for n := c.counted[i].Load() + 1; ; n++ {
				c.sent[i].Store(n)
				if client.Set(t.Context(), fmt.Sprint("count:", i), n, 0).Err() != nil {
					return
				}
				c.counted[i].Store(n)
				limiter := (i + int(n)) % crashLimiters
				decision, err := client.Do(t.Context(), "RL.SLIDE", fmt.Sprint("limiter:", limiter), crashLimit, "1h").
					Int64Slice()
				if err != nil {
					return
				}
				c.admitted[limiter].Add(decision[0])
				decision, err = client.Do(t.Context(), "RL.TOKEN", "bucket", crashLimit, 1, "10h").Int64Slice()
				if err != nil {
					return
				}
				c.tokens.Add(decision[0])
				if done.Add(1) == calls {
					kill()
				}
			}
		})
	}
	clients.Wait()
}

// With appendfsync always, a server that is killed at any time loses no acknowledged call, and no
// limit is exceeded across the restarts.
func TestKilledServerKeepsAcknowledgedCalls(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	c := &crashing{dir: t.TempDir(), flags: []string{"--appendfsync", "always"}}
	for round := range crashRounds(t) {
		s := c.start(t)
		c.requireRecovered(t, s, round)
		c.load(t, s, 1+r.Int64N(1500), func() { s.kill(t) })
	}
	c.requireRecovered(t, c.start(t), -1)
}

// requireRecovered checks that a server has recovered all acknowledged calls, and none that was not
// sent.
func (c *crashing) requireRecovered(t *testing.T, s *server, round int) {
	t.Helper()
	client := s.connect(t)
	for i := range crashClients {
		n, err := client.Get(t.Context(), fmt.Sprint("count:", i)).Int64()
		if err != redis.Nil {
			require.NoError(t, err)
		}
		require.GreaterOrEqual(t, n, c.counted[i].Load(), "round %d, client %d", round, i)
		require.LessOrEqual(t, n, c.sent[i].Load(), "round %d, client %d", round, i)
		c.counted[i].Store(n) // not acknowledged, but recovered
	}
	for i := range crashLimiters {
		hits, err := client.ZCard(t.Context(), fmt.Sprint("limiter:", i)).Result()
		require.NoError(t, err)
		require.GreaterOrEqual(t, hits, c.admitted[i].Load(), "round %d, limiter %d", round, i)
		require.LessOrEqual(t, hits, int64(crashLimit))
		require.LessOrEqual(t, c.admitted[i].Load(), int64(crashLimit))
	}
	bucket, err := client.Do(t.Context(), "RL.TOKEN", "bucket", crashLimit, 1, "10h", "COST", 0).Int64Slice()
	require.NoError(t, err)
	left := max(0, crashLimit-c.tokens.Load())
	require.LessOrEqual(t, bucket[2], left, "round %d: acknowledged tokens are in the bucket again", round)
}

// With appendfsync everysec, a killed server loses nothing that it had written to the log,
// according to INFO.
func TestKilledServerKeepsWrittenLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round := range 3 {
		s := startServer(t, "--dir", dir, "--appendfsync", "everysec")
		client := s.connect(t)
		n, err := client.Incr(t.Context(), "rounds").Result()
		require.NoError(t, err)
		require.EqualValues(t, round+1, n)
		await(t, func() bool {
			return strings.Contains(client.Info(t.Context(), "persistence").Val(), "aof_buffer_length:0\r\n")
		})
		s.kill(t)
	}
}

// kill ends a server with SIGKILL.
func (s *server) kill(t *testing.T) {
	t.Helper()
	s.killed = true
	require.NoError(t, s.cmd.Process.Kill())
	<-s.ended
}

// After an orderly stop and a restart all limiters and keys are as before.
func TestRestartKeepsState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, "--dir", dir)
	client := s.connect(t)
	ask := func(args ...any) []int64 {
		t.Helper()
		d, err := client.Do(t.Context(), args...).Int64Slice()
		require.NoError(t, err)
		return d
	}
	for range 7 {
		ask("RL.SLIDE", "slide", 10, "1h")
		ask("RL.TOKEN", "token", 10, 1, "1d")
		ask("RL.FIXED", "fixed", 10, "year")
		ask("RL.MULTI", "multi", 20, "1h", 30, "1d", "ID", "request")
	}
	require.NoError(t, client.Do(t.Context(), "SAVE").Err())
	ask("RL.SLIDE", "slide", 10, "1h")
	require.NoError(t, client.HSet(t.Context(), "hash", "field", "value").Err())
	// a nanosecond, rounded up to a millisecond
	require.NoError(t, client.Set(t.Context(), "gone", "soon", 1).Err())
	s.stop(t)

	s = startServer(t, "--dir", dir)
	client = s.connect(t)
	require.Equal(t, int64(2), ask("RL.SLIDE", "slide", 10, "1h", "COST", 0)[2])
	require.Equal(t, int64(3), ask("RL.TOKEN", "token", 10, 1, "1d", "COST", 0)[2])
	require.Equal(t, int64(3), ask("RL.FIXED", "fixed", 10, "year", "COST", 0)[2])
	require.Equal(t, int64(19), ask("RL.MULTI", "multi", 20, "1h", 30, "1d", "ID", "request")[2])
	require.Equal(t, "value", client.HGet(t.Context(), "hash", "field").Val())
	require.Zero(t, client.Exists(t.Context(), "gone").Val())
	admitted := int64(0)
	for range 5 {
		admitted += ask("RL.SLIDE", "slide", 10, "1h")[0]
	}
	require.Equal(t, int64(2), admitted)
}

// A second server does not start in a directory that another one uses, and names that process.
func TestSecondServerOnSameDirectoryFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, "--dir", dir)
	second := start(t, rlserver(t, "--port", freePort(t), "--dir", dir))
	require.Equal(t, 1, second.exitCode(t))
	require.Contains(t, second.output(), fmt.Sprintf("the data directory %s is in use by process %d", dir, s.pid))
}
