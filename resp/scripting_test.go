package resp

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/lua"
)

const script = "EVAL"

// eval sends a script, whose words have no spaces in c.do.
func (c *testClient) eval(source string, rest ...string) string {
	return c.send(append([]string{script, source}, rest...)...)
}

func TestScriptsUseDeclaredKeysOnly(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	got := c.eval("return redis.call('SET', 'other', 1)", "1", "k")
	assert.True(t, strings.HasPrefix(got, "-ERR the script uses the key 'other', which its call does not declare"), got)
	assert.Contains(t, got, "lua-undeclared-keys")
	assert.Equal(t, "$-1", c.do("GET other"))
	got = c.eval("return redis.call('DBSIZE')", "1", "k")
	assert.True(t, strings.HasPrefix(got, "-ERR this command uses all keys"), got)

	require.Equal(t, "+OK", c.do("CONFIG SET lua-undeclared-keys yes"))
	assert.Equal(t, "+OK", c.eval("return redis.call('SET', 'other', 1)", "0"))
	assert.Equal(t, ":1", c.eval("return redis.call('DBSIZE')", "0"))
}

// The calls of a script have the permissions of its user.
func TestScriptsHaveThePermissionsOfTheirUser(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	require.Equal(t, "+OK", c.do("ACL SETUSER u on nopass +eval +get ~a"))
	require.Equal(t, "+OK", c.do("AUTH u x"))
	const denied = "-ERR The user executing the script can't run this command or subcommand"
	assert.True(t, strings.HasPrefix(c.eval("return redis.call('SET', KEYS[1], 1)", "1", "a"), denied))
	assert.Equal(t, denied, c.eval("return redis.pcall('SET', KEYS[1], 1)", "1", "a"))
	assert.Equal(t, "-NOPERM this user has no permissions to access one of the keys used as arguments",
		c.eval("return 1", "1", "b"))
	assert.Equal(t, "$-1", c.eval("return redis.call('GET', KEYS[1])", "1", "a"))
}

// A script decides with limiters, sees one time, and is one step for others.
func TestScriptsCallLimiters(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	assert.Equal(t, ":2", c.eval("local n = 0 for i = 1, 3 do n = n + redis.call('RL.FIXED', KEYS[1], 2, '1m')[1] end "+
		"return n",
		"1", "f"))
	assert.Equal(t, "$1 1", c.eval("local a = redis.call('TIME') for i = 1, 1000 do end local b = redis.call('TIME') "+
		"return tostring(a[1] == b[1] and a[2] == b[2] and 1)", "0"))
}

// Others get BUSY on the keys of a script that runs for too long, and on no other.
func TestBusyScripts(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, other := ts.dial(), ts.dial()
	require.Equal(t, "+OK", c.do("CONFIG SET lua-time-limit 1"))
	assert.Equal(t, "-NOTBUSY No scripts in execution right now.", other.do("SCRIPT KILL"))
	const busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."

	ended := make(chan string)
	go func() { ended <- c.eval("while true do end", "1", "k") }()
	require.Eventually(t, func() bool { return other.do("GET k") == busy }, 10*time.Second, time.Millisecond)
	for _, name := range []string{"a", "b", beside(ts, "k")} {
		assert.Equal(t, "$-1", other.do("GET "+name))
	}
	for _, call := range []string{"DBSIZE", "SCAN 0", "KEYS *", "RANDOMKEY", "FLUSHALL"} {
		assert.Equal(t, busy, other.do(call))
	}
	require.Equal(t, "+OK", other.do("MULTI"))
	other.do("GET k")
	assert.Equal(t, "-EXECABORT Transaction discarded because of: "+busy[1:], other.do("EXEC"))
	require.Equal(t, "+OK", other.do("SCRIPT KILL"))
	assert.True(t, strings.HasPrefix(<-ended, "-ERR Script killed by user with SCRIPT KILL... script: "))
	assert.Equal(t, "$-1", other.do("GET k"))

	go func() {
		ended <- c.eval("redis.call('SET', KEYS[1], 1) for i = 1, 20000000 do end return 1", "1", "k")
	}()
	require.Eventually(t, func() bool {
		got := other.do("SCRIPT KILL")
		return strings.HasPrefix(got, "-UNKILLABLE ")
	}, 10*time.Second, time.Millisecond)
	assert.Equal(t, ":1", <-ended)
	assert.Equal(t, "$1 1", other.do("GET k"))
}

