package resp

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/clientmem"
	"rlserver/resp/config"
)

const oom = "-OOM command not allowed when used memory > 'maxmemory'."

// field returns the value of a field of INFO.
func (c *testClient) field(name string) string {
	c.t.Helper()
	_, rest, found := strings.Cut(c.do("INFO"), "\r\n"+name+":")
	require.True(c.t, found, name)
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

func (c *testClient) number(name string) int {
	c.t.Helper()
	n, err := strconv.Atoi(c.field(name))
	require.NoError(c.t, err)
	return n
}

// Without eviction, commands that may take memory get the OOM error of Redis when it has run out.
// Other commands run.
func TestOutOfMemory(t *testing.T) {
	c := startServer(t, config.Defaults{}).dial()
	c.send("SET", "large", strings.Repeat("x", 200_000))
	c.check([]answer{
		{"SET k 1", "+OK"},
		{"MULTI", "+OK"},
		{"SET k 2", "+QUEUED"},
		{"CONFIG SET maxmemory 100kb maxmemory-policy noeviction", "+QUEUED"},
		{"EXEC", "*2 +OK +OK"},
		{"SET k 3", oom},
		{"RL.SLIDE l 5 1m", oom},
		{"RL.TOKEN l 5 5 1m", oom},
		{"GET k", "$1 2"},
		{"TTL k", ":-1"},
		{"MULTI", "+OK"},
		{"GET k", oom}, // the queue takes memory
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{"CONFIG SET maxmemory 1mb", "+OK"},
		{"MULTI", "+OK"},
		{"SET k 4", "+QUEUED"},
		{"GET k", "+QUEUED"},
	})
	other := c.dialAgain()
	require.Equal(t, "+OK", other.do("CONFIG SET maxmemory 100kb"))
	require.Equal(t, 4, other.number("maxmemory_refused_calls"))
	c.check([]answer{
		{
			"EXEC",
			"-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.",
		},
		{"GET k", "$1 2"},
		{"MULTI", "+OK"},
		{"DISCARD", "+OK"},
		{"DEL large", ":1"},
		{"SET k 5", "+OK"},
	})
	assert.Equal(t, "102400", c.field("maxmemory"))
	assert.Equal(t, "100.00K", c.field("maxmemory_human"))
	assert.Equal(t, "noeviction", c.field("maxmemory_policy"))
	assert.Equal(t, 5, c.number("maxmemory_refused_calls"))
	assert.Equal(t, 0, c.number("evicted_keys"))
	c.do("CONFIG RESETSTAT")
	assert.Equal(t, 0, c.number("maxmemory_refused_calls"))
}

// dialAgain opens another connection to the same server.
func (c *testClient) dialAgain() *testClient {
	return (&testServer{t: c.t, addr: c.RemoteAddr().String()}).dial()
}

func TestMaxmemoryParameters(t *testing.T) {
	c := startServer(t, config.Defaults{MaxMemory: 1 << 30, MemoryPolicy: "allkeys-lru"}).dial()
	c.check([]answer{
		{"CONFIG GET maxmemory", "*2 $9 maxmemory $10 1073741824"},
		{"CONFIG GET maxmemory-policy", "*2 $16 maxmemory-policy $11 allkeys-lru"},
		{"CONFIG GET maxmemory-samples", "*2 $17 maxmemory-samples $1 5"},
		{
			"CONFIG SET maxmemory-policy volatile-what",
			"-ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument(s) must be one of " +
				"the following: ratelimit, noeviction, …",
		},
		{
			"CONFIG SET maxmemory-samples 0",
			"-ERR CONFIG SET failed (possibly related to argument 'maxmemory-samples') - argument must be between 1 " +
				"and 2147483647 inclusive",
		},
		{
			"CONFIG SET maxmemory -1",
			"-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value",
		},
		{"CONFIG SET maxmemory 10 maxmemory-policy volatile-ttl maxmemory-samples 10", "+OK"},
		{"CONFIG GET maxmemory", "*2 $9 maxmemory $2 10"},
	})
	for _, policy := range []string{"noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru",
		"volatile-lfu", "volatile-random", "volatile-ttl", "ratelimit"} {
		assert.Equal(t, "+OK", c.do("CONFIG SET maxmemory-policy "+policy))
		assert.Equal(t, policy, c.field("maxmemory_policy"))
	}
}

// The overhead of the process reduces the memory that is left to the keys.
func TestOverheadCountsTowardsMaxmemory(t *testing.T) {
	ts := startServer(t, config.Defaults{MaxMemory: 1 << 20, MemoryPolicy: "noeviction"})
	c := ts.dial()
	require.Equal(t, "+OK", c.do("SET k v"))
	weight := c.number("used_memory_dataset")
	assert.Equal(t, weight+clientmem.ConnectionSize, c.number("used_memory"))
	// the memory of the connection is not taken from the keys
	const taken = 1<<20 + 1000 + clientmem.ConnectionSize
	ts.MemoryTaken(taken)
	assert.Equal(t, taken, c.number("used_memory"))
	assert.Equal(t, taken-weight, c.number("used_memory_overhead"))
	assert.Equal(t, clientmem.ConnectionSize, c.number("mem_not_counted_for_evict"))
	assert.Equal(t, oom, c.do("SET k v"))
	ts.MemoryTaken(1000)
	assert.Equal(t, "+OK", c.do("SET k v"))
}

// used_memory and the memory left to the keys are right after many clients have left, whether or
// not the next collection still counts their connections.
func TestMemoryAfterManyClients(t *testing.T) {
	const base, budget = 5 << 20, 20 << 20
	ts := startServer(t, config.Defaults{MaxMemory: budget, MemoryPolicy: "noeviction"})
	c := ts.dial()
	require.Equal(t, "+PONG", c.do("PING"), "the server has accepted the connection")
	ts.MemoryTaken(base)
	before := c.number("used_memory")
	for _, counted := range []bool{false, true} {
		var others []*testClient
		for range 200 {
			others = append(others, ts.dial())
		}
		c.eventually("connected", func() bool { return c.number("connected_clients") == len(others)+1 })
		all := base + len(others)*clientmem.ConnectionSize
		ts.MemoryTaken(int64(all))
		assert.Equal(t, before+all-base, c.number("used_memory"))
		for _, other := range others {
			other.Close()
		}
		c.eventually("left", func() bool { return c.number("connected_clients") == 1 })
		ts.MemoryTaken(map[bool]int64{false: base, true: int64(all)}[counted])
		assert.Equal(t, before, c.number("used_memory"), "counted: %v", counted)
		c.send("SET", "k", strings.Repeat("x", budget-base+clientmem.ConnectionSize))
		assert.Equal(t, oom, c.do("SET other v"), "the closed connections do not give the keys more memory")
		assert.Equal(t, ":1", c.do("DEL k"))
		ts.MemoryTaken(base)
		assert.Equal(t, before, c.number("used_memory"))
	}
}

// Keys of all types stay within the limit under each policy of Redis. The volatile policies keep
// keys without an expiry.
func TestEviction(t *testing.T) {
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu",
		"volatile-random", "volatile-ttl", "ratelimit"} {
		t.Run(policy, func(t *testing.T) {
			ts := startServer(t, config.Defaults{MaxMemory: 300_000, MemoryPolicy: policy})
			c := ts.dial()
			value := strings.Repeat("x", 100)
			lasting := func(i int) bool { return !strings.HasPrefix(policy, "allkeys") && i%10 == 0 }
			stay := 0
			for i := range 5000 {
				words := []string{"SET", fmt.Sprint("key:", i), value}
				if !lasting(i) {
					words = append(words, "EX", "1000")
				} else if stay++; stay > 500 {
					break
				}
				require.Equal(t, "+OK", c.send(words...))
				require.Less(t, ts.Engine.Weight(), int64(300_000+100<<10))
			}
			assert.Greater(t, c.number("evicted_keys"), 2000)
			for i := range 5000 {
				if lasting(i) {
					require.Equal(t, ":1", c.do(fmt.Sprint("EXISTS key:", i)))
				}
			}
		})
	}
}

