package resp

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/clientmem"
	"rlserver/resp/config"
)

// flood writes the same commands repeatedly, reads nothing, and returns when the server has closed
// the connection.
func (c *testClient) flood(commands string) {
	c.t.Helper()
	c.SetDeadline(time.Now().Add(5 * time.Minute))
	for block := bytes.Repeat([]byte(commands), 64<<10/len(commands)+1); ; {
		if _, err := c.Write(block); err != nil {
			require.False(c.t, err.(net.Error).Timeout(), "the connection is still open")
			return
		}
	}
}

// clientField returns a field of a client's line in CLIENT LIST, or -1 if there is no such client.
func (c *testClient) clientField(name, field string) int {
	c.t.Helper()
	for line := range strings.Lines(c.do("CLIENT LIST")) {
		if strings.Contains(line, " name="+name+" ") {
			n, err := strconv.Atoi(regexp.MustCompile(`(?:^| )` + field + `=(\d+) `).FindStringSubmatch(line)[1])
			require.NoError(c.t, err)
			return n
		}
	}
	return -1
}

// named opens a connection and sets its name.
func (ts *testServer) named(name string) *testClient {
	c := ts.dial()
	require.Equal(ts.t, "+OK", c.do("CLIENT SETNAME "+name))
	return c
}

// nothingHeld waits until the counters show that no client holds memory: they return to exactly 0.
func (c *testClient) nothingHeld(ts *testServer) {
	c.t.Helper()
	m := &ts.memory
	c.eventually("nothing held", func() bool {
		return m.Bytes.Load() == 0 &&
			m.Unauthenticated.Bytes.Load() == 0 && m.Normal.Bytes.Load() == 0 && m.Exempt.Bytes.Load() == 0
	})
}

func TestUnreadRepliesBeforeAuth(t *testing.T) {
	ts := startServer(t, config.Defaults{"requirepass": "secret"})
	stranger := ts.dial()
	stranger.flood(frame("SET", "key", "value"))
	c := ts.dial()
	require.Equal(t, "+OK", c.do("AUTH secret"))
	assert.Equal(t, 1, c.number("preauth_timeouts"), "it is closed before its replies are too many")
	assert.LessOrEqual(t, c.number("client_recent_max_output_buffer"), 2*config.PreauthOutputLimit)
	c.nothingHeld(ts)
}

// A client may leave replies unread up to the limit before AUTH, and more after it.
func TestUnreadRepliesAfterAuth(t *testing.T) {
	ts := startServer(t, config.Defaults{"requirepass": "secret"})
	c := ts.dial()
	require.Equal(t, "+OK", c.do("AUTH secret"))
	require.Equal(t, ":10000001", c.do("SETRANGE k 10000000 x"))
	_, err := c.Write([]byte("GET k\r\nGET k\r\n")) // more than sockets hold
	require.NoError(t, err)
	other := ts.dial()
	require.Equal(t, "+OK", other.do("AUTH secret"))
	other.eventually("unread", func() bool { return ts.memory.Bytes.Load() > 10_000_000 })
	for range 2 {
		require.Len(t, c.read(), len("$10000001 ")+10_000_001+1)
	}
	other.nothingHeld(ts)
}

func TestHardOutputLimit(t *testing.T) {
	for name, call := range map[string]string{
		"alone":                      "GET large\r\nSET after 1\r\n",
		"in a transaction":           "MULTI\r\nSET before 1\r\nGET large\r\nSET after 1\r\nEXEC\r\n",
		"many small elements":        "SET after 1\r\nZRANGE z 0 -1 WITHSCORES\r\n",
		"an array of unknown length": "SET after 1\r\nKEYS *\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			ts := startServer(t, config.Defaults{"client-output-buffer-limit": "normal 200kb 0 0"})
			c, greedy := ts.dial(), ts.named("greedy")
			for i := range 300 {
				require.Equal(t, "+OK", c.send("SET", fmt.Sprint("key:", i, strings.Repeat("k", 1000)), ""))
			}
			words := []string{"ZADD", "z"}
			for i := range 20_000 {
				words = append(words, strconv.Itoa(i), fmt.Sprint("member:", i))
			}
			require.Equal(t, ":20000", c.send(words...))
			require.Equal(t, ":300001", c.do("SETRANGE large 300000 x"))
			_, err := greedy.Write([]byte(call))
			require.NoError(t, err)
			rest, _ := io.ReadAll(greedy.r)
			assert.Less(t, len(rest), 1000, "no part of a large reply is sent")
			c.eventually("closed", func() bool { return c.clientField("greedy", "id") < 0 })
			if name != "alone" { // there the connection may end before the second call
				assert.Equal(t, "$1 1", c.do("GET after"), "a call whose reply is too large still runs")
			}
			assert.Equal(t, 1, c.number("client_output_buffer_limit_disconnections"))
			assert.Equal(t, 0, c.number("evicted_clients"))
			assert.Equal(t, "$1 x", c.do("GETRANGE large 300000 -1"))
			c.nothingHeld(ts)
		})
	}
}