// A script that runs for too long delays nobody: neither those that stop watching its keys, nor
// calls that use all keys, nor evictions for keys of others.
func TestNobodyWaitsForABusyScript(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, other, watching, queued := ts.dial(), ts.dial(), ts.dial(), ts.dial()
	require.Equal(t, "+OK", other.do("CONFIG SET lua-time-limit 1"))
	for _, w := range []*testClient{watching, queued} {
		require.Equal(t, "+OK", w.do("WATCH k"))
	}
	require.Equal(t, "+OK", queued.do("MULTI"))
	ended := make(chan string)
	go func() { ended <- c.eval("while true do end", "1", "k") }()
	require.Eventually(t, func() bool { return strings.HasPrefix(other.do("GET k"), "-BUSY ") },
		10*time.Second, time.Millisecond)

	assert.Equal(t, "+OK", watching.do("UNWATCH"))
	assert.Equal(t, "+OK", queued.do("DISCARD"))
	for _, call := range []string{
		"ZUNIONSTORE k 1 a", "ZUNIONSTORE a 1 k", "BITOP AND a k", "COPY k a", "RL.TOP", "RL.POLICY SET p SLIDE 1 1s",
		"CLIENT PAUSE 1", "SAVE", "BGSAVE", "BGREWRITEAOF", "DEBUG RELOAD",
	} {
		assert.Contains(t, other.do(call), "-BUSY ", "%s", call)
	}
	require.Equal(t, "+OK", other.do("CONFIG SET maxmemory-policy allkeys-lru"))
	require.Equal(t, "+OK", other.do("CONFIG SET maxmemory 1"))
	for i := range 100 {
		assert.NotContains(t, other.do(fmt.Sprint("SET ", i, " 1")), "BUSY")
	}
	require.Equal(t, "+OK", other.do("CONFIG SET maxmemory 0"))
	require.Equal(t, "+OK", other.do("SCRIPT KILL"))
	<-ended
	assert.Equal(t, "+OK", watching.do("SET k 1"))
	require.Equal(t, "+OK", queued.do("MULTI"))
	assert.Equal(t, "*0", queued.do("EXEC"))
}

// Scripts that came with EVAL are bounded in number, and all of them in memory: those used last
// stay.
func TestScriptsAreBounded(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	loaded := strings.TrimPrefix(c.send("SCRIPT", "LOAD", "return 'loaded'"), "$40 ")
	c.eval("return 'first'", "0")
	first := lua.SHA1("return 'first'")
	for i := range 600 {
		require.Equal(t, ":1", c.eval(fmt.Sprint("return 1 -- ", i), "0"))
	}
	scripts, _, dropped := ts.Engine.Scripts.Size()
	assert.Equal(t, 501, scripts)
	assert.Equal(t, int64(101), dropped)
	assert.Equal(t, "-NOSCRIPT No matching script. Please use EVAL.", c.do("EVALSHA "+first+" 0"))
	assert.Equal(t, "$6 loaded", c.do("EVALSHA "+loaded+" 0"))
	assert.Contains(t, c.do("INFO memory"), "number_of_cached_scripts:501")

	require.Equal(t, "+OK", c.do("CONFIG SET lua-cache-limit 1mb"))
	for i := range 600 {
		c.send("SCRIPT", "LOAD", fmt.Sprint("return 2 -- ", i))
	}
	_, bytes, _ := ts.Engine.Scripts.Size()
	assert.Less(t, bytes, int64(1<<20))
	assert.Contains(t, c.do("EVALSHA "+loaded+" 0"), "-NOSCRIPT")
	assert.Equal(t, ":2", c.do("EVALSHA "+lua.SHA1("return 2 -- 599")+" 0"))
	require.Equal(t, "+OK", c.do("SCRIPT FLUSH"))
	assert.Contains(t, c.do("EVALSHA "+lua.SHA1("return 2 -- 599")+" 0"), "-NOSCRIPT")
}

