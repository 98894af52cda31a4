package resp

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/lua"
)

// Scripts beside other parts of the server. What MONITOR, redis.setresp and maxmemory do is
// compared with Redis in package integration.

// running sends a script that changes its keys and runs until end.
func (ts *testServer) running(source string, words ...string) (c *testClient, end func()) {
	c = ts.dial()
	c.Write([]byte(frame(append([]string{script, source}, words...)...)))
	require.Eventually(ts.t, func() bool { return ts.Engine.Holds.Len() > 0 }, 10*time.Second, time.Millisecond)
	return c, func() { ts.dial().do("SUBSCRIBE end") }
}

const waits = "while redis.call('PUBSUB', 'NUMSUB', 'end')[2] == 0 do end "

// A key that expires while a script runs is there until its end, for all commands alike: the time
// of the script stands still. Then it is gone, also if the script has written it.
func TestKeysDoNotExpireWithinScripts(t *testing.T) {
	for _, exec := range []string{"", "MULTI"} {
		ts := startServer(t, config.Defaults{})
		c := ts.dial()
		require.Equal(t, "+OK", c.do("SET old 1 PX 1000"))
		const look = "return {redis.call('GET', KEYS[1]), redis.call('EXISTS', KEYS[1], KEYS[2]), " +
			"redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2]), redis.call('INCR', KEYS[1])}"
		source := "redis.call('SET', KEYS[2], 1, 'PX', 1) " + waits + look
		running := ts.dial()
		if exec != "" {
			require.Equal(t, "+OK", running.do(exec))
			require.Equal(t, "+QUEUED", running.send(script, source, "2", "old", "new"))
			running.Write([]byte(frame("EXEC")))
		} else {
			running.Write([]byte(frame(script, source, "2", "old", "new")))
		}
		require.Eventually(t, func() bool { return ts.Engine.Holds.Len() > 0 }, 10*time.Second, time.Millisecond)
		ts.advance(5000)
		other := ts.dial()
		other.Write([]byte(frame("GET", "old"))) // waits for the script
		require.Equal(t, "*3 $9 subscribe $3 end :1", ts.dial().do("SUBSCRIBE end"))
		got := strings.TrimSpace(running.read())
		assert.True(t, strings.HasSuffix(got, "*5 $1 1 :2 :1000 :1 :2"), got)
		assert.Equal(t, "$-1", strings.TrimSpace(other.read()))
		assert.Equal(t, ":0", c.do("EXISTS old new"))
	}
}

// SCRIPT FLUSH does not wait for a script that runs, which goes on and may be sent again.
func TestScriptFlushWhileAScriptRuns(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	source := "redis.call('SET', KEYS[1], 1) " + waits + "return redis.call('INCR', KEYS[1])"
	running, end := ts.running(source, "1", "k")
	c := ts.dial()
	assert.Equal(t, "+OK", c.do("SCRIPT FLUSH SYNC"))
	assert.Equal(t, "*1 :0", c.do("SCRIPT EXISTS "+lua.SHA1(source)))
	assert.Equal(t, "-NOSCRIPT No matching script. Please use EVAL.", c.do("EVALSHA "+lua.SHA1(source)+" 1 other"))
	assert.Equal(t, ":1", c.eval("return 1", "0"))
	end()
	assert.Equal(t, ":2", strings.TrimSpace(running.read()))
	assert.Equal(t, "*1 :0", c.do("SCRIPT EXISTS "+lua.SHA1(source)), "its end does not bring it back")
	assert.Equal(t, ":2", c.eval(source, "1", "k"))
}

// A script goes on when its client is gone: its changes are whole, and its keys are free then.
func TestScriptsOutliveTheirClients(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	running, end := ts.running("redis.call('SET', KEYS[1], 'half') "+waits+
		"redis.call('SET', KEYS[1], 'done') return string.rep('x', 100000)", "1", "k")
	require.NoError(t, running.Close())
	c := ts.dial()
	c.Write([]byte(frame("GET", "k"))) // waits for the script
	end()
	assert.Equal(t, "$4 done", strings.TrimSpace(c.read()))
	require.Eventually(t, func() bool { return ts.Engine.Holds.Len() == 0 }, 10*time.Second, time.Millisecond)
}

// A script whose reply is larger than the output limit is done: its client is closed, as after any
// other call, and nobody else is.
func TestScriptWithAReplyAboveTheOutputLimit(t *testing.T) {
	for name, source := range map[string]string{
		"string": "return string.rep('x', 3000000)",
		"list":   "local r = {} for i = 1, 100000 do r[i] = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' end return r",
		"nested": "local r = string.rep('x', 100000) local l = {r, r, r, r, r, r} return {l, l, l, l, l}",
		"call": "for i = 1, 30 do redis.call('RPUSH', KEYS[2], string.rep('x', 100000)) end " +
			"return redis.call('LRANGE', KEYS[2], 0, -1)",
	} {
		t.Run(name, func(t *testing.T) {
			ts := startServer(t, config.Defaults{"client-output-buffer-limit": "normal 1mb 0 0"})
			c, other := ts.dial(), ts.dial()
			c.Write([]byte(frame(script, "redis.call('SET', KEYS[1], 'done') "+source, "2", "k", "l")))
			got, _ := io.ReadAll(c.In)
			assert.Less(t, len(got), 3_000_000, "half of it at most")
			assert.Equal(t, "$4 done", other.do("GET k"))
			assert.Equal(t, "1", other.field("client_output_buffer_limit_disconnections"))
			assert.Equal(t, ":1", other.eval("return 1", "1", "k"))
		})
	}
}