func TestSoftOutputLimit(t *testing.T) {
	ts := startServer(t, config.Defaults{"client-output-buffer-limit": "normal 0 1mb 1000"})
	c, waiting, slow := ts.dial(), ts.named("waiting"), ts.named("slow")
	require.Equal(t, ":500001", c.do("SETRANGE k 500000 x"))
	go waiting.flood("GET k\r\n")
	c.eventually("its commands wait", func() bool { return c.clientField("waiting", "omem") > 1<<20 })
	assert.Less(t, c.clientField("waiting", "omem"), 3<<20)
	assert.Positive(t, c.clientField("waiting", "oll"))
	require.Equal(t, "+OK", c.send("CONFIG", "SET", "client-output-buffer-limit", "normal 0 1mb 1"))
	slow.flood("GET k\r\n")
	c.eventually("closed", func() bool { return c.clientField("slow", "id") < 0 })
	assert.Equal(t, 1, c.number("client_output_buffer_limit_disconnections"))
	waiting.Close()
	c.eventually("left", func() bool { return ts.clients() == 1 })
	c.nothingHeld(ts)
}

// A client that reads slowly gets all its replies, of any size: its commands wait until it reads.
func TestSlowReaderGetsAllReplies(t *testing.T) {
	ts := startServer(t, config.Defaults{"client-output-buffer-limit": "normal 2mb 1mb 60"})
	c := ts.named("slow")
	const calls, size = 100, 300_001 // 30 MB
	require.Equal(t, fmt.Sprint(":", size), c.do("SETRANGE k 300000 x"))
	_, err := c.Write(bytes.Repeat([]byte("GET k\r\n"), calls))
	require.NoError(t, err)
	other := ts.dial()
	for i := range calls {
		require.Len(t, c.read(), len("$300001 ")+size+1)
		if i%10 == 0 {
			require.LessOrEqual(t, other.clientField("slow", "omem"), 2<<20)
		}
	}
	require.Equal(t, "+PONG", c.do("PING"))
	other.nothingHeld(ts)
}

// Unread replies stay counted, and the client listed, until they are sent.
func TestUnreadRepliesAreCountedAfterQuit(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, leaving := ts.dial(), ts.named("leaving")
	require.Equal(t, ":10000001", c.do("SETRANGE k 10000000 x"))
	_, err := leaving.Write([]byte("GET k\r\nGET k\r\nQUIT\r\n"))
	require.NoError(t, err)
	c.eventually("unread", func() bool { return c.clientField("leaving", "omem") > 0 })
	all, err := io.ReadAll(leaving.r)
	require.NoError(t, err)
	require.Len(t, all, 2*(len("$10000001\r\n\r\n")+10_000_001)+len("+OK\r\n"))
	c.nothingHeld(ts)
}