// A call that is refused leaves nothing for the next one: EXEC runs the scripts that were queued.
func TestRefusedScriptsAreNotRunByEXEC(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	replies := ts.dial().pipe("EVAL return'refused' x", "MULTI", "EVAL return'queued' 0", "EXEC")
	require.Len(t, replies, 4)
	assert.Equal(t, "-ERR value is not an integer or out of range", replies[0])
	assert.Equal(t, "*1 $6 queued", replies[3])
}

// What a script changes is one record, and takes memory until the script ends: that is bounded,
// also within pcall. As in Redis, what was changed before the error stays.
func TestScriptsThatWriteWithoutEndAreEnded(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	require.Equal(t, "+OK", c.do("CONFIG SET lua-memory-limit 1mb"))
	for _, call := range []string{"call", "pcall"} {
		got := c.eval("local x = string.rep('x', 10000) while true do redis."+call+"('APPEND', KEYS[1], x) end",
			"1", call)
		assert.Contains(t, got, "-ERR the script changes too much: ")
		assert.Contains(t, got, "lua-memory-limit", "which bounds it")
		length := c.do("STRLEN " + call)
		assert.Len(t, length, len(":1050000"), "what was changed stays: %s", length)
	}
	assert.Equal(t, ":1", c.eval("for i = 1, 10 do redis.call('SET', KEYS[1], string.rep('x', 10000)) end return 1",
		"1", "k"))
}

// The reply of a command that a script calls takes memory before the script has its values, also
// if it does not want them. A script that it is too large for ends, also within pcall.
func TestRepliesOfCommandsCountAsMemoryOfTheirScripts(t *testing.T) {
	ts := startServer(t, config.Defaults{"lua-memory-limit": "1mb"})
	c := ts.dial()
	element := strings.Repeat("x", 1000)
	for i := range 1200 {
		c.pipe("RPUSH list "+element+fmt.Sprint(i), "SADD set "+element+fmt.Sprint(i),
			"ZADD zset 1 "+element+fmt.Sprint(i), "HSET hash "+element+fmt.Sprint(i)+" 1",
			"MSET "+element+fmt.Sprint(i)+" 1")
	}
	c.send("SET", "string", strings.Repeat("x", 2<<20))
	const tooLarge = "-ERR not enough memory: what a script holds is limited by lua-memory-limit script: "
	for _, call := range []string{"LRANGE', 'list', 0, -1", "SMEMBERS', 'set'", "ZRANGE', 'zset', 0, -1",
		"HKEYS', 'hash'", "GET', 'string'", "KEYS', '*'", "SUNION', 'set', 'none'", "SORT', 'list', 'ALPHA'"} {
		require.Equal(t, "+OK", c.do("CONFIG SET lua-undeclared-keys yes"))
		for _, how := range []string{"redis.call('", "redis.pcall('", "pcall(redis.call, '"} {
			got := c.eval(how+call+") return 1", "0")
			assert.Contains(t, got, tooLarge, how+call)
		}
	}
	assert.Contains(t, c.eval("redis.pcall('LPOP', 'list', 2000) return 1", "0"), tooLarge)
	assert.Equal(t, ":0", c.do("LLEN list"), "the command has run")
	assert.Equal(t, ":1000", c.eval("local n = 0 for i = 0, 999 do n = n + #redis.call('ZRANGE', 'zset', i, i) end "+
		"return n", "0"), "small ones are many")
	assert.Equal(t, "25", c.field("scripts_ended_for_memory"))
	require.Equal(t, ":2", c.do("DEL set hash"))

	require.Equal(t, "+OK", c.do("CONFIG SET lua-memory-limit 8mb"))
	require.Equal(t, "+OK", c.do("CONFIG SET lua-memory-total 1mb"))
	assert.Contains(t, c.eval("redis.pcall('GET', 'string') return 1", "0"),
		"-ERR not enough memory: what all running scripts hold is limited by lua-memory-total")
	require.Equal(t, "+OK", c.do("CONFIG SET lua-memory-total 8mb"))
	assert.Equal(t, ":2097152", c.eval("redis.call('GET', 'string') return #redis.call('GET', 'string')", "0"))
	assert.Zero(t, c.number("used_memory_vm_eval"))
}

