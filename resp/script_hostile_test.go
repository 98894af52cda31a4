package resp

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/lua"
)

// hostile are scripts that are wrong or take too much, and a part of their errors. "KILL": they end
// by SCRIPT KILL only.
var hostile = map[string][]string{
	"-ERR Error compiling script (new function): user_script:1: ": {
		"if then", "return (", "x = = 1", strings.Repeat("(", 30_000), "return " + strings.Repeat("{", 30_000),
		"return " + strings.Repeat("not ", 30_000) + "1",
		strings.Repeat("do ", 30_000) + strings.Repeat("end ", 30_000),
	},
	"KILL": {
		"while true do end", "while true do pcall(function() while true do end end) end",
		"repeat pcall(error, {}) until false", "while true do redis.pcall('GET', KEYS[1]) end",
		"while true do redis.pcall('TIME') end", "while true do redis.log(0, 'x') end",
		"return string.gsub(string.rep('a', 200000), '.-b', '')",
		"while true do loadstring('return ' .. math.random()) end",
		"while true do redis.sha1hex(string.rep('x', 10000)) end",
	},
	"-ERR not enough memory: what a script holds is limited by lua-memory-limit": {
		"return string.rep('x', 1e9)", "return ('x'):rep(1e9)", "local t = {} while true do t[#t + 1] = {} end",
		"local s = 'x' while true do s = s .. s end", "local t = {} t[4000000] = 1",
		"local s = 'x' while true do s = s:gsub('.', '%0%0') end",
		"local t = {'x'} while true do t[1] = table.concat({t[1], t[1]}) end",
		"local s = 'x' while true do s = cjson.encode({s, s}) end",
		"local s = 'x' while true do s = cmsgpack.pack(s, s) end",
		"return struct.pack('c0c0', ('x'):rep(900000), ('y'):rep(900000))",
	},
	"stack": {
		"local t = {} t[1] = t return t", "local function f() return f() + 1 end return f()",
		"local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end return t.x",
	},
	"Cannot serialise, excessive nesting": {
		"local t = {} t.t = t return cjson.encode(t)",
		"local t = {} for i = 1, 2000 do t = {t} end return cjson.encode(t)",
	},
	"Found too many nested data structures": {"return cjson.decode(string.rep('[', 100000))"},
	"too many nested values":                {`return cmsgpack.unpack(string.rep('\145', 100000))`},
	"Missing bytes in input": {
		`return cmsgpack.unpack('\221\255\255\255\255')`, `return cmsgpack.unpack('\223\255\255\255\255')`,
		`return cmsgpack.unpack('\219\255\255\255\255')`,
	},
	"integral size 99 is larger than limit of 32": {"return struct.pack('i99', 1)"},
	"integral size overflow":                      {"return struct.size('i99999999999')"},
	"data string too short":                       {"return struct.unpack('c999999999', 'x')"},
	"invalid format (width or precision too long)": {
		"return string.format('%99999d', 1)", "return string.format('%.99999f', 1)",
	},
	"-ERR This Redis command is not allowed from script script: ": {
		"redis.call('SUBSCRIBE', 'a')", "redis.call('MULTI')", "redis.call('EVAL', 'return 1', 0)",
		"redis.call('WATCH', KEYS[1])", "redis.call('SHUTDOWN')", "redis.call('DEBUG', 'RELOAD')",
		"redis.call('CLIENT', 'PAUSE', '1')", "redis.call('SCRIPT', 'KILL')", "redis.call('CONFIG', 'GET', 'x')",
		"redis.call('HELLO', '3')", "redis.call('AUTH', 'x')", "redis.call('MONITOR')", "redis.call('SAVE')",
	},
}

// None of them changes anything, or delays others for longer than it takes to end it.
func TestHostileScriptsEndWithAClearError(t *testing.T) {
	ts := startServer(t, config.Defaults{"lua-memory-limit": "1mb", "lua-time-limit": "1"})
	c, other := ts.dial(), ts.dial()
	beside := beside(ts, "k")
	for want, sources := range hostile {
		for _, source := range sources {
			ended := make(chan string, 1)
			go func() { ended <- c.eval(source, "1", "k") }()
			got, killed := "", false
			for got == "" {
				select {
				case got = <-ended:
				default:
					killed = killed || want == "KILL" && other.do("SCRIPT KILL") == "+OK"
					require.Equal(t, "$-1", other.do("GET "+beside), "%.100s", source)
				}
			}
			if want == "KILL" {
				assert.True(t, killed, "%.100s", source)
				assert.Contains(t, got, "-ERR "+lua.KillWords, "%.100s", source)
			} else {
				assert.Contains(t, got, want, "%.100s", source)
			}
			assert.True(t, strings.HasPrefix(got, "-ERR "), "%.100s", source)
			require.Equal(t, "$-1", other.do("GET k"), "%.100s", source)
		}
	}
	assert.Equal(t, "0", other.field("used_memory_vm_eval"))
}

// As in Redis, scripts may write after what is random. One may be long.
func TestUnusualScriptsRun(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	require.Equal(t, ":2", c.do("SADD set a b"))
	const random = "redis.call('TIME') local m = redis.call('SPOP', KEYS[2]) math.random() " +
		"return redis.call('SET', KEYS[1], m)"
	assert.Equal(t, "+OK", c.eval(random, "2", "k", "set"))
	assert.Equal(t, ":1", c.do("SCARD set"))
	assert.Equal(t, ":100000", c.eval("local x = 0 "+strings.Repeat("x = x + 1 ", 100_000)+"return x", "0"), "1 MB")
	assert.Equal(t, fmt.Sprintf("$%d %s", 1<<20, strings.Repeat("x", 1<<20)),
		c.eval("return '"+strings.Repeat("x", 1<<20)+"'", "0"))
}