// Incomplete commands, transactions and calls with many words share one limit. The largest client
// is evicted, and no key.
func TestClientEviction(t *testing.T) {
	half := func(size int) string {
		return fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s", size+1, strings.Repeat("x", size))
	}
	for name, c := range map[string]struct {
		field string
		least int
		sent  string
	}{
		"half a command": {"qbuf", 300_000, half(600_000)},
		"a transaction":  {"multi-mem", 300_000, "MULTI\r\n" + strings.Repeat(frame("SET", "key", "value"), 3000)},
		"watched keys":   {"tot-mem", 300_000, watches(1500)},
		// its commands wait by then: one more reply would be above the new hard limit
		"unread replies": {"omem", 5 << 20, strings.Repeat("GET large\r\n", 8)},
	} {
		t.Run(name, func(t *testing.T) {
			ts := startServer(t, config.Defaults{"maxmemory": "67108864", "maxmemory-clients": "20971520"})
			control := ts.dial()
			require.Equal(t, ":2000001", control.do("SETRANGE large 2000000 x"))
			for i := range 100 {
				require.Equal(t, "+OK", control.do(fmt.Sprint("SET key:", i, " v EX 1000")))
			}
			small, large := ts.named("small"), ts.named("large")
			_, err := small.Write([]byte(half(100_000)))
			require.NoError(t, err)
			control.eventually("small", func() bool { return control.clientField("small", "qbuf") > 90_000 })
			go large.Write([]byte(c.sent))
			control.eventually("held", func() bool {
				return control.clientField("large", c.field) > c.least &&
					control.clientField("large", "tot-mem") > c.least+clientmem.ConnectionSize
			})
			control.check([]answer{{"CONFIG SET maxmemory-clients 350kb", "+OK"}})
			control.eventually("closed", func() bool { return control.clientField("large", "id") < 0 })
			assert.Equal(t, 1, control.number("evicted_clients"))
			assert.Equal(t, 0, control.number("evicted_keys"))
			assert.Equal(t, ":101", control.do("DBSIZE"))
			assert.Positive(t, control.clientField("small", "id"))
			assert.LessOrEqual(t, ts.memory.Bytes.Load(), int64(350<<10))
			small.Close()
			control.nothingHeld(ts)
		})
	}
}

func watches(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(frame("WATCH", fmt.Sprint("key:", i)))
	}
	return b.String()
}

// A client that exceeds the limit by itself is closed at once.
func TestClientAboveTheLimitIsClosed(t *testing.T) {
	for name, commands := range map[string]string{
		"a bulk string": "*1\r\n$100000000\r\n" + strings.Repeat("x", 2<<20),
		"a transaction": "MULTI\r\n" + strings.Repeat(frame("SET", "key", "value"), 10_000),
		"empty words":   "*1000000\r\n" + strings.Repeat("$0\r\n\r\n", 1_000_000),
		"a large reply": "GET large\r\n",
		"WATCH":         watches(10_000),
	} {
		t.Run(name, func(t *testing.T) {
			ts := startServer(t, config.Defaults{"maxmemory-clients": "1048576"})
			c, greedy := ts.dial(), ts.named("greedy")
			c.send("SET", "large", strings.Repeat("x", 900_000))
			require.Equal(t, ":2000001", c.do("SETRANGE large 2000000 x"))
			go greedy.Write([]byte(commands))
			c.eventually("closed", func() bool { return ts.clients() == 1 })
			assert.Equal(t, 1, c.number("evicted_clients")+c.number("client_output_buffer_limit_disconnections"))
			c.nothingHeld(ts)
		})
	}
}

func TestNoEvict(t *testing.T) {
	ts := startServer(t, config.Defaults{"maxmemory-clients": "102400"})
	c, exempt, other := ts.dial(), ts.named("exempt"), ts.named("other")
	require.Equal(t, "+OK", exempt.do("CLIENT NO-EVICT ON"))
	half := "*1\r\n$1000000\r\n" + strings.Repeat("x", 500_000)
	_, err := exempt.Write([]byte(half))
	require.NoError(t, err)
	c.eventually("held", func() bool { return c.clientField("exempt", "tot-mem") > 500_000 })
	_, err = other.Write([]byte(half[:20_000]))
	require.NoError(t, err)
	c.eventually("held", func() bool { return c.clientField("other", "qbuf") > 15_000 })
	assert.Equal(t, 0, c.number("evicted_clients"), "memory of an exempt client does not count for the others")
	_, err = exempt.Write([]byte(half[:500_000+14-500_000] + strings.Repeat("x", 500_000-14) + "\r\n"))
	require.NoError(t, err)
	require.Contains(t, exempt.read(), "-ERR unknown command")
	require.Equal(t, "+OK", exempt.do("CLIENT NO-EVICT OFF"))
	_, err = exempt.Write([]byte(half))
	require.NoError(t, err)
	c.eventually("closed", func() bool { return c.clientField("exempt", "id") < 0 })
	assert.Positive(t, c.clientField("other", "id"))
}