// OBJECT FREQ and OBJECT IDLETIME reply under the policies that keep these figures.
func TestAccessFrequency(t *testing.T) {
	c := startServer(t, config.Defaults{MemoryPolicy: "allkeys-lfu"}).dial()
	c.check([]answer{
		{"SET k v", "+OK"},
		{"OBJECT FREQ k", ":5"},
		{"OBJECT FREQ nope", "$-1"},
		{"OBJECT IDLETIME nope", "$-1"},
		{
			"OBJECT IDLETIME k",
			"-ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching " +
				"between policies at runtime LRU and LFU data will take some time to adjust.",
		},
		{"GET k", "$1 v"},
		{"OBJECT FREQ k", ":6"},
		{"CONFIG SET maxmemory-policy allkeys-lru", "+OK"},
		{
			"OBJECT FREQ k",
			"-ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when " +
				"switching between policies at runtime LRU and LFU data will take some time to adjust.",
		},
		{"GET k", "$1 v"},
		{"OBJECT IDLETIME k", ":0"},
	})
}

func TestTop(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	zipf := rand.NewZipf(r, 1.5, 1, 30)
	c := startServer(t, config.Defaults{}).dial()
	require.Equal(t, "*0", c.do("RL.TOP"))
	exact := map[string]int{}
	for range 2000 {
		key := fmt.Sprint("key:", zipf.Uint64())
		if reply := c.do("RL.FIXED " + key + " 3 1h"); strings.HasPrefix(reply, "*5 :0") {
			exact[key]++
		}
		c.do("RL.FIXED " + key + " 3 1h COST 0")
	}
	reply := strings.Fields(c.do("RL.TOP 4096"))
	require.Equal(t, fmt.Sprint("*", 2*len(exact)), reply[0])
	last := 1 << 30
	for i := 1; i < len(reply); i += 3 {
		n, err := strconv.Atoi(reply[i+2][1:])
		require.NoError(t, err)
		assert.Equal(t, exact[reply[i+1]], n, "%s: counts of few keys are exact", reply[i+1])
		assert.LessOrEqual(t, n, last)
		last = n
	}
	assert.Len(t, strings.Fields(c.do("RL.TOP 2")), 7)
	c.check([]answer{
		{"INCREX counter UBOUND 1", "*2 :1 :1"},
		{"SELECT 2", "+OK"},
		{"INCREX counter UBOUND 1", "*2 :1 :1"},
		{"INCREX counter UBOUND 1", "*2 :1 :0"},
		{"INCREX counter BYFLOAT 1 UBOUND 1", "*2 $1 1 $1 0"},
		{"RL.TOP", "*2 $7 counter :2"},
		{"SELECT 0", "+OK"},
		{"RL.TOP 0", "-ERR n must be from 1 to 4096"},
		{"RL.TOP 4097", "-ERR n must be from 1 to 4096"},
		{"RL.TOP x", "-ERR n must be from 1 to 4096"},
		{"RL.TOP 1 2", "-ERR syntax error"},
		{"SELECT 1", "+OK"},
		{"RL.TOP", "*0"},
		{"CONFIG RESETSTAT", "+OK"},
		{"SELECT 0", "+OK"},
		{"RL.TOP", "*0"},
	})
}

