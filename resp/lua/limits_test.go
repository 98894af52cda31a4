package lua

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	glua "github.com/yuin/gopher-lua"
)

// killer is a host that ends a script as soon as it is overdue.
type killer struct{ st *State }

func (killer) Do([][]byte, bool) []byte       { return []byte("+OK\r\n") }
func (killer) Allowed([][]byte) (bool, error) { return true, nil }
func (killer) MustEnd() string                { return "" }
func (killer) Log(int, string)                {}
func (killer) Long()                          {}
func (k killer) Overdue()                     { k.st.watch.killed.Store(true) }

// run runs a script that may take no time and 8 MB, and returns its result as text or its error.
func run(t testing.TB, source string) string {
	t.Helper()
	return runWithin(t, source, Limits{Memory: 8 << 20, All: 32 << 20, Time: time.Nanosecond})
}

// runWithin is run with other limits.
func runWithin(t testing.TB, source string, limits Limits) string {
	t.Helper()
	s, err := Compile(source)
	if err != nil {
		return err.Error()
	}
	st := Take()
	defer st.Release()
	text := ""
	err = st.Run(&Run{Script: s, Host: killer{st}, Among: NewScripts(), Limits: limits},
		func(st *State, v glua.LValue) error {
			text = st.textOf(v)
			return nil
		})
	if err != nil {
		e, ok := err.(*Error)
		require.True(t, ok, "%s: %v", source, err)
		return e.Text
	}
	return text
}

func TestEndlessScriptsEnd(t *testing.T) {
	for _, source := range []string{
		"while true do end",
		"repeat until false",
		"for i=1,math.huge do end",
		"while true do pcall(function() while true do end end) end",
		"while true do xpcall(function() while true do end end, function() while true do end end) end",
		"local function f() return f() end return f()",
		"local function f(n) if n > 0 then f(n-1) f(n-1) end end f(150)",
		"coroutine.wrap(function() while true do end end)()",
		"loadstring('while true do end')()",
		"return string.gsub(string.rep('a',200000),'.-b','')",
		"return string.find(string.rep('a',40),string.rep('a*',20)..'b')",
		"setmetatable({}, {__index=function(t,k) return t[k..'x'] end}).x = nil while true do end",
		"for w in (function() return 1 end) do end",
		"local t = setmetatable({}, {__lt=function() while true do end end}) return t < t",
		"table.sort({1,2,3}, function() while true do end end)",
		"local s = ('x'):rep(1000000) while true do s:lower() end",
		"local s = ('1'):rep(1000000) while true do tonumber(s) end",
	} {
		assert.Equal(t, "ERR "+KillWords, run(t, source), source)
	}
}

func TestScriptsThatTakeMuchMemoryEnd(t *testing.T) {
	for _, source := range []string{
		"return string.rep('x', 1e9)",
		"return ('x'):rep(2^31)",
		"local t = {} t[4000000] = 1",
		"local t = {[4000000] = 1}",
		"local a, b = {}, {} a[4000000], b[1] = 1, 1",
		"local t = {} table.insert(t, 4000000, 1)",
		"rawset({}, 1000000, 1)",
	} {
		assert.Equal(t, "ERR "+errMemory, run(t, source), source)
	}
	for _, source := range []string{
		"local s = 'x' while true do s = s .. s end",
		"local t = {} while true do t[#t+1] = {} end",
		"local t = {} for i=1,1e9 do t[i] = i end",
		"local t = {} for i=1,1e9 do t['k'..i] = i end",
		"local t = {} for i=1,1e9 do t['k'..i] = i t['k'..i] = nil end",
		"local t = {} while true do t = {t} end",
		"local t = {} while true do t[#t+1] = function() return t end end",
		"local t = {} while true do t[#t+1] = coroutine.create(function() end) end",
		"local t = {} while true do t[#t+1] = string.rep('x', 1000) .. #t end",
		"local t = {} while true do t[#t+1] = ('x'):rep(100000):upper() .. #t end",
		"local s = 'x' while true do s = string.gsub(s, '.', '%0%0') end",
		"local s = 'x' while true do s = string.format('%s%s', s, s) end",
		"local t = {'x'} while true do t[1] = table.concat({t[1], t[1]}) end",
		"local s = 'x' while true do s = cjson.encode({s, s}) end",
		"local s = 'x' while true do s = cmsgpack.pack(s, s) end",
	} {
		got := run(t, source)
		assert.True(t, got == "ERR "+errMemory || got == "ERR "+KillWords, "%s: %.200s", source, got)
	}
}

// What calls take of stacks counts, of those that run and of threads that rest.
func TestStacksCountAsMemory(t *testing.T) {
	for _, source := range []string{
		"local function f(n) if n == 0 then coroutine.yield() else f(n-1) end end " +
			"local k = {} for i = 1, 100 do k[i] = coroutine.create(f) coroutine.resume(k[i], 1990) end return #k",
		"local down down = function(n, k) if n == 0 then return k == 0 and 'bottom' or " +
			"select(2, coroutine.resume(coroutine.create(down), 990, k-1)) end " +
			"return (string.gsub('a', 'a', function() return down(n-1, k) end)) end return down(990, 20)",
	} {
		got := runWithin(t, source, Limits{Memory: 8 << 20, All: 32 << 20, Time: time.Hour})
		assert.Equal(t, "ERR "+errMemory, got, source)
	}
}