// failing is a journal whose disk fails when it gets the second change: the first is the script.
type failing struct {
	*slowJournal
	store *commandtest.Store
}

func (j failing) Append(now int64, effects []byte) engine.Position {
	at := j.slowJournal.Append(now, effects)
	if at == 1 {
		j.sync()
		return at
	}
	j.fail(commandtest.ErrDisk)
	why := "the disk fails"
	j.store.Why.Store(&why)
	return at
}

// A script that has changed something when the disk fails gets the error of a call that writes, and
// the next one is refused.
func TestScriptsThatWriteWhileTheDiskFails(t *testing.T) {
	store := new(commandtest.Store)
	ts := startServer(t, config.Defaults{}, func(o *Options) {
		o.Store, o.Journal = store, failing{newSlowJournal(), store}
		o.Engine = engine.New(engine.Options{Journal: o.Journal})
	})
	c := ts.dial()
	const lost = "-MISCONF the changes of this call, or those that it shows, may be lost: "
	assert.Contains(t, c.eval("return redis.call('SET', KEYS[1], 1)", "1", "k"), lost)
	assert.Contains(t, c.eval("return redis.call('SET', KEYS[1], 1)", "1", "j"), "-MISCONF the disk fails script: ")
	assert.Contains(t, c.eval("return redis.call('GET', KEYS[1])", "1", "k"),
		"-MISCONF what this would read is not on the disk: ")
	assert.Equal(t, ":1", c.eval("return 1", "1", "j"))
}

// CLIENT PAUSE WRITE holds back scripts that may write, also within EXEC, and messages.
func TestPauseHoldsScriptsAndMessages(t *testing.T) {
	for _, calls := range []string{
		"EVALSHA " + strings.Repeat("f", 40) + " 0", "EVAL return'x' 0", "MULTI\nEVAL return'x' 0\nEXEC",
		"PUBLISH c m", "SPUBLISH c m", "MULTI\nPUBLISH c m\nEXEC",
	} {
		inBubble(t, func(t *testing.T, b *bubble) {
			queued := ""
			if before, call, found := strings.Cut(calls, "\nEXEC"); found {
				queued, calls = before, "EXEC"+call
			}
			held := b.Calls("held", "PING\n"+queued)
			b.Calls("admin", "CLIENT PAUSE 1000 WRITE")
			b.Replies()
			held.Call(calls)
			b.Calls("reader", "EVAL_RO return'x' 0\nPUBSUB NUMPAT")
			assert.Equal(t, []string{"0 reader $1 x", "0 reader :0"}, b.Replies(), calls)
			time.Sleep(time.Second)
			replies := b.Replies()
			require.Len(t, replies, 1, calls)
			assert.True(t, strings.HasPrefix(replies[0], "1000 held "), replies[0])
		})
	}
}