func TestInfoCountsDecisions(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, other := ts.dial(), ts.dial()
	assert.Contains(t, c.do("INFO ratelimit"), "# Ratelimit\r\ndecisions_admitted:0\r\ndecisions_denied:0\r\n")
	for range 5 {
		c.do("RL.SLIDE s 3 1m")
		other.do("RL.SLIDE s 3 1m")
		c.do("RL.SLIDE s 3 1m COST 0")
		c.do("RL.TOKEN t 2 1 1h")
		c.do("RL.FIXED f 2 nonsense")
	}
	c.do("RL.MULTI m 1 1m 2 1h")
	c.check([]answer{{"MULTI", "+OK"}, {"RL.MULTI m 1 1m 2 1h", "+QUEUED"}, {"EXEC", "*1 *6 :0…"}})
	assert.True(
		t,
		strings.HasSuffix(
			strings.TrimSpace(c.do("INFO ratelimit")),
			"# Ratelimit\r\ndecisions_admitted:6\r\ndecisions_denied:11\r\ndecisions_shadow_denied:0\r\n"+
				"rl_multi:admitted=1,denied=1\r\nrl_slide:admitted=3,denied=7\r\nrl_token:admitted=2,denied=3",
		),
		c.do("INFO ratelimit"),
	)
	c.do("CONFIG RESETSTAT")
	assert.Contains(
		t,
		c.do("INFO"),
		"# Ratelimit\r\ndecisions_admitted:0\r\ndecisions_denied:0\r\ndecisions_shadow_denied:0\r\n\r\n",
	)
}

func TestDecisionCountsOfAllSessionsAddUp(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	const clients, calls = 40, 20
	done := make(chan struct{})
	for range clients {
		c := ts.dial()
		go func() {
			for range calls {
				c.do("RL.TOKEN t 100 1 1h")
			}
			done <- struct{}{}
		}()
	}
	for range clients {
		<-done
	}
	c := ts.dial()
	assert.Equal(t, 100, c.number("decisions_admitted"))
	assert.Equal(t, clients*calls-100, c.number("decisions_denied"))
	assert.Equal(t, fmt.Sprintf("*2 $1 t :%d", clients*calls-100), c.do("RL.TOP"))
}

