package resp

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/command"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
)

// anyCalls are the calls of random pipelines. Each K stands for a random key.
var anyCalls = []string{
	"RL.SLIDE K 3 1s", "RL.SLIDE K 3 1s COST 2 ID x", "RL.SLIDE K 3 1s COST 0", "RL.TOKEN K 3 1 1s",
	"RL.TOKEN K 3 1 1s COST 2", "RL.FIXED K 2 1s",
	"RL.MULTI K 2 1s 3 2s", "RL.LEASE K 2 1s a", "RL.LEASE K 2 1s b", "RL.RELEASE K a", "RL.REFUND K 1",
	"RL.LEAKY K 2 1s QUEUE 1",
	"RL.ALL K SLIDE 3 1s K TOKEN 3 1 1s", "RL.ALL K SLIDE 3 1s K LEASE 2 1s c K FIXED 3 1s", "RL.CHECK ann p",
	"RL.CHECK ann p q", "RL.CHECK bob q ID 7",
	"CL.THROTTLE K 2 3 1", "GCRA K 2 3 1", "INCREX K UBOUND 3 EX 1 ENX", "RL.SLIDE K 0 1s", "RL.SLIDE K",
	"RL.TOKEN K 1 1 x", "NOSUCH K",
	"SET K v", "GET K", "INCR K", "DEL K", "EXPIRE K 1", "PTTL K", "TYPE K", "ZADD K 1 a 2 b", "ZCARD K", "ZREM K a",
	"HSET K f v", "HGET K f", "MGET K K K",
	"PING", "SELECT 1", "SELECT 0", "MULTI", "EXEC", "DISCARD", "WATCH K", "DBSIZE", "SCAN 0", "ECHO x", "RENAME K K",
	"SORT K", "OBJECT IDLETIME K", "OBJECT FREQ K",
}

// Replies and keys are the same whether calls arrive one by one or in pipelines.
func TestPipelinesReplyLikeSingleCalls(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		one, other := startServer(t, config.Defaults{}), startServer(t, config.Defaults{})
		piped, single := one.dial(), other.dial()
		for _, c := range []*testClient{piped, single} {
			require.Equal(t, "+OK", c.do("RL.POLICY SET p SLIDE 2 1s"))
			require.Equal(t, "+OK", c.do("RL.POLICY SET q TOKEN 3 1 1s"))
		}
		for range 20 {
			lines := make([]string, 1+r.IntN(60))
			call := ""
			for i := range lines {
				if i == 0 || r.IntN(3) == 0 { // often the same call with another key follows
					call = anyCalls[r.IntN(len(anyCalls))]
				}
				line := call
				for strings.Contains(line, " K") {
					line = strings.Replace(line, " K", fmt.Sprint(" k", r.IntN(6)), 1)
				}
				lines[i] = line
			}
			replies := piped.pipe(lines...)
			for i, line := range lines {
				require.Equal(t, single.do(line), replies[i], "%d of %q", i, lines)
			}
			step := r.Int64N(700)
			one.advance(step)
			other.advance(step)
		}
		require.Equal(t, commandtest.Contents(other.Engine, other.now.Load()),
			commandtest.Contents(one.Engine, one.now.Load()))
	}
}

// What is checked for each key is checked for calls that differ from the one before in nothing
// else.
func TestKeysOfCallsThatRepeat(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	require.Equal(t, "+OK", c.do("CONFIG SET proto-max-key-len 5"))
	require.Equal(t, "+OK", c.do("ACL SETUSER default resetkeys ~k*"))
	for i, call := range []string{"RL.TOKEN %s 5 5 1h", "RL.SLIDE %s 5 1h"} {
		var lines []string
		for _, key := range []string{"k1", "other", "k3", "kkkkkk", "k1", "k1"} {
			lines = append(lines, fmt.Sprintf(call, strings.Replace(key, "k", "k"+strings.Repeat("k", i), 1)))
		}
		replies := c.pipe(lines...)
		for j, begin := range []string{
			"*5 :1 :5 :4 ", "-NOPERM this user has no permissions to access one of the keys", "*5 :1 :5 :4 ",
			"-ERR key is too long", "*5 :1 :5 :3 ", "*5 :1 :5 :2 ",
		} {
			assert.True(t, strings.HasPrefix(replies[j], begin), "%s: %s", lines[j], replies[j])
		}
	}
}

