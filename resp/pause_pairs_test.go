package resp

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/lua"
)

// What a client does that does not read, that is paused, or that is killed, beside other parts.

// A client that does not read its replies waits alone: its messages, and those of others, are
// delivered.
func TestUnreadRepliesDelayNoMessages(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, slow, subscriber := ts.dial(), ts.dial(), ts.dial()
	require.Equal(t, "+OK", c.send("SET", "big", strings.Repeat("x", 9<<20)))
	require.Equal(t, "*3 $9 subscribe $4 news :1", subscriber.do("SUBSCRIBE news"))
	io.WriteString(slow, frame("GET", "big")+frame("PUBLISH", "news", "mine")+frame("GET", "big")+frame("PING"))
	assert.Equal(t, "*3 $7 message $4 news $4 mine ", subscriber.read())
	for i := range 200 { // more than may wait for a delivery
		require.Equal(t, ":1", c.send("PUBLISH", "news", strings.Repeat("y", 10_000)), "message %d", i)
		require.Len(t, subscriber.read(), len("*3 $7 message $4 news $10000  ")+10_000)
	}
}

// A paused client may leave, whatever its replies were.
func TestAPausedClientMayLeave(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	require.Equal(t, "+OK", c.send("SET", "big", strings.Repeat("x", 20_000)))
	require.Equal(t, "+OK", c.do("CLIENT PAUSE 1000000 WRITE"))
	for _, kill := range []bool{false, true} {
		for _, mode := range []string{"SKIP", "OFF"} {
			held := ts.dial()
			id := strings.TrimPrefix(held.do("CLIENT ID"), ":")
			io.WriteString(held, frame("GET", "big")+frame("CLIENT", "REPLY", mode)+frame("SET", "k", "1"))
			require.Len(t, held.read(), len("$20000  ")+20_000)
			require.Eventually(t, func() bool { return ts.held.Load() == 1 }, time.Minute, time.Millisecond)
			if kill {
				require.Equal(t, ":1", c.do("CLIENT KILL ID "+id))
			} else {
				held.Close()
			}
			require.Eventually(t, func() bool { return ts.held.Load() == 0 }, time.Minute, time.Millisecond)
			assert.Equal(t, "+PONG", c.do("PING"))
		}
	}
	assert.Equal(t, ":0", c.do("EXISTS k"))
}

// EXEC that waits for the key of a script changes nothing after the reply of CLIENT PAUSE, and
// keeps its calls.
func TestPauseHoldsExecThatWaitsForLocks(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, exec := ts.dial(), ts.dial()
	script, end := ts.running(waits, "1", "k")
	io.WriteString(exec, frame("INCR", "n")+frame("MULTI")+frame("SET", "k", "v")+frame("EXEC"))
	c.eventually("EXEC runs", func() bool { return strings.Contains(c.do("CLIENT LIST"), "cmd=exec") })
	io.WriteString(c, frame("CLIENT", "PAUSE", "1000000", "WRITE"))
	require.Eventually(t, func() bool { return ts.paused.Load() != nil }, time.Minute, time.Millisecond)
	end()
	require.Equal(t, "$-1 ", script.read())
	require.Equal(t, "+OK ", c.read())
	require.Eventually(t, func() bool { return ts.held.Load() == 1 }, time.Minute, time.Millisecond)
	for _, earlier := range []string{":1 ", "+OK ", "+QUEUED "} { // they need not wait
		require.Equal(t, earlier, exec.read())
	}
	assert.Equal(t, ":0", c.do("EXISTS k"))
	io.WriteString(exec, frame("ECHO", strings.Repeat("x", 100)))
	require.Equal(t, "+OK", c.do("CLIENT UNPAUSE"))
	assert.Equal(t, "*1 +OK ", exec.read())
	assert.Contains(t, exec.read(), "xxx")
	assert.Equal(t, "$1 v", c.do("GET k"))
}

// The timeout of a pop ends it also in a pause, within a second.
func TestPopsEndInAPause(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.Calls("pop", "BLPOP l 2")
		b.Calls("limiter", "RL.SLIDE s 1 1h\nRL.SLIDE s 1 1h WAIT 2s")
		b.Calls("admin", "CLIENT PAUSE 10000 WRITE")
		b.Replies()
		time.Sleep(9 * time.Second)
		assert.Equal(t, []string{"3000 pop *-1"}, b.Replies())
	})
}

// Nothing of a client's pipeline runs after it was killed.
func TestAKilledClientRunsNothingMore(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	killed := ts.dial()
	id := strings.TrimPrefix(killed.do("CLIENT ID"), ":")
	io.WriteString(killed, frame(script, waits, "1", "k")+frame("INCR", "n")+frame("INCR", "n"))
	require.Eventually(t, func() bool { return ts.Engine.Holds.Len() > 0 }, time.Minute, time.Millisecond)
	require.Equal(t, ":1", c.do("CLIENT KILL ID "+id))
	require.Equal(t, "*3 $9 subscribe $3 end :1", ts.dial().do("SUBSCRIBE end"))
	c.eventually("it has left", func() bool { return c.number("connected_clients") == 2 })
	assert.Equal(t, ":0", c.do("EXISTS n"))
}