// The lines that monitors get of one script are bounded in bytes, as are those of a transaction.
func TestMonitorsGetABoundedNumberOfLinesOfScripts(t *testing.T) {
	ts := startServer(t, config.Defaults{"client-output-buffer-limit": "normal 100mb 0 0"})
	m, c := ts.dial(), ts.dial()
	const source = "for i = 1, 3000 do redis.call('SET', KEYS[1], ARGV[1]) end return 5"
	value := strings.Repeat("v", 1000)
	require.Equal(t, "+OK", m.do("MONITOR"))
	require.Equal(t, ":5", c.eval(source, "1", "k", value))
	lines := m.monitoredUntil(`"PING"`, c)
	assert.Equal(t, `"EVAL"`, strings.Fields(lines[0])[0])
	assert.InDelta(t, 1000, len(lines), 100, "1 MB")

	require.Equal(t, "+OK", c.do("MULTI"))
	for range 3 {
		require.Equal(t, "+QUEUED", c.send(script, source, "1", "k", value))
	}
	require.Equal(t, "*3 :5 :5 :5", c.do("EXEC"))
	again := m.monitoredUntil(`"PING"`, c)
	assert.InDelta(t, len(lines), len(again), 20)
	assert.Equal(t, `"EXEC"`, again[len(again)-2])
	require.Equal(t, ":5", c.eval(source, "1", "k", value))
	assert.Len(t, m.monitoredUntil(`"PING"`, c), len(lines), "the next call has its own bound")
}

// monitoredUntil has another client send PING, and returns the calls that a monitor gets up to it.
func (c *testClient) monitoredUntil(last string, other *testClient) (lines []string) {
	require.Equal(c.t, "+PONG", other.do("PING"))
	for len(lines) == 0 || lines[len(lines)-1] != last {
		lines = append(lines, c.monitored(1)...)
	}
	return lines
}

// SWAPDB may change every key that a client has read.
func TestSwapDBTellsTrackers(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, tracker, bcast := ts.dial(), ts.tracker("NOLOOP"), ts.tracker("BCAST PREFIX k")
	c.pipe("SET k a", "SELECT 5", "SET k five", "SELECT 0")
	assert.Equal(t, ">2 $10 invalidate *1 $1 k ", bcast.read())
	assert.Equal(t, ">2 $10 invalidate *1 $1 k ", bcast.read())
	require.Equal(t, "$1 a", tracker.do("GET k"))
	require.Equal(t, "+OK", c.do("SWAPDB 0 5"))
	assert.Equal(t, ">2 $10 invalidate _ ", tracker.read())
	assert.Equal(t, ">2 $10 invalidate _ ", bcast.read())
	require.Equal(t, "$4 five", tracker.do("GET k"))
	require.Equal(t, "+OK", c.do("SET k 2"))
	assert.Equal(t, ">2 $10 invalidate *1 $1 k ", tracker.read(), "what was read again is tracked again")
}

// What all running scripts hold together is bounded, and INFO tells. A script that is refused costs
// the others nothing, and runs when they have ended.
func TestMemoryOfAllScriptsIsBounded(t *testing.T) {
	ts := startServer(t, config.Defaults{"lua-memory-limit": "8mb", "lua-memory-total": "8mb"})
	running, end := ts.running("local s = string.rep('x', 5000000) redis.call('SET', KEYS[1], 1) "+waits+"return #s",
		"1", "k")
	c := ts.dial()
	const source = "return #string.rep('x', 5000000)"
	got := c.eval(source, "1", "other")
	assert.Contains(t, got, "-ERR not enough memory: what all running scripts hold is limited by lua-memory-total")
	got = c.eval("return pcall(function() "+source+" end)", "1", "other")
	assert.Contains(t, got, "lua-memory-total", "pcall does not catch it")
	assert.Equal(t, ":5", c.eval("return 5", "1", "other"), "small ones run")
	assert.Equal(t, "8388608", c.field("lua_memory_total"))
	assert.Equal(t, "2", c.field("scripts_ended_for_memory"))
	assert.Greater(t, c.number("used_memory_vm_eval"), 5_000_000)
	end()
	assert.Equal(t, ":5000000", strings.TrimSpace(running.read()))
	assert.Equal(t, ":5000000", c.eval(source, "1", "other"))
	require.Eventually(t, func() bool { return c.number("used_memory_vm_eval") == 0 }, 10*time.Second, time.Millisecond)
}