// Concurrent pipelines admit exactly as many calls as the limit.
func TestConcurrentPipelinesAdmitExactly(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	const clients, calls, keys, most = 8, 40, 5, 50
	var lines []string
	for i := range calls {
		for k := range keys {
			lines = append(lines, fmt.Sprintf("RL.SLIDE k%d %d 1h", (i+k)%keys, most))
			lines = append(lines, fmt.Sprintf("RL.TOKEN t%d %d 1 1000h", (i*k)%keys, most))
		}
	}
	var mu sync.Mutex
	admitted := make(map[string]int)
	var all sync.WaitGroup
	for range clients {
		c := ts.dial()
		all.Go(func() {
			for i, reply := range c.pipe(lines...) {
				if strings.HasPrefix(reply, "*5 :1 ") {
					mu.Lock()
					admitted[strings.Fields(lines[i])[1]]++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	require.Len(t, admitted, 2*keys)
	for k, n := range admitted {
		assert.Equal(t, most, n, k)
	}
}

// A call that panics in a group releases the locks; the other calls are not affected.
func TestPanicWithinAPipeline(t *testing.T) {
	withCommand(t, "testpanic", func(c *command.Call) error { panic("on purpose") })
	command.Table["testpanic"].Flags |= command.Fast
	ts := startServer(t, config.Defaults{})
	ts.Log = slog.New(slog.DiscardHandler)
	c := ts.dial()
	assert.Equal(
		t,
		[]string{":1", ":1", "-ERR internal error", ":2", "+PONG"},
		c.pipe("INCR n", "INCR m", "TESTPANIC k", "INCR n", "PING"),
	)
	assert.Equal(t, ":3", ts.dial().do("INCR n"))
}

// Calls without a reply are recorded in the journal too.
func TestReplyOffInAPipeline(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	go io.WriteString(
		c,
		pipeline(
			"INCR n",
			"CLIENT REPLY SKIP",
			"INCR n",
			"INCR n",
			"CLIENT REPLY OFF",
			"INCR n",
			"INCR n",
			"CLIENT REPLY ON",
			"INCR n",
		),
	)
	var replies []string
	for range 4 {
		replies = append(replies, strings.TrimSuffix(c.read(), " "))
	}
	assert.Equal(t, []string{":1", ":3", "+OK", ":6"}, replies)
	go io.WriteString(
		c,
		pipeline(
			"CLIENT REPLY OFF",
			"INCRBY a 100",
			"TYPE n",
			"HINCRBY h f 12",
			"TYPE n",
			"INCRBYFLOAT b 1.5",
			"TYPE n",
			"CLIENT REPLY ON",
		),
	)
	assert.Equal(t, "+OK ", c.read())
}

// A reply that is too large is cut off, and so are those behind it: the calls still do what they
// say, and the journal tells it.
func TestCallsBehindAnOversizedReply(t *testing.T) {
	fast := []string{"INCR a", "INCREX c", "INCR d", "HINCRBY h n 5", "INCR b", "DECRBY e 12", "HINCRBY h m 1",
		"HINCRBYFLOAT h f 0.5", "INCRBYFLOAT f 2.5", "INCREX x BYFLOAT 1.5", "APPEND s tail", "ZINCRBY z 3.25 m",
		"ZADD z INCR 2 m", "GETSET g 9", "RL.SLIDE r 5 1m ID unique-name", "RL.TOKEN t 5 1 1m"}
	// these do not run in groups
	others := []string{"SETRANGE s 1 xyz", "BITFIELD w SET u16 0 16690", "RENAME g i"}
	for _, variant := range []struct{ transaction, resp3 bool }{{}, {false, true}, {true, false}, {true, true}} {
		t.Run(fmt.Sprintf("%+v", variant), func(t *testing.T) {
			ts := startServer(t, config.Defaults{})
			c := ts.dial()
			require.Equal(t, "+OK", c.send("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 512kb 60"))
			require.Equal(t, "+OK", c.send("SET", "big", strings.Repeat("x", 3<<20)))
			require.Equal(t, "+OK", c.do("MSET a 5 c 10 d 41 b 1000"))
			require.Equal(t, ":3", c.do("HSET h n 7 m 8 f 1"))
			calls := fast
			if variant.transaction {
				calls = slices.Concat(fast, others)
			}
			for batch := range slices.Chunk(calls, 4) { // a group ends after 16 calls
				batch = slices.Insert(slices.Clone(batch), 0, "GET big")
				if variant.transaction {
					batch = slices.Concat([]string{"MULTI"}, batch, []string{"EXEC"})
				}
				client := ts.dial()
				if variant.resp3 {
					client.do("HELLO 3")
				}
				_, err := io.WriteString(client, pipeline(batch...))
				require.NoError(t, err)
				io.Copy(io.Discard, client.r) // until it is closed
			}
			if !variant.transaction {
				c.pipe(others...)
			}
			for _, step := range []struct{ call, want string }{
				{"MGET a c d b e f x w i", "*9 $1 6 $2 11 $2 42 $4 1001 $3 -12 $3 2.5 $3 1.5 $2 A2 $1 9"},
				{"HMGET h n m f", "*3 $2 12 $1 9 $3 1.5"}, {"ZSCORE z m", "$4 5.25"}, {"GET s", "$4 txyz"},
				{"ZRANGE r 0 -1", "*1 $11 unique-name"},
			} {
				assert.Equal(t, step.want, c.do(step.call), step.call)
			}
		})
	}
}

// A reply of a transaction that is cut off takes those that are written later with it.
func TestPostponedReplyBehindAnOversizedOne(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, client := ts.dial(), ts.dial()
	require.Equal(t, "+OK", c.send("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 512kb 60"))
	require.Equal(t, "+OK", c.send("SET", "big", strings.Repeat("x", 3<<20)))
	require.Equal(t, "+OK", c.do("SET small 1"))
	_, err := io.WriteString(client, pipeline("MULTI", "GET big", "INCR a", "DUMP small", "GET small", "EXEC"))
	require.NoError(t, err)
	io.Copy(io.Discard, client.r) // until it is closed
	assert.Equal(t, "$1 1", c.do("GET a"))
	assert.NotContains(t, c.do("INFO errorstats"), "errorstat_ERR")
}

// When a call in a pipeline frees capacity, a waiter is served before the following calls of the
// pipeline.
func TestPipelineDoesNotOvertakeWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		holder := b.Calls("holder", "RL.LEASE k 1 1h x")
		b.Calls("waiter", "RL.LEASE k 1 1h y WAIT 1h")
		b.Replies()
		holder.Call("INCR n\nRL.RELEASE k x\nRL.LEASE k 1 1h z\nINCR n")
		assert.Equal(t, []string{
			"0 holder :1", "0 holder :1", "0 holder " + denied + ":3600000 :3600000", "0 holder :2", "0 waiter *5 " +
				":1 :1 :0 :0 :3600000",
		}, b.Replies())
	})
}

// A waiter is served even if the last call of a transaction only reads.
func TestTransactionServesWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.Calls("popper", "BZPOPMIN z 0")
		b.Calls("holder", "RL.LEASE k 1 1h x")
		b.Calls("waiter", "RL.LEASE k 1 1h y WAIT 1h")
		b.Replies()
		b.Calls("c", "MULTI\nZADD z 1 a\nRL.RELEASE k x\nGET nothing\nEXEC")
		assert.Equal(t, []string{
			"0 c +OK", "0 c +QUEUED", "0 c +QUEUED", "0 c +QUEUED", "0 c *3 :1 :1 $-1", "0 popper *3 $1 z $1 a $1 1",
			"0 waiter *5 :1 :1 :0 :0 :3600000",
		}, b.Replies())
	})
}