// CLIENT PAUSE WRITE does not hold back scripts that declare to write nothing, also if they do not
// compile and within EXEC, as in Redis. A new one is not kept: that would be a change.
func TestPauseLetsScriptsRunThatDeclareNoWrites(t *testing.T) {
	const ro, other, allowOOM = "#!lua flags=no-writes\n", "return 'y'", "#!lua flags=allow-oom\nreturn 'x'"
	const publishes = ro + "return redis.call('PUBLISH', 'a', 'b')"
	sha := lua.SHA1(ro + "return 'x'")
	exists := []string{"SCRIPT", "EXISTS", lua.SHA1(ro + other)}
	inBubble(t, func(t *testing.T, b *bubble) {
		send := func(name string, calls ...[]string) {
			c, text := b.Caller(name), ""
			for _, words := range calls {
				text += commandtest.Frame(words...)
			}
			go io.WriteString(c, text)
			synctest.Wait()
		}
		send("c", []string{"SCRIPT", "LOAD", ro + "return 'x'"})
		b.Calls("admin", "CLIENT PAUSE 1000 WRITE")
		b.Replies()
		send("runs", []string{"EVALSHA", strings.ToUpper(sha), "0"}, []string{"EVAL", ro + other, "0"},
			[]string{"EVAL", ro + "retu", "0"}, []string{"MULTI"}, []string{"EVALSHA", sha, "0"},
			[]string{"EVAL", ro + "return 'x'", "0"}, []string{"EXEC"}, []string{"EVAL", publishes, "0"}, exists)
		send("waits1", []string{"EVAL", allowOOM, "0"})
		send("waits2", []string{"EVAL_RO", allowOOM, "0"})
		send("waits3", []string{"EVAL", "#!lua\nreturn 'x'", "0"})
		send("waits4", []string{"MULTI"}, []string{"EVAL", ro + "return 'x'", "0"}, []string{"SET", "k", "v"},
			[]string{"EXEC"})
		assert.Equal(t, []string{
			"0 runs $1 x", "0 runs $1 y",
			"0 runs -ERR Error compiling script (new function): user_script:2: '=' expected near '<eof>'",
			"0 runs +OK", "0 runs +QUEUED", "0 runs +QUEUED", "0 runs *2 $1 x $1 x",
			"0 runs -ERR Write commands are not allowed from read-only scripts. script: " +
				lua.SHA1(publishes) + ", on @user_script:2.",
			"0 runs *1 :0", "0 waits4 +OK", "0 waits4 +QUEUED",
		}, b.Replies())
		time.Sleep(time.Second)
		assert.Equal(t, []string{
			"1000 waits1 $1 x", "1000 waits2 -ERR Can not execute a script with write flag using *_ro command.",
			"1000 waits3 $1 x", "1000 waits4 +QUEUED", "1000 waits4 *2 $1 x +OK",
		}, b.Replies())
		send("c", []string{"EVAL", ro + other, "0"}, exists)
		assert.Equal(t, []string{"1000 c $1 y", "1000 c *1 :1"}, b.Replies())
	})
}

// The user of a script that publishes needs the channel.
func TestScriptsPublishAsTheirUser(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	require.Equal(t, "+OK", c.do("ACL SETUSER u on nopass +@all resetchannels &news"))
	require.Equal(t, "+OK", c.do("AUTH u x"))
	assert.Equal(t, ":0", c.eval("return redis.pcall('PUBLISH', 'news', 'm')", "0"))
	assert.Equal(t, "-ERR The user executing the script can't publish to the channel mentioned in the command",
		c.eval("return redis.pcall('PUBLISH', 'other', 'm')", "0"))
}

// In a cluster a transaction may have scripts without keys. One that was lost on its way may have
// changed something, and so may SCRIPT LOAD and SCRIPT FLUSH.
func TestScriptsInAClusterWithoutKeys(t *testing.T) {
	f, ts := newFakeCluster(t)
	c := ts.dial()
	assert.Equal(t, []string{"+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*3 $1 a +OK $1 b"},
		c.pipe("MULTI", "EVAL_RO return'a' 0", "SET k 1", "EVAL return'b' 0", "EXEC"))
	for _, call := range []string{"SCRIPT LOAD return'c'", "SCRIPT FLUSH"} {
		assert.Contains(t, f.lose(c, call)[0], uncertain, call)
	}
	assert.Contains(t, f.lose(c, "SCRIPT EXISTS x")[0], changedNothing)
}