// Only client-output-buffer-limit limits the unread replies of an exempt client.
func TestNoEvictLeavesRepliesUnread(t *testing.T) {
	ts := startServer(t, config.Defaults{"maxmemory-clients": "1"})
	c, exempt := ts.dial(), ts.named("exempt")
	require.Equal(t, "+OK", exempt.do("CLIENT NO-EVICT ON"))
	require.Equal(t, ":1000001", exempt.do("SETRANGE k 1000000 x"))
	// fewer than make its commands wait
	_, err := exempt.Write(bytes.Repeat([]byte("GET k\r\n"), 15))
	require.NoError(t, err)
	c.eventually("unread", func() bool { return ts.memory.Exempt.Bytes.Load() > 4<<20 })
	_, err = exempt.Write([]byte("CLIENT NO-EVICT OFF\r\n"))
	require.NoError(t, err)
	c.eventually("closed", func() bool { return ts.clients() == 1 })
	c.nothingHeld(ts)
}

// Clients that have not authenticated have a limit of their own, which does not affect the others.
func TestPreauthMemory(t *testing.T) {
	ts := startServer(t, config.Defaults{"requirepass": "secret", "preauth-memory": "65536"})
	c, friend := ts.dial(), ts.dial()
	require.Equal(t, "+OK", c.do("AUTH secret"))
	require.Equal(t, "+OK", friend.do("AUTH secret"))
	require.Equal(t, "+OK", friend.do("CLIENT SETNAME friend"))
	_, err := friend.Write([]byte("*2\r\n$4\r\nECHO\r\n$1000000\r\n" + strings.Repeat("x", 500_000)))
	require.NoError(t, err)
	half := []byte("*9\r\n" + strings.Repeat("$16384\r\n"+strings.Repeat("x", 16384)+"\r\n", 8))
	for range 20 {
		stranger := ts.dial()
		go stranger.Write(half)
	}
	c.eventually("evicted", func() bool { return c.number("evicted_clients") == 20 })
	assert.LessOrEqual(t, c.number("mem_clients_preauth"), 64<<10)
	c.eventually("held", func() bool { return c.clientField("friend", "qbuf") > 400_000 })
}

func TestWaitingCallsAreCounted(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, waiting := ts.dial(), ts.named("waiting")
	_, err := waiting.Write([]byte(frame("BZPOPMIN", strings.Repeat("k", 100_000), "0")))
	require.NoError(t, err)
	c.eventually("held", func() bool { return c.clientField("waiting", "tot-mem") > 200_000 })
	_, err = waiting.Write([]byte(strings.Repeat("x", 60_000)))
	require.NoError(t, err)
	c.eventually("kept", func() bool { return c.clientField("waiting", "qbuf") == 60_000 })
	assert.Equal(t, 1, c.number("blocked_clients"))
	assert.Equal(t, 0, c.number("clients_in_timeout_table"), "the call has no timeout")
	timed := ts.dial()
	_, err = timed.Write([]byte(frame("BZPOPMIN", "nothing", "1000")))
	require.NoError(t, err)
	c.eventually("waits", func() bool { return c.number("clients_in_timeout_table") == 1 })
	timed.Close()
	waiting.Close()
	c.nothingHeld(ts)
	c.eventually("no call waits", func() bool { return c.number("clients_in_timeout_table") == 0 })
}