// Calls behind a waiting call in a pipeline wait too; the replies of the calls before it are sent.
func TestWaitingCallInAPipeline(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		c := b.Calls("c", "INCR n\nRL.SLIDE k 1 1s\nRL.SLIDE k 1 1s WAIT 5s\nINCR n\nRL.SLIDE k 1 1s WAIT 5s\nINCR n")
		c.Call("INCR n")
		b.PassUntil(3000)
		assert.Equal(
			t,
			[]string{
				"0 c :1",
				"0 c " + admitted,
				"1000 c " + admitted,
				"1000 c :2",
				"2000 c " + admitted,
				"2000 c :3",
				"2000 c :4",
			},
			b.Replies(),
		)
	})
}

// The effects of a call are recorded unchanged even if the next call waits.
func TestWaitingCheckInAPipeline(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		c := b.Calls(
			"c",
			"RL.POLICY SET p TOKEN 1 1 10s\nRL.POLICY SET q TOKEN 9 1 1h\nRL.CHECK bob p\nRL.CHECK zed q\nRL.CHECK "+
				"zac q",
		)
		b.Replies()
		c.Call("RL.CHECK ann q\nRL.CHECK bob p WAIT 60s")
		b.PassUntil(10_000)
		assert.Equal(t, []string{"0 c *6 :1 :9 :8 :0 :3600000 :0", "10000 c *6 :1 :1 :0 :0 :10000 :0"}, b.Replies())
	})
}