// TIME is never the same for two clients or scripts, as scripts name members of sorted sets after
// it, and always the same within a script.
func TestTimeIsUnique(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	seen := make(map[string]bool)
	for range 100 {
		for _, text := range []string{
			c.do("TIME"), c.eval("local a, b = redis.call('TIME'), redis.call('TIME') "+
				"assert(a[1] == b[1] and a[2] == b[2]) return a", "0"),
		} {
			require.True(t, strings.HasPrefix(text, fmt.Sprintf("*2 $10 %d $", testStart/1000)), text)
			require.False(t, seen[text], text)
			seen[text] = true
		}
	}
}

// An override that needs memory gets it by eviction, like a key.
func TestOverridesEvictKeys(t *testing.T) {
	ts := startServer(t, config.Defaults{"maxmemory": "1mb", "maxmemory-policy": "allkeys-lru"})
	c := ts.dial()
	require.Equal(t, "+OK", c.do("RL.POLICY SET p SLIDE 5 1m"))
	for i := range 200 {
		require.Equal(t, "+OK", c.send("SET", fmt.Sprint("k", i), strings.Repeat("x", 10_000)))
		require.Equal(t, "+OK", c.do(fmt.Sprint("RL.POLICY SET p SLIDE 6 1m FOR ", i)))
	}
}

// A fault outside of a call ends the connection alone.
func TestASessionThatPanicsEndsItsConnection(t *testing.T) {
	command.Table["test.fault"] = &command.Command{Name: "test.fault", Arity: 1, Run: func(c *command.Call) error {
		s := sessionOf(c)
		s.replyStart, s.replyMode = 1<<30, replySkipThis
		return nil
	}}
	defer delete(command.Table, "test.fault")
	ts := startServer(t, config.Defaults{})
	c, other := ts.dial(), ts.dial()
	io.WriteString(c, frame("SET", "k", "1")+frame("TEST.FAULT"))
	c.requireClosed()
	assert.Equal(t, "+OK", other.do("SET k 2"))
	other.eventually("it has left", func() bool { return other.number("connected_clients") == 1 })
}

// A client with tracking whose call is held back hears of changes meanwhile.
func TestAPausedClientHearsOfChanges(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, held := ts.dial(), ts.dial()
	require.Contains(t, held.do("HELLO 3"), "proto :3")
	require.Equal(t, "+OK", held.do("CLIENT TRACKING ON"))
	require.Equal(t, "+OK", held.do("SET cached 1 PX 1000"))
	require.Equal(t, "$1 1", held.do("GET cached"))
	require.Equal(t, "+OK", c.do("CLIENT PAUSE 1000000 WRITE"))
	io.WriteString(held, frame("SET", "k", "v"))
	require.Eventually(t, func() bool { return ts.held.Load() == 1 }, time.Minute, time.Millisecond)
	defer ts.Engine.DeleteExpired(func() error { return nil })()
	ts.now.Add(1001)
	require.Equal(t, "$-1", c.do("GET cached"))
	assert.Equal(t, ">2 $10 invalidate *1 $6 cached ", held.read())
	require.Equal(t, "+OK", c.do("CLIENT UNPAUSE"))
	assert.Equal(t, "+OK ", held.read())
}

// SCRIPT LOAD that still compiles when a pause begins adds its script after the pause.
func TestPauseHoldsScriptsThatAreCompiled(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, loads := ts.dial(), ts.dial()
	text := "return 1 --" + strings.Repeat("x", 20<<10) // compiled one at a time
	ts.Env.Scripts.Compiling.Lock()
	io.WriteString(loads, frame("SCRIPT", "LOAD", text))
	c.eventually("it compiles", func() bool { return strings.Contains(c.do("CLIENT LIST"), "cmd=script|load") })
	require.Equal(t, "+OK", c.do("CLIENT PAUSE 1000000 WRITE"))
	ts.Env.Scripts.Compiling.Unlock()
	require.Eventually(t, func() bool { return ts.held.Load() == 1 }, time.Minute, time.Millisecond)
	sha := lua.SHA1(text)
	assert.Equal(t, "*1 :0", c.do("SCRIPT EXISTS "+sha))
	require.Equal(t, "+OK", c.do("CLIENT UNPAUSE"))
	assert.Equal(t, "$40 "+sha+" ", loads.read())
	assert.Equal(t, "*1 :1", c.do("SCRIPT EXISTS "+sha))
}

// EXEC runs nothing if a watched key was written, also if it holds what it held.
func TestWatchNoticesAWriteOfTheSame(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, other := ts.dial(), ts.dial()
	require.Equal(t, "+OK", c.do("MSET s v n 0"))
	require.Equal(t, ":1", c.do("HSET h f v"))
	for _, write := range []string{"SET s v", "APPEND s ", "INCRBY n 0", "HSET h f v", "PEXPIREAT s 99999999999999"} {
		require.Equal(t, ":1", c.do("PEXPIREAT s 99999999999999"))
		require.Equal(t, "+OK", c.do("WATCH s n h"))
		require.NotContains(t, other.send(strings.Split(write, " ")...), "-ERR")
		require.Equal(t, "+OK", c.do("MULTI"))
		assert.Equal(t, "*-1", c.do("EXEC"), write)
	}
	require.Equal(t, "+OK", c.do("WATCH s n h"))
	require.Equal(t, ":0", other.do("HDEL h none"))
	require.Equal(t, "+OK", c.do("MULTI"))
	assert.Equal(t, "*0", c.do("EXEC"))
}