func TestWarningAboutSmallMaxMemory(t *testing.T) {
	var text logBuffer
	ts := startServer(
		t,
		config.Defaults{MaxMemory: 3 << 20},
		func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&text, nil)) },
	)
	assert.Contains(t, text.String(), "maxmemory is too small")
	c := ts.dial()
	c.do("CONFIG SET maxmemory 100mb")
	ts.MemoryTaken(50 << 20)
	c.do("CONFIG SET maxmemory 60mb")
	c.do("CONFIG SET timeout 5")
	assert.NotContains(t, text.String(), "less than what is in use")
	assert.Equal(t, 1, strings.Count(text.String(), "too small"))
	c.do("CONFIG SET maxmemory 20mb")
	assert.Contains(t, text.String(), "maxmemory is less than what is in use")
}

// A short call with a large result is refused if it does not fit in memory, also in a transaction,
// and changes nothing.
func TestLargeResultsNeedMemory(t *testing.T) {
	c := startServer(t, config.Defaults{MemoryPolicy: "noeviction"}).dial()
	words := []string{"ZADD", "z"}
	for i := range 20_000 {
		words = append(words, strconv.Itoa(i), fmt.Sprint("member:", i))
	}
	require.Equal(t, ":20000", c.send(words...))
	require.Equal(t, "+OK", c.send("SET", "s", strings.Repeat("x", 1<<20)))
	require.Equal(t, ":20000", c.do("ZUNIONSTORE old 1 z"))
	c.check([]answer{
		{"CONFIG SET maxmemory " + strconv.Itoa(c.number("used_memory_dataset")+500_000), "+OK"},
		{"ZUNIONSTORE new 1 z", oom},
		{"ZINTERSTORE new 2 z z", oom},
		{"ZDIFFSTORE new 2 z missing", oom},
		{"ZRANGESTORE new z 0 -1", oom},
		{"COPY z new", oom},
		{"COPY s new", oom},
		{"EXISTS new", ":0"},
		{"ZRANGESTORE few z 0 9", ":10"},
		{"ZUNIONSTORE old 1 z", ":20000"}, // replaces a result of the same size
		{"COPY z old REPLACE", ":1"},
		{"MULTI", "+OK"},
		{"ZUNIONSTORE new 1 z", "+QUEUED"},
		{"SET k v", "+QUEUED"},
		{"EXEC", "*2 " + oom + " +OK"},
		{"DEL old", ":1"},
		{"ZUNIONSTORE new 1 z", ":20000"},
	})
}

// Keys are evicted for a result that a call stores, as they are for data that a client sends.
func TestLargeResultsEvict(t *testing.T) {
	c := startServer(t, config.Defaults{MemoryPolicy: "volatile-ttl"}).dial()
	words := []string{"ZADD", "z"}
	for i := range 20_000 {
		words = append(words, strconv.Itoa(i), fmt.Sprint("member:", i))
	}
	require.Equal(t, ":20000", c.send(words...))
	for i := range 2000 {
		require.Equal(t, "+OK", c.send("SET", fmt.Sprint("key:", i), strings.Repeat("x", 1000), "EX", "1000"))
	}
	c.check([]answer{
		{"CONFIG SET maxmemory " + strconv.Itoa(c.number("used_memory_dataset")+100_000), "+OK"},
		{"ZUNIONSTORE new 3 z z z", ":20000"},
		{"EXISTS z new", ":2"},
	})
	assert.Greater(t, c.number("evicted_keys"), 500)
	assert.Less(t, c.number("evicted_keys"), 1900)
}

// A client that has set maxmemory to nearly 0 can raise it again.
func TestTinyMaxmemoryDoesNotCloseClients(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, other := ts.dial(), ts.dial()
	c.check(
		[]answer{
			{"SET k v", "+OK"},
			{"CONFIG SET maxmemory-clients 20%", "+OK"},
			{"MULTI", "+OK"},
			{"GET k", "+QUEUED"},
		},
	)
	other.check([]answer{{"CONFIG SET maxmemory 1", "+OK"}, {"PING", "+PONG"}})
	c.check([]answer{{"EXEC", "*1 $1 v"}, {"CONFIG SET maxmemory 0", "+OK"}, {"SET k w", "+OK"}})
}