// CLIENT REPLY OFF drops replies of any size.
func TestLargeRepliesWithReplyOff(t *testing.T) {
	ts := startServer(t, config.Defaults{"client-output-buffer-limit": "normal 200kb 0 0"})
	c := ts.dial()
	require.Equal(t, ":300001", c.do("SETRANGE k 300000 x"))
	_, err := c.Write([]byte("CLIENT REPLY OFF\r\nGET k\r\nGET k\r\nCLIENT REPLY SKIP\r\nGET k\r\nCLIENT REPLY ON\r\n"))
	require.NoError(t, err)
	require.Equal(t, "+OK ", c.read())
	_, err = c.Write([]byte("CLIENT REPLY SKIP\r\nGET k\r\nPING\r\n"))
	require.NoError(t, err)
	require.Equal(t, "+PONG ", c.read())
	c.nothingHeld(ts)
}

// used_memory and the memory left to the keys are right as soon as a client has ended, no matter
// when the overhead was measured.
func TestMemoryAfterALargeClient(t *testing.T) {
	ts := startServer(t, config.Defaults{"maxmemory": "104857600", "maxmemory-policy": "noeviction"})
	c, large := ts.dial(), ts.named("large")
	ts.MemoryTaken(4 << 20)
	before := c.number("used_memory")
	_, err := large.Write([]byte("*1\r\n$50000000\r\n" + strings.Repeat("x", 16<<20)))
	require.NoError(t, err)
	c.eventually("held", func() bool { return c.clientField("large", "qbuf") >= 16<<20 })
	ts.MemoryTaken(120 << 20) // including garbage and copies
	assert.Greater(t, c.number("used_memory"), 16<<20)
	assert.Equal(t, "+OK", c.do("SET k v"))
	large.Close()
	c.nothingHeld(ts)
	ts.MemoryTaken(120 << 20) // the memory was in use since the last measurement
	assert.InDelta(t, before, c.number("used_memory"), 2*clientmem.ConnectionSize)
	assert.Equal(t, "+OK", c.do("SET k v"))
	// overhead that is not from the keys still leaves them most of maxmemory
	ts.MemoryTaken(120 << 20)
	assert.Equal(t, "+OK", c.do("SET k v"))
}

// The counters return to 0, whatever many concurrent clients do.
func TestCountersReturnToZero(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	ts := startServer(t, config.Defaults{
		"maxmemory-clients": "2mb", "client-output-buffer-limit": "normal 1mb 300kb 1",
	})
	control := ts.dial()
	require.Equal(t, "+OK", control.do("CLIENT NO-EVICT ON"))
	require.Equal(t, ":100001", control.do("SETRANGE k 100000 x"))
	done := make(chan struct{})
	const clients = 24
	for i := range clients {
		c, r := ts.dial(), rand.New(rand.NewPCG(seed, uint64(i)))
		go func() {
			defer func() { c.Close(); done <- struct{}{} }()
			for range 60 {
				var text string
				switch r.IntN(6) {
				case 0:
					text = "MULTI\r\n" + strings.Repeat("SET key value\r\n", r.IntN(5000)) + "DISCARD\r\n"
				case 1:
					text = strings.Repeat("GET k\r\n", r.IntN(100))
				case 2:
					text = frame("SET", "large", strings.Repeat("x", r.IntN(300_000)))
				case 3:
					text = watches(r.IntN(500)) + "UNWATCH\r\n"
				case 4:
					text = "CLIENT NO-EVICT ON\r\nCLIENT NO-EVICT OFF\r\nBZPOPMIN nothing 0.001\r\n"
				case 5:
					c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
					io.CopyN(io.Discard, c.r, int64(r.IntN(1<<20)))
				}
				c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
				if _, err := c.Write([]byte(text)); err != nil {
					return
				}
			}
		}()
	}
	for range clients {
		<-done
	}
	control.eventually("all gone", func() bool { return ts.clients() == 1 })
	control.nothingHeld(ts)
	assert.Equal(t, "+PONG", control.do("PING"))
}