// SHUTDOWN NOSAVE does not wait for a script that runs for too long.
func TestShutdownNosaveWaitsForNoScript(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, other := ts.dial(), ts.dial()
	require.Equal(t, "+OK", other.do("CONFIG SET lua-time-limit 1"))
	c.Write([]byte(frame(script, "while true do end", "1", "k")))
	require.Eventually(t, func() bool { return strings.HasPrefix(other.do("GET k"), "-BUSY ") },
		10*time.Second, time.Millisecond)
	other.Write([]byte("SHUTDOWN NOSAVE\r\n"))
	<-ts.ShutdownRequested()
	assert.Equal(t, 1, ts.Shutdown(t.Context()), "the script's client")
	require.Eventually(t, func() bool { return ts.Scripts.Busy() == 0 }, 10*time.Second, time.Millisecond)
}

// SCRIPT SHOW returns the text of a script that is known.
func TestScriptShow(t *testing.T) {
	c := startServer(t, config.Defaults{}).dial()
	c.eval("return 'shown'", "0")
	sha := lua.SHA1("return 'shown'")
	assert.Equal(t, "$14 return 'shown'", c.do("SCRIPT SHOW "+sha))
	assert.Equal(t, "$14 return 'shown'", c.do("SCRIPT SHOW "+strings.ToUpper(sha)))
	assert.Equal(t, "-NOSCRIPT No matching script. Please use EVAL.", c.do("SCRIPT SHOW x"))
	assert.Contains(t, c.do("SCRIPT HELP"), "SHOW sha1")
	assert.Contains(t, c.do("SCRIPT SHOW"), "-ERR wrong number of arguments for 'script|show' command")
}

// An error of a call counts once, whether the script fails with it, returns it or ignores it.
func TestErrorsOfScriptsCountOnce(t *testing.T) {
	for source, failed := range map[string]int{
		"return redis.call('INCR', KEYS[1])":              1,
		"return redis.pcall('INCR', KEYS[1])":             1,
		"redis.pcall('INCR', KEYS[1]) return 1":           0,
		"return redis.error_reply('OTHER of the script')": 1,
	} {
		ts := startServer(t, config.Defaults{})
		c := ts.dial()
		require.Equal(t, "+OK", c.do("SET k x"))
		c.eval(source, "1", "k")
		assert.Equal(t, "1", c.field("total_error_replies"), source)
		stats := c.do("INFO commandstats")
		at := strings.Index(stats, "cmdstat_eval:")
		require.Positive(t, at)
		line, _, _ := strings.Cut(stats[at:], " ")
		assert.Contains(t, line, fmt.Sprint("failed_calls=", failed), source)
		for code, n := range ts.Stats.Errors.Snapshot() {
			assert.EqualValues(t, 1, n, "%s: %v", source, code)
		}
	}
}

// A call that waits for a key ends with its timeout, and with its client, while a script holds the
// key for long.
func TestWaitingCallsEndDuringScripts(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, other, popping, waiting, gone := ts.dial(), ts.dial(), ts.dial(), ts.dial(), ts.dial()
	require.Equal(t, "+OK", other.do("CONFIG SET lua-time-limit 1"))
	for _, w := range []*testClient{popping, gone} {
		w.Write([]byte("BLPOP {k} 0.3\r\n"))
	}
	waiting.Write([]byte("BLPOP {k} 100\r\n"))
	require.Eventually(t, func() bool { return ts.queues.Waiting.Load() == 3 }, 10*time.Second, time.Millisecond)
	c.Write([]byte(frame(script, "while true do end", "1", "{k}")))
	require.Eventually(t, func() bool { return strings.HasPrefix(other.do("GET {k}"), "-BUSY ") },
		10*time.Second, time.Millisecond)
	gone.Close()
	ts.advance(5000)
	assert.Equal(t, "*-1", strings.TrimSpace(popping.read()))
	require.Eventually(t, func() bool { return ts.queues.Waiting.Load() == 1 }, 10*time.Second, time.Millisecond)
	require.Equal(t, "+OK", other.do("SCRIPT KILL"))
	assert.Contains(t, c.read(), "SCRIPT KILL")
	assert.Equal(t, ":1", other.do("LPUSH {k} x"))
	assert.Equal(t, "*2 $3 {k} $1 x", strings.TrimSpace(waiting.read()))
	require.Eventually(t, func() bool { return ts.queues.Len() == 0 }, 10*time.Second, time.Millisecond)
}

