package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/clientmem"
	"rlserver/resp/config"
)

const oom = "-OOM command not allowed when used memory > 'maxmemory'."

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
	other := (&testServer{t: c.t, addr: c.RemoteAddr().String()}).dial()
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

// used_memory and the memory left to the keys are right after many clients have left, whether or
// not the next collection still counts their connections.
func TestMemoryAfterManyClients(t *testing.T) {
	const base, budget = 5 << 20, 20 << 20
	ts := startServer(t, config.Defaults{"maxmemory": fmt.Sprint(budget), "maxmemory-policy": "noeviction"})
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
			ts := startServer(t, config.Defaults{"maxmemory": "300000", "maxmemory-policy": policy})
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

// Keys are evicted for scripts, alone and in transactions, before they begin. As in Redis, what
// counts later is the memory at that time.
func TestEvictionForScripts(t *testing.T) {
	ts := startServer(t, config.Defaults{"maxmemory": "300000", "maxmemory-policy": "allkeys-random"})
	c := ts.dial()
	value := strings.Repeat("x", 2000)
	for i := range 500 {
		key := fmt.Sprint("key:", i)
		script := []string{"EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", key, value}
		if i%2 == 0 {
			require.Equal(t, "+OK", c.send(script...))
		} else {
			require.Equal(t, "+OK", c.do("MULTI"))
			require.Equal(t, "+QUEUED", c.send(script...))
			require.Equal(t, "*1 +OK", c.do("EXEC"))
		}
		require.Less(t, ts.Engine.Weight(), int64(300_000+100<<10))
	}
	assert.Greater(t, c.number("evicted_keys"), 200)
	assert.Equal(t, 0, c.number("maxmemory_refused_calls"))
	require.Equal(t, "+OK", c.do("MULTI"))
	value = strings.Repeat("x", 120_000)
	for i := range 4 {
		c.send("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", fmt.Sprint("large:", i), value)
	}
	require.Equal(t, "*4 +OK +OK +OK +OK", c.do("EXEC"))
	require.Equal(t, "+OK", c.do("CONFIG SET maxmemory-policy noeviction maxmemory 1"))
	const refused = "-OOM command not allowed when used memory > 'maxmemory'. script: "
	assert.Contains(t, c.send("EVAL", "return redis.call('SET', KEYS[1], 1)", "1", "k"), refused)
	assert.Equal(t, ":0", c.send("EVAL", "return redis.call('EXISTS', KEYS[1])", "1", "none"))
	assert.Equal(t, "+OK", c.send("EVAL", "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], 1)", "1", "k"))
}

// Calls that write many keys evict as many, also as scripts in transactions.
func TestEvictionForLargeCalls(t *testing.T) {
	for name, call := range map[string]func(c *testClient, keys []string){
		"MSET": func(c *testClient, keys []string) {
			words := []string{"MSET"}
			for _, k := range keys {
				words = append(words, k, "value")
			}
			require.Equal(t, "+OK", c.send(words...))
		},
		"EXEC": func(c *testClient, keys []string) {
			script := "for i = 1, #KEYS do redis.call('SET', KEYS[i], 'value') end"
			require.Equal(t, "+OK", c.do("MULTI"))
			require.Equal(t, "+QUEUED", c.send(append([]string{"EVAL", script, fmt.Sprint(len(keys))}, keys...)...))
			require.Equal(t, "*1 $-1", c.do("EXEC"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ts := startServer(t, config.Defaults{"maxmemory": "500000", "maxmemory-policy": "allkeys-random"})
			c := ts.dial()
			keys := make([]string, 500)
			for i := range 40 {
				for j := range keys {
					keys[j] = fmt.Sprint("key:", i*len(keys)+j)
				}
				call(c, keys)
				require.Less(t, ts.Engine.Weight(), int64(500_000+200<<10))
			}
			assert.Greater(t, c.number("evicted_keys"), 10_000)
		})
	}
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
