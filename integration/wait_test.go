package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// startWaiting connects and sends PING and a call that may wait. When the reply to PING is there,
// the call is in the queue or answered.
func startWaiting(t *testing.T, s *server, call string) (conn net.Conn, in *bufio.Reader) {
	t.Helper()
	conn, err := dial(s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, frame("PING")+frame(strings.Fields(call)...))
	require.NoError(t, err)
	in = bufio.NewReaderSize(conn, 256)
	r, err := readReply(in)
	require.NoError(t, err)
	require.Equal(t, "PONG", r.text)
	return conn, in
}

// waiting returns the number of waiting clients, from INFO.
func waiting(t *testing.T, rdb *redis.Client) int { return int(infoNumber(t, rdb, "blocked_clients")) }

// Forty clients call an exhausted limiter one after another, and wait. After DEL it admits ten a
// second. The log, which a second and longer window keeps, shows that they are admitted in order of
// arrival, and not too early.
func TestWaitingClientsAreServedInOrder(t *testing.T) {
	t.Parallel()
	const waiters, limit, window = 40, 10, 1000
	s := startServer(t)
	rdb := s.connect(t)
	require.NoError(t, rdb.Do(t.Context(), words("RL.SLIDE k 1000 1d COST 1000")...).Err())
	var replies sync.WaitGroup
	for i := range waiters {
		_, in := startWaiting(t, s, fmt.Sprintf("RL.MULTI k %d %dms 1000 1d ID c%03d WAIT 2d", limit, window, i))
		await(t, func() bool { return waiting(t, rdb) == i+1 })
		replies.Go(func() {
			r, err := readReply(in)
			if assert.NoError(t, err) {
				assert.Equal(t, "1", r.items[0].text, "client %d", i)
			}
		})
	}
	require.NoError(t, rdb.Del(t.Context(), "k").Err())
	replies.Wait()

	log, err := rdb.ZRangeWithScores(t.Context(), "k", 0, -1).Result()
	require.NoError(t, err)
	require.Len(t, log, waiters)
	for i, hit := range log {
		assert.Equal(t, fmt.Sprintf("c%03d", i), hit.Member, "in order of arrival")
		if i >= limit {
			assert.GreaterOrEqual(t, hit.Score-log[i-limit].Score, float64(window), "not too early")
		}
	}
}

// Logs the memory of waiting clients, and their CPU time while nothing changes. WAITING_CLIENTS
// sets their number.
func TestWaitingClientsCost(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	clients := 1000
	if text := os.Getenv("WAITING_CLIENTS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		clients = n
	}
	s := startServer(t)
	rdb := s.connect(t)
	cpu := func() float64 { return infoNumber(t, rdb, "used_cpu_user") + infoNumber(t, rdb, "used_cpu_sys") }
	idle, since := cpu(), time.Now()
	time.Sleep(500 * time.Millisecond)
	t.Logf("without clients: %.0f ms of CPU time in %v", (cpu()-idle)*1000,
		time.Since(since).Round(time.Millisecond))

	require.NoError(t, rdb.Do(t.Context(), words("RL.SLIDE k 1 1d")...).Err())
	before := infoNumber(t, rdb, "used_memory_rss")
	var conns []net.Conn
	var ins []*bufio.Reader
	for i := range clients { // half of them in one queue
		call := "RL.SLIDE k 1 1d WAIT 2d"
		if i >= clients/2 {
			call = fmt.Sprintf("BZPOPMIN queue:%d 0", i)
		}
		conn, in := startWaiting(t, s, call)
		conns, ins = append(conns, conn), append(ins, in)
	}
	t.Logf("%d waiting clients: %.1f KB each", clients,
		(infoNumber(t, rdb, "used_memory_rss")-before)/1024/float64(clients))
	busy, since := cpu(), time.Now()
	time.Sleep(500 * time.Millisecond)
	t.Logf("with them: %.0f ms of CPU time in %v", (cpu()-busy)*1000, time.Since(since).Round(time.Millisecond))

	assert.Equal(t, clients, waiting(t, rdb))
	for _, conn := range conns[:clients/4] {
		conn.Close()
	}
	await(t, func() bool { return waiting(t, rdb) == clients-clients/4 })
	require.NoError(t, rdb.Del(t.Context(), "k").Err())
	r, err := readReply(ins[clients/4])
	require.NoError(t, err)
	assert.Equal(t, "1", r.items[0].text, "the first in the queue")
	require.NoError(t, rdb.ZAdd(t.Context(), fmt.Sprint("queue:", clients-1), redis.Z{Score: 1, Member: "m"}).Err())
	r, err = readReply(ins[clients-1])
	require.NoError(t, err)
	assert.Equal(t, "m", r.items[1].text)
	s.terminate()
	assert.Equal(t, 0, s.exitCode(t), "waiting clients do not delay the stop")
}

// infoNumber returns a field of INFO, or 0 if it is missing: some systems do not report memory.
func infoNumber(t *testing.T, rdb *redis.Client, name string) float64 {
	t.Helper()
	text, err := rdb.Info(t.Context()).Result()
	require.NoError(t, err)
	_, after, found := strings.Cut(text, "\n"+name+":")
	if !found {
		return 0
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(strings.SplitN(after, "\r\n", 2)[0]), 64)
	require.NoError(t, err)
	return n
}