// A call that waits for a limit gets BUSY at its timeout if a script holds the key for long: it is
// not charged, and those behind it are admitted in their order when the script ends. One that only
// waits behind a call on the key is denied.
func TestWaitingLimitersEndDuringScripts(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	other := ts.dial()
	wait := func(n int64, call string) *testClient {
		c := ts.dial()
		c.Write([]byte(call + "\r\n"))
		require.Eventually(t, func() bool { return ts.queues.Waiting.Load() == n }, 10*time.Second, time.Millisecond)
		return c
	}
	require.Equal(t, "+OK", other.do("CONFIG SET lua-time-limit 1"))
	for _, key := range []string{"{k}", "{k}l"} {
		require.Contains(t, other.do("RL.SLIDE "+key+" 1 200ms"), "*5 :1")
	}
	first := wait(1, "RL.SLIDE {k} 1 200ms WAIT 300ms")
	second := wait(2, "RL.ALL {k} SLIDE 1 200ms {k}l SLIDE 1 200ms WAIT 1h")
	third := wait(3, "RL.SLIDE {k} 1 200ms WAIT 1h")
	behind := wait(4, "RL.SLIDE {k}l 1 200ms WAIT 300ms")
	running := ts.dial()
	running.Write([]byte(frame(script, "while true do end", "1", "{k}")))
	require.Eventually(t, func() bool { return strings.HasPrefix(other.do("GET {k}"), "-BUSY ") },
		10*time.Second, time.Millisecond)
	ts.advance(5000)
	assert.Contains(t, first.read(), "-BUSY ")
	assert.Contains(t, behind.read(), "*5 :0 :1 ")
	require.Eventually(t, func() bool { return ts.queues.Waiting.Load() == 2 }, 10*time.Second, time.Millisecond)
	require.Equal(t, "+OK", other.do("SCRIPT KILL"))
	assert.Contains(t, running.read(), "SCRIPT KILL")
	assert.Contains(t, second.read(), "*6 :1 :1 :0 ")
	assert.Equal(t, ":1", other.do("ZCARD {k}"))
	assert.EqualValues(t, 1, ts.queues.Waiting.Load())
	ts.advance(200)
	assert.Contains(t, third.read(), "*5 :1 :1 :0 ")
	require.Eventually(t, func() bool { return ts.queues.Len() == 0 }, 10*time.Second, time.Millisecond)
}

// During a pause no call that waits is charged: neither if CLIENT UNBLOCK ends its waiting, nor if
// its timeout ends while a script takes long.
func TestWaitingLimitersAreNotChargedDuringAPause(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, unblocked, waiting := ts.dial(), ts.dial(), ts.dial()
	require.Equal(t, "+OK", c.do("CONFIG SET lua-time-limit 1"))
	for i, w := range []*testClient{unblocked, waiting} {
		key := fmt.Sprint("k", i)
		require.Contains(t, c.do("RL.SLIDE "+key+" 1 1ms"), "*5 :1")
		w.Write([]byte("RL.SLIDE " + key + " 1 1ms WAIT 1ms\r\n"))
		require.Eventually(t, func() bool { return ts.queues.Waiting.Load() == int64(i)+1 },
			10*time.Second, time.Millisecond)
	}
	require.Equal(t, "+OK", c.do("CLIENT PAUSE 1000000 WRITE"))
	ts.advance(1)
	require.Equal(t, ":1", c.do("CLIENT UNBLOCK 2 TIMEOUT"))
	assert.Equal(t, "-UNBLOCKED client unblocked via CLIENT UNBLOCK", strings.TrimSpace(unblocked.read()))

	running := ts.dial()
	running.Write([]byte(frame("EVAL_RO", "while true do end", "1", "other")))
	require.Eventually(t, func() bool { return strings.HasPrefix(c.do("GET other"), "-BUSY ") },
		10*time.Second, time.Millisecond)
	ts.advance(5000)
	time.Sleep(1100 * time.Millisecond) // when it would end behind a script
	assert.Equal(t, ":0", c.do("EXISTS k0 k1"))
	require.Equal(t, "+OK", c.do("CLIENT UNPAUSE"))
	assert.Contains(t, waiting.read(), "*5 :1 :1 :0 ")
	require.Equal(t, "+OK", c.do("SCRIPT KILL"))
	assert.Contains(t, running.read(), "SCRIPT KILL")
}

