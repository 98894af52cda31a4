package lua

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/wire"
)

var bounded = Limits{Memory: 8 << 20, All: 32 << 20, Time: time.Minute}

// reply returns what a script replies that may take 8 MB: its error, or the reply.
func reply(t testing.TB, source string, host Host) string {
	t.Helper()
	s, err := Compile(source)
	require.NoError(t, err)
	st := newState()
	if host == nil {
		host = killer{st}
	}
	var out wire.Reply
	run := Run{Script: s, Host: host, Among: NewScripts(), Limits: bounded}
	err = st.Run(&run, func(st *State, v glua.LValue) error {
		if !st.Write(&out, v, func(text string) { out.Error(text) }) {
			return &Error{Text: ErrTooDeep}
		}
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return string(out.B)
}

// What a library builds counts before the script can reach it.
func TestWhatIsBeingBuiltCounts(t *testing.T) {
	for _, source := range []string{
		"return cjson.decode('[' .. ('1,'):rep(1000000) .. '1]')",
		"return cjson.decode('[' .. ('[],'):rep(500000) .. '1]')",
		"return cjson.decode(('['):rep(900) .. ('{},'):rep(400000))",
		"return cmsgpack.unpack('\\221\\0\\15\\66\\64' .. ('\\144'):rep(1000000))",
		"local function f(s) return s:gsub('$', function() return f(('x'):rep(3000000)) end) end return f('x')",
		"local t = {('x'):rep(1000000)} for i = 1, 6 do t[i] = t[1] end return table.concat(t, t[1])",
		"local s = ('\\0'):rep(2000000) return string.format('%q', s)",
		"local s = ('x'):rep(4000000) return redis.call('x', s, s, s)",
		"local s = ('\\1'):rep(2000000) return cjson.encode(s)",
		"return struct.pack('c0c0c0', ('x'):rep(3000000), ('y'):rep(3000000), ('z'):rep(3000000))",
		"local a = {} for i = 1, 100 do a[i] = i end " +
			"local b, c, d = {}, {}, {} for i = 1, 100 do b[i] = a c[i] = b d[i] = c end return d",
	} {
		assert.Equal(t, "ERR "+errMemory, reply(t, source, nil), source)
	}
	for _, text := range []string{
		"$9000000\r\n" + strings.Repeat("x", 9000000) + "\r\n",
		"*300000\r\n" + strings.Repeat("$1\r\nx\r\n", 300000),
		"*100000\r\n" + strings.Repeat("*0\r\n", 100000),
		"%100000\r\n" + strings.Repeat(":1\r\n:1\r\n", 100000),
		"*100000\r\n" + strings.Repeat("+\r\n", 100000),
	} {
		host := replies{by: map[byte]string{'x': text}}
		assert.Equal(t, "ERR "+errMemory, reply(t, "return #redis.call('x')", host), text[:9])
	}
}

// A part of a string does not keep the string alive, which would not count.
func TestPartsOfStringsAreCopies(t *testing.T) {
	for _, source := range []string{
		"s:sub(2, 3)", "s:sub(2)", "s:match('.x')", "cjson.decode('[\"xx\", \"' .. s .. '\"]')[1]",
		"struct.unpack('c2', s)", "struct.unpack('s', 'xx\\0' .. s)", "s:gmatch('xx')()",
		"select(2, cmsgpack.unpack_one('\\162' .. s))",
	} {
		s, err := Compile("local s = ('x'):rep(100000) return " + source)
		require.NoError(t, err)
		st := newState()
		run := Run{Script: s, Host: killer{st}, Among: NewScripts(), Limits: bounded}
		var before, after runtime.MemStats
		var part string
		runtime.GC()
		runtime.ReadMemStats(&before)
		parts := make([]string, 100)
		for i := range parts {
			require.NoError(t, st.Run(&run, func(_ *State, v glua.LValue) error {
				part = string(v.(glua.LString))
				return nil
			}))
			if parts[i] = part; len(part) > 1000 {
				parts[i] = "" // a copy of nearly all
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(5e6), source)
		runtime.KeepAlive(parts)
	}
}

// A script that was dropped leaves nothing in the states that have run it.
func TestStatesKeepNoScript(t *testing.T) {
	st := newState()
	s, err := Compile("return KEYS[1] .. 'x'")
	require.NoError(t, err)
	assert.Equal(t, "$2\r\nkx\r\n", on(t, st, s, killer{st}, "k"))
	proto := weak.Make(s.Proto)
	s = nil
	runtime.GC()
	assert.Nil(t, proto.Value())
	runtime.KeepAlive(st)
}

// Tables that contain themselves are found soon: not at the depth at which all tables are refused.
func TestTablesThatContainThemselves(t *testing.T) {
	for _, source := range []string{
		"local t = {} t[1] = t return t", "local t = {} t[1] = t t[2] = t return t",
		"local t, u = {}, {} for i = 1, 9 do t[i] = u u[i] = t end return {1, {t}, 2}",
		"local t = {1, {2, {3, {4, {5}}}}} t[2][2][2][2][2] = t[2][2] t[3] = t return t",
		"local t = {} t.map = {t} return {t}",
	} {
		assert.Equal(t, ErrTooDeep, reply(t, source, nil), source)
	}
	assert.Equal(t, "*2\r\n*1\r\n:1\r\n*1\r\n*1\r\n:1\r\n", reply(t, "local t = {1} return {t, {t}}", nil))
	deep := "local t = {} for i = 2, %s do t = {t} end return t"
	assert.Len(t, reply(t, strings.Replace(deep, "%s", "7991", 1), nil), 4*7991)
	assert.Equal(t, ErrTooDeep, reply(t, strings.Replace(deep, "%s", "7992", 1), nil))
}

// slow is a host for which time passes whenever it is asked whether the script may go on.
type slow struct {
	killer
	told []string
}

func (s *slow) MustEnd() string { time.Sleep(2 * TurnTime); return "" }
func (s *slow) Long()           { s.told = append(s.told, "long") }
func (s *slow) Overdue()        { s.told = append(s.told, "overdue"); s.killer.Overdue() }

// A script that takes time by memory, in few instructions, takes turns as others do, and ends.
func TestFewInstructionsMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Compile("local s = ('x'):rep(1000000) for i = 1, 30 do local t = s .. s end")
		require.NoError(t, err)
		run := func(limit time.Duration) (told []string, err error) {
			st := newState()
			host := &slow{killer: killer{st}}
			err = st.Run(&Run{Script: s, Host: host, Among: NewScripts(),
				Limits: Limits{Memory: 8 << 20, All: 32 << 20, Time: limit}},
				func(*State, glua.LValue) error { return nil })
			return slices.Compact(host.told), err
		}
		told, err := run(time.Minute)
		require.NoError(t, err)
		assert.Equal(t, []string{"long"}, told)
		told, err = run(6 * TurnTime)
		assert.EqualError(t, err, "ERR "+KillWords)
		assert.Equal(t, []string{"long", "overdue"}, told[:2])
	})
}

// Long texts are copied in pieces.
func TestLongTexts(t *testing.T) {
	for _, c := range [][2]string{
		{"s = a .. 7 .. ('de'):rep(700001) return {s:sub(2100002, 2100006), s:sub(-2)}", "$5\r\nbc7de\r\n$2\r\nde\r\n"},
		{"s = a:sub(2) return {s:sub(1, 3), s:sub(-3)}", "$3\r\nbca\r\n$3\r\nabc\r\n"},
		{"s = table.concat({a, 'x', 'y'}) return {s:sub(2100003, 2100005), #s}", "$3\r\ncxy\r\n:2100005\r\n"},
	} {
		assert.Equal(t, "*2\r\n"+c[1], reply(t, "local s, a = '', ('abc'):rep(700001) "+c[0], nil), c[0])
	}
}