// The interpreter's compiler compares each constant of a function with all others.
func TestManyConstantsAreAnError(t *testing.T) {
	list := func(format string) string {
		var b strings.Builder
		for i := range 11_000 {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, source := range []string{
		"return {" + list("'s%d',") + "}", "return {" + list("%d.5,") + "}", "return {" + list("k%d=1,") + "}",
		"local t = {} " + list("t.k%d = 1 "), "return {" + list("a%d,") + "}", "local t = {} " + list("t:m%d() "),
		"local f, fault = loadstring('return {" + list("%d,") + "}') return fault",
	} {
		assert.Contains(t, run(t, source), "a function has more than 10000 constants", source[:20])
	}
	// a time that grew with the square of these numbers would be hours
	n := 300_000
	if testing.Short() {
		n = 100_000
	}
	for _, source := range []string{
		strings.Repeat("a,", n) + "a = 1", strings.Repeat("local a a = 1 ", n),
		"local a " + strings.Repeat("a,", n) + "a = 1",
	} {
		_, err := Compile(source)
		assert.Error(t, err)
	}
	_, err := Compile("return {" + list("%d,")[:48890] + "}")
	assert.NoError(t, err, "10,000 constants")
}

func TestDeepRecursionIsAnError(t *testing.T) {
	for _, source := range []string{
		"local function f() return f() + 1 end return f()",
		"local function f() return pcall(f) end return f()",
		"local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end return t.x",
		"local function f(s) return (s:gsub('.', f)) end return f('x')",
		"return " + string(make([]byte, 0)) + "1",
	} {
		got := run(t, source)
		assert.NotContains(t, got, "internal error", source)
		assert.NotContains(t, got, "runtime error", source)
	}
}

// What one script does is not seen by the next on the same state.
func TestStatesKeepNothing(t *testing.T) {
	for _, source := range []string{
		"foo = 1", "redis.call = nil", "redis['call'] = nil", "string.format = 1", "rawset(string, 'format', 1)",
		"rawset(_G, 'foo', 1)", "local s = string s.format = nil", "_G.redis = nil", "KEYS = 1",
		"getmetatable('').__index = nil", "table.insert(redis, 1)", "setmetatable(string, {})",
		"function tostring() end",
		"table.sort(KEYS, nil, 1) string.x, string.y = 1, 2", "local k = 'call' redis[k] = 1", "math.pi = 3",
		"cjson.encode_max_depth(1) error('x')", "getmetatable(_G).__index = nil",
		"local a, b = 1, 2; a, redis.call = 1, 2", "for _, n in ipairs({'call'}) do redis[n] = nil end",
	} {
		_ = run(t, source)
	}
	assert.Equal(t, "OK 1.5 2 nil {{}}", run(t, `return redis.call('x').ok .. ' ' .. string.format('%g', 1.5) .. ' ' ..
		#{1, 2} .. ' ' .. tostring(rawget(_G, 'foo')) .. ' ' .. cjson.encode({a={}}):gsub('"a":', '')`))
}

// What takes Go's stack, whose overflow would end the process, is bounded whatever a script sets.
func TestNestingIsBounded(t *testing.T) {
	for source, want := range map[string]string{
		"cjson.encode_max_depth(2147483647) local t={} t[1]=t return cjson.encode(t)": "excessive nesting (7998)",
		"cjson.decode_max_depth(2147483647) return cjson.decode(string.rep('[',100000))": "too many nested data " +
			"structures (7998)",
		"local A,B A=coroutine.create(function() return select(2,coroutine.resume(B)) end) " +
			"B=coroutine.create(function() return select(2,coroutine.resume(A)) end) " +
			"return select(2,coroutine.resume(A))": "cannot resume normal coroutine",
		"local A,B A=coroutine.wrap(function() return B() end) B=coroutine.wrap(function() return A() end) " +
			"return A()": "cannot resume normal coroutine",
		"local function f(n) return coroutine.wrap(function() return f(n+1) end)() end return f(1)": "C stack overfl",
		"local function f(n) if n==0 then return 'done' end return coroutine.wrap(function() return f(n-1) " +
			"end)() end return f(80)": "done",
	} {
		text := runWithin(t, source, Limits{Memory: 64 << 20, All: 64 << 20, Time: time.Hour})
		assert.Contains(t, text, want, source)
	}
}

// An array counts with its nils, in between and behind.
func TestArraysOfNilsAreCounted(t *testing.T) {
	assert.Contains(t, run(t, "local k={} for i=1,100 do local t={} t[1000000]=nil k[i]=t end return 1"), "memory")
}

// A thread that rests counts with its stack.
func TestStacksOfThreadsAreCounted(t *testing.T) {
	assert.Contains(t, runWithin(t, `local function f(n) if n == 0 then coroutine.yield() else f(n-1) end return 1 end
		local k = {}
		for i = 1, 300 do k[i] = coroutine.create(f) coroutine.resume(k[i], 1500) end return 1`,
		Limits{Memory: 8 << 20, All: 32 << 20, Time: time.Hour}), "memory")
}

// Hostile text takes the time of its length.
func TestNumbersOfJSONAreReadOnce(t *testing.T) {
	for text, want := range map[string]int{
		"12": 2, "-0.5e+3x": 7, "1e": 1, "1.e2": 4, ".5": 2, ".": 0, "-": 0, "--1": 0, "0x1Fg": 4, "0xg": 1,
		"infinityx": 8, "0x.8p-1": 7, "-infin": 4, "nanny": 3, "1-1": 1, "": 0, "e5": 0,
	} {
		assert.Equal(t, want, numberEnd(text), text)
	}
	assert.Equal(t, 100_000, numberEnd(strings.Repeat("1", 100_000)+strings.Repeat("a", 100_000)))
}