// untilEnded is a script that changes its keys, and ends when there is a subscriber.
const untilEnded = `for i = 1, #KEYS do redis.call('SET', KEYS[i], 'half') end
while redis.call('PUBSUB', 'NUMSUB', 'end')[2] == 0 do end
for i = 1, #KEYS do redis.call('SET', KEYS[i], 'done') end return #KEYS`

// beside returns a key in the shard of another.
func beside(ts *testServer, name string) string {
	for i := 0; ; i++ {
		other := fmt.Sprint("beside", i)
		if ts.Engine.Key([]byte(other)).Hash>>58 == ts.Engine.Key([]byte(name)).Hash>>58 {
			return other
		}
	}
}

// Others wait for the keys of a script that takes long, but not for other keys, whatever shard they
// are in, and see all of its changes or none. So does EXEC.
func TestOthersWaitForTheKeysOfAScriptOnly(t *testing.T) {
	for _, exec := range []bool{false, true} {
		ts := startServer(t, config.Defaults{})
		c, other := ts.dial(), ts.dial()
		call := frame(script, untilEnded, "2", "a", "b")
		if exec {
			require.Equal(t, "+OK", c.do("MULTI"))
			require.Equal(t, "+QUEUED", c.send("SET", "c", "before"))
			require.Equal(t, "+QUEUED", c.send(script, untilEnded, "2", "a", "b"))
			require.Equal(t, "+QUEUED", c.send(script, untilEnded, "1", "c"))
			call = frame("EXEC")
		}
		c.Write([]byte(call))
		require.Eventually(t, func() bool { return ts.Engine.Holds.Len() > 0 }, 10*time.Second, time.Millisecond)
		for _, name := range []string{"a", "b"} {
			assert.Equal(t, "+OK", other.do("SET "+beside(ts, name)+" 1"))
			assert.Equal(t, "$1 1", other.do("GET "+beside(ts, name)))
			assert.Equal(t, ":1", other.eval("return #redis.call('GET', KEYS[1])", "1", beside(ts, name)))
		}
		var waiting []*testClient
		for _, call := range []string{"MGET a b", "DBSIZE", "SCAN 0 COUNT 100", "KEYS ?", "WATCH a", "SETNX b 1"} {
			w := ts.dial()
			waiting = append(waiting, w)
			w.Write([]byte(call + "\r\n"))
		}
		other.do("SUBSCRIBE end")
		if exec {
			assert.Equal(t, "*3 +OK :2 :1", strings.TrimSpace(c.read()))
		} else {
			assert.Equal(t, ":2", strings.TrimSpace(c.read()))
		}
		assert.Equal(t, "*2 $4 done $4 done", strings.TrimSpace(waiting[0].read()))
		keys := map[bool]string{false: ":4", true: ":5"}[exec]
		assert.Equal(t, keys, strings.TrimSpace(waiting[1].read()))
		for _, w := range waiting[2:4] {
			list := w.read()
			assert.Contains(t, list, " a")
			assert.Contains(t, list, " b")
		}
		assert.Equal(t, "+OK", strings.TrimSpace(waiting[4].read()))
		assert.Equal(t, ":0", strings.TrimSpace(waiting[5].read()))
	}
}