// While a script takes long, all processors are used: with one, others would wait for many
// milliseconds. A short script is no long call.
func TestScriptsThatTakeLongUseAllProcessors(t *testing.T) {
	var begun, running atomic.Int64
	ts := startServer(t, config.Defaults{"lua-time-limit": "1"}, func(o *Options) {
		o.LongCall = func() (end func()) {
			begun.Add(1)
			running.Add(1)
			return func() { running.Add(-1) }
		}
	})
	c, other := ts.dial(), ts.dial()
	for _, calls := range []string{"", "MULTI"} {
		for i, source := range []string{"while true do end", "while true do redis.call('GET', KEYS[1]) end"} {
			want := "-ERR " + lua.KillWords
			if calls != "" {
				require.Equal(t, "+OK", c.do(calls))
				require.Equal(t, "+QUEUED", c.send(script, source, "1", "k"))
				c.Write([]byte(frame("EXEC")))
				want = "*1 " + want
			} else {
				c.Write([]byte(frame(script, source, "1", "k")))
			}
			soon := func(c func() bool) { require.Eventually(t, c, time.Minute, time.Millisecond, source) }
			soon(func() bool { return running.Load() == 1 })
			soon(func() bool { return other.do("SCRIPT KILL") == "+OK" })
			require.Contains(t, c.read(), want)
			assert.Zero(t, running.Load(), "%s %d", calls, i)
		}
	}
	begun.Store(0)
	assert.Equal(t, ":5", c.eval("return 5", "1", "k"))
	assert.Zero(t, begun.Load())
}

// faulty is a log that panics at messages with a text.
type faulty struct {
	slog.Handler
	text string
}

func (f faulty) Enabled(context.Context, slog.Level) bool { return true }

func (f faulty) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, f.text) {
		panic(r.Message)
	}
	return nil
}

// If the second script of a transaction cannot be compiled, the first one is not kept.
func TestAFaultInCompilingAheadKeepsNothing(t *testing.T) {
	ts := startServer(t, config.Defaults{}, func(o *Options) {
		o.Log = slog.New(faulty{slog.DiscardHandler, "a script has flags"})
	})
	c := ts.dial()
	for source, want := range map[string]string{
		"#!lua flags=unknown\nreturn 2": "-ERR internal error",
		"this does not compile":         "*2 :1 -ERR Error compiling script",
		strings.Repeat(" ", 4<<20):      "-ERR the new scripts of a transaction are too long",
	} {
		require.Equal(t, "+OK", c.send("MULTI"))
		require.Equal(t, "+QUEUED", c.send("EVAL", "return 1", "0"))
		require.Equal(t, "+QUEUED", c.send("EVAL", source, "0"))
		assert.Contains(t, c.send("EXEC"), want)
		for _, text := range []string{"return 1", source} {
			_, _, kept := ts.Scripts.Ahead(lua.SHA1(text))
			assert.False(t, kept, "%.30s after %.30s", text, source)
		}
		require.Equal(t, "+OK", c.send("SCRIPT", "FLUSH"))
	}
}

// A transaction that compiles scripts has no locks meanwhile, also if it drops them first.
func TestTransactionsCompileScriptsBeforeTheyTakeLocks(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, other := ts.dial(), ts.dial()
	long := func(result string) string { return strings.Repeat(" ", 20_000) + "return " + result }
	queue := func(calls ...[]string) {
		for _, words := range append([][]string{{"MULTI"}}, calls...) {
			require.Contains(t, []string{"+OK", "+QUEUED"}, c.send(words...))
		}
		c.Write([]byte(frame("EXEC")))
	}
	ts.Scripts.Compiling.Lock() // as if another script were being compiled
	queue([]string{"SET", "k", "v"}, []string{script, long("5"), "1", "k"}, []string{script, long("("), "1", "k"})
	for range 20 {
		require.Equal(t, "$-1", other.do("GET k"))
	}
	ts.Scripts.Compiling.Unlock()
	got := c.read()
	assert.Contains(t, got, "*3 +OK :5 -ERR Error compiling script")

	ts.Scripts.Compiling.Lock()
	queue([]string{"SET", "k", "v"}, []string{"SCRIPT", "LOAD", long("6")})
	for range 20 {
		require.Equal(t, "$1 v", other.do("GET k"))
	}
	ts.Scripts.Compiling.Unlock()
	assert.Contains(t, c.read(), "*2 +OK $40 ")

	ts.Scripts.Compiling.Lock()
	defer ts.Scripts.Compiling.Unlock()
	queue([]string{"SCRIPT", "FLUSH"}, []string{script, long("5"), "1", "k"}, []string{script, long("5"), "1", "k"})
	assert.Equal(t, "*3 +OK :5 :5 ", c.read())

	queue([]string{script, strings.Repeat(" ", 3<<20) + "return 1", "1", "k"},
		[]string{script, strings.Repeat(" ", 3<<20) + "return 2", "1", "k"})
	ts.Scripts.Compiling.Unlock()
	assert.Contains(t, c.read(), "-ERR the new scripts of a transaction are too long: 4 MB are allowed together")
	ts.Scripts.Compiling.Lock()
	assert.Equal(t, "$1 v", other.do("GET k"))
}