// A call that is refused with OOM is counted once.
func TestPipelineWithoutMemory(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	require.Equal(t, "+OK", c.do("CONFIG SET maxmemory-policy noeviction"))
	require.Equal(t, ":1", c.do("INCR k"))
	require.Equal(t, "+OK", c.do("SET large "+strings.Repeat("x", 1<<12)))
	ts.Server.Engine.SetBudget(1)
	for i, reply := range c.pipe("GET k", "INCR k", "INCR k", "GET k", "INCR j", "TTL k") {
		assert.Equal(t, i == 1 || i == 2 || i == 4, strings.HasPrefix(reply, "-OOM "), reply)
	}
	assert.EqualValues(t, 3, ts.oomRefusals.Load())
}

// A group of calls ends after large replies, and large calls run alone: other clients must not wait
// for them, and memory is checked before each.
func TestLargeCallsRunAlone(t *testing.T) {
	long := "HSET h" + strings.Repeat(" field value", 500)
	for _, step := range []struct {
		lines []string
		holds []int // number of calls under each hold of the locks
	}{
		{[]string{"RL.SLIDE a 9 1h", "RL.SLIDE b 9 1h", "GET c"}, []int{3}},
		{[]string{"RL.SLIDE a 10000 1h COST 1000", "RL.SLIDE b 10000 1h COST 1000", "RL.SLIDE c 9 1h",
			"RL.SLIDE d 9 1h"}, []int{1, 1, 2}},
		{[]string{"RL.REFUND a 1000", "RL.REFUND b 1000", "INCR n", "INCR n"}, []int{1, 1, 2}},
		{[]string{long, "INCR n", "INCR n", long, "INCR n"}, []int{1, 2, 1, 1}},
		{[]string{"MGET a b c d e f g h i j k l m n o", "GET a", "GET b", "GET c"}, []int{2, 2}},
	} {
		s := newSession()
		s.guard.SetAuthenticated(true)
		for _, made := range []string{"RL.SLIDE a 10000 1h COST 2000", "RL.SLIDE b 10000 1h COST 2000"} {
			if strings.HasPrefix(step.lines[0], "RL.REFUND") {
				s.reply(wordsOf(made))
			}
		}
		text := pipeline(step.lines...)
		s.guard.Feed([]byte(text))
		var holds []int
		for done := 0; done < len(step.lines); {
			s.execute(s.guard.Next())
			left := s.guard.Buffered()
			n := 0
			for len(pipeline(step.lines[done+n:]...)) > left {
				n++
			}
			holds, done = append(holds, n), done+n
		}
		assert.Equal(t, step.holds, holds, "%.60q", step.lines)
	}
}

// pipelined runs a pipeline in a session without a connection.
func (s *session) pipelined(text []byte) {
	s.guard.SetAuthenticated(true)
	s.guard.Feed(text)
	s.runBatch()
	s.guard.Release()
}

func TestPipelinesDoNotAllocate(t *testing.T) {
	s := newSession()
	var lines []string
	for i := range 32 {
		lines = append(
			lines,
			fmt.Sprintf("RL.TOKEN t%d 1000000 1 1h COST 1", i%20),
			fmt.Sprintf("RL.SLIDE s%d 1 1h COST 1 WAIT 1", i%20),
		)
	}
	text := []byte(pipeline(lines...))
	s.pipelined(text)
	for _, p := range s.group[:cap(s.group)] {
		assert.Nil(t, p.Words, "an idle session references no buffers")
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { s.pipelined(text) }))
}

// BenchmarkPipeline runs pipelines of 16 calls on 100,000 random keys, as they arrive from a
// socket.
func BenchmarkPipeline(b *testing.B) {
	for _, call := range []string{"RL.TOKEN key:%012d 100 100 1m", "RL.SLIDE key:%012d 100 1m", "GET key:%012d"} {
		b.Run(strings.Fields(call)[0], func(b *testing.B) {
			calls := int64(0)
			s := newBenchSession(func() int64 { return testStart + calls/500 })
			texts := make([][]byte, 10_000)
			for i := range texts {
				lines := make([]string, 16)
				for j := range lines {
					lines[j] = fmt.Sprintf(call, rand.IntN(100_000))
				}
				texts[i] = []byte(pipeline(lines...))
			}
			for i := 0; b.Loop(); i++ {
				s.pipelined(texts[i%len(texts)])
				calls += 16
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/16, "ns/call")
		})
	}
}