func TestClientMemoryParameters(t *testing.T) {
	const (
		output  = "-ERR CONFIG SET failed (possibly related to argument 'client-output-buffer-limit') - "
		clients = "-ERR CONFIG SET failed (possibly related to argument 'maxmemory-clients') - "
		words   = output + "Wrong number of arguments in buffer limit configuration."
		class   = output + "Invalid client class specified in buffer limit configuration."
		number  = output + "Error in hard, soft or soft_seconds setting in buffer limit configuration."
		share   = clients + "argument must be a memory or percent value"
	)
	c := startServer(t, config.Defaults{"maxmemory": "1000", "maxmemory-clients": "20%"}).dial()
	// the replies are those of Redis 7.0.15
	for _, step := range []struct{ name, value, reply, now string }{
		{"client-output-buffer-limit", "normal 0 0", words, "normal 67108864 16777216 60 slave 268435456 67108864 " +
			"60 pubsub 33554432 8388608 60"},
		{"client-output-buffer-limit", "", "+OK", "normal 67108864 16777216 60 slave 268435456 67108864 60 pubsub " +
			"33554432 8388608 60"},
		{"client-output-buffer-limit", "normal 0 0 0", "+OK", "normal 0 0 0 slave 268435456 67108864 60 pubsub " +
			"33554432 8388608 60"},
		{"client-output-buffer-limit", "foo 1 2 3", class, "normal 0 0 0 slave 268435456 67108864 60 pubsub " +
			"33554432 8388608 60"},
		{"client-output-buffer-limit", "master 1 2 3", class, "normal 0 0 0 slave 268435456 67108864 60 pubsub " +
			"33554432 8388608 60"},
		{"client-output-buffer-limit", "normal -1 0 0", number, "normal 0 0 0 slave 268435456 67108864 60 pubsub " +
			"33554432 8388608 60"},
		{"client-output-buffer-limit", "normal 1 2 x", number, "normal 0 0 0 slave 268435456 67108864 60 pubsub " +
			"33554432 8388608 60"},
		{"client-output-buffer-limit", "normal 1 2 -1", number, "normal 0 0 0 slave 268435456 67108864 60 pubsub " +
			"33554432 8388608 60"},
		{"client-output-buffer-limit", "normal 1x 2 3", number, "normal 0 0 0 slave 268435456 67108864 60 pubsub " +
			"33554432 8388608 60"},
		{"client-output-buffer-limit", "replica 10 5 60 pubsub 1k 1kb 3", "+OK", "normal 0 0 0 slave 10 5 60 pubsub " +
			"1000 1024 3"},
		{"client-output-buffer-limit", "NORMAL 500000 6 7", "+OK", "normal 500000 6 7 slave 10 5 60 pubsub 1000 " +
			"1024 3"},
		{"client-output-buffer-limit", "normal 1 2 3 normal 400000 5 6", "+OK", "normal 400000 5 6 slave 10 5 60 " +
			"pubsub 1000 1024 3"},
		{"client-output-buffer-limit", "normal  1 2 3", words, "normal 400000 5 6 slave 10 5 60 pubsub 1000 1024 3"},
		{"maxmemory-clients", "101%", clients + "percentage argument must be less or equal to 100", "20%"},
		{"maxmemory-clients", "-1", share, "20%"},
		{"maxmemory-clients", "x%", share, "20%"},
		{"maxmemory-clients", "1.5%", share, "20%"},
		{"maxmemory-clients", "100mb", "+OK", "104857600"},
		{"maxmemory-clients", "0%", "+OK", "0"},
		{"maxmemory-clients", "5%", "+OK", "5%"},
	} {
		assert.Equal(t, step.reply, c.send("CONFIG", "SET", step.name, step.value), step.value)
		assert.Equal(
			t,
			fmt.Sprintf("*2 $%d %s $%d %s", len(step.name), step.name, len(step.now), step.now),
			c.do("CONFIG GET "+step.name),
		)
	}
	assert.Equal(t, config.MinShare, c.number("maxmemory_clients"))
	require.Equal(t, "+OK", c.do("CONFIG SET maxmemory 1000mb"))
	assert.Equal(t, 50<<20, c.number("maxmemory_clients"))
	require.Equal(t, "+OK", c.do("CONFIG SET maxmemory 0"))
	assert.EqualValues(t, config.MachineMemory()/100*5, c.number("maxmemory_clients"))
	require.Equal(t, "+OK", c.do("CONFIG SET maxmemory-clients 0"))
	assert.Equal(t, 0, c.number("maxmemory_clients"))
}
