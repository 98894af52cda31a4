package lua

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/wire"
)

// replies is a host whose commands have fixed replies, by their first byte.
type replies struct {
	killer
	by map[byte]string
}

func (r replies) Do(words [][]byte, _ bool) []byte { return []byte(r.by[words[0][0]]) }

// on runs a script on a state, and returns its reply.
func on(t testing.TB, st *State, s *Script, host Host, words ...string) string {
	t.Helper()
	var list [][]byte
	for _, w := range words {
		list = append(list, []byte(w))
	}
	var reply wire.Reply
	run := Run{Script: s, Keys: list, Args: list, Host: host, Among: NewScripts(),
		Limits: Limits{Memory: 8 << 20, All: 32 << 20, Time: time.Second}}
	require.NoError(t, st.Run(&run, func(st *State, v glua.LValue) error {
		st.Write(&reply, v, func(text string) { reply.Error(text) })
		return nil
	}))
	return string(reply.B)
}

// The tables, numbers and strings of a run are used again by the next.
func TestValuesAreUsedAgain(t *testing.T) {
	host := replies{by: map[byte]string{'l': "*3\r\n$1\r\nx\r\n:500\r\n*1\r\n$2\r\nab\r\n"}}
	st := newState()
	look, err := Compile(`local r = redis.call('list')
		return {#KEYS, KEYS[1], #ARGV, ARGV[1], tostring(KEYS.x), tostring(KEYS[3]), KEYS ~= ARGV, getmetatable(KEYS) == nil, r[4] == nil,
		getmetatable(r) == nil, r.x == nil, next(r[3], 1) == nil, 300 + #r, r[1], r[2], r[3], tonumber(ARGV[2]) + 1}`)
	require.NoError(t, err)
	want := on(t, st, look, host, "a", "41")
	require.Contains(t, want, ":42\r\n", "all of it")
	for _, source := range []string{
		"KEYS[3] = 'c' KEYS.x = 1 ARGV[1] = nil",
		"setmetatable(KEYS, {__index = function() return 'y' end}) setmetatable(ARGV, {}) KEYS[1] = nil",
		"local t = redis.call('list') t.x = 1 t[4] = 4 t[3].y = t setmetatable(t, {__index = t}) t[3][2] = 'z'",
		"local t = redis.call('list') for i = 1, 1000 do t[i] = i KEYS[i] = t end",
		"for i = 1, 100 do redis.call('list')[2] = tonumber('1.5') .. i end",
	} {
		s, err := Compile(source)
		require.NoError(t, err)
		on(t, st, s, host, "k")
		assert.Equal(t, want, on(t, st, look, host, "a", "41"), source)
	}
}

// A script that ends as it asks for one value that is too large leaves its state as it was, unless
// it has taken memory before, or ends within a coroutine: then the state is not used again.
func TestStatesOfRefusedScriptsAreUsedAgain(t *testing.T) {
	const large = "string.rep('x', 1e9)"
	host := replies{by: map[byte]string{'l': "*1\r\n$1\r\nx\r\n"}}
	look, err := Compile(`local t = {} for i = 1, 10 do t[i] = string.rep('x', i) end local c = coroutine and 1 or 0
		return {c, #KEYS, KEYS[1], table.concat(t), tostring(KEYS.x), tostring(pcall(error, 'e')),
			redis.call('list')[1]}`)
	require.NoError(t, err)
	for source, usable := range map[string]bool{
		"return " + large: true,
		// their product is 0 in 64 bits
		"return string.rep(string.rep('x', 1048576), 17592186044416)":                                  false,
		"local ok, e = pcall(string.rep, 'x', 1e9) return {ok, e}":                                     true,
		"KEYS[2] = 1 return pcall(function() return pcall(function() " + large + " end) end)":          true,
		"return string.gsub('abc', '.', function() return " + large + " end)":                          true,
		"table.sort({3, 2, 1}, function(a, b) " + large + " return a < b end)":                         true,
		"local t = setmetatable({}, {__index = function() return " + large + " end}) return t.x":       true,
		"redis.call('list') local s = 'y' .. " + large:                                                 true,
		"local t = {} for i = 1, 1e5 do t[i] = i end " + large:                                         false,
		"local function f(n) if n == 0 then " + large + " end return 1 + f(n - 1) end return f(15000)": false,
		"while true do " + "local s = string.rep('x', 1e6) .. KEYS[1] KEYS[#KEYS + 1] = s end":         false,
		"local c = coroutine.wrap(function() " + large + " end) c()":                                   false,
	} {
		st := newState()
		want := on(t, st, look, host, "a")
		s, err := Compile(source)
		require.NoError(t, err)
		all := NewScripts()
		run := Run{Script: s, Keys: [][]byte{[]byte("k")}, Host: host, Among: all,
			Limits: Limits{Memory: 8 << 20, All: 32 << 20, Time: time.Second}}
		for range 100 {
			require.ErrorContains(t, st.Run(&run, nil), errMemory, source)
			require.Zero(t, all.Memory())
			require.Equal(t, usable, st.usable(), source)
			if !usable {
				break
			}
			assert.Equal(t, want, on(t, st, look, host, "a"), source)
		}
	}
}

// A limiter in a script takes few allocations, also one whose commands reply with a status.
func TestLimitersTakeFewAllocations(t *testing.T) {
	host := replies{by: map[byte]string{
		'T': "*2\r\n$10\r\n1795401234\r\n$6\r\n123456\r\n", 'P': ":1\r\n", 'Z': ":17\r\n",
		'H': "*2\r\n$7\r\n5940000\r\n$13\r\n1795401234000\r\n", 'S': "+OK\r\n",
	}}
	for file, most := range map[string]float64{"slide.lua": 14, "token.lua": 14} {
		source, err := os.ReadFile("../../bench/" + file)
		require.NoError(t, err)
		s, err := Compile("redis.call('SET', KEYS[1], 1)\n" + string(source))
		require.NoError(t, err)
		st := newState()
		var reply wire.Reply
		words := [][]byte{[]byte("100"), []byte("100"), []byte("60000"), []byte("1")}
		run := Run{Script: s, Keys: words[:1], Args: words, Host: host, Among: NewScripts(),
			Limits: Limits{Memory: 8 << 20, All: 32 << 20, Time: time.Second}}
		emit := func(st *State, v glua.LValue) error {
			reply.B = reply.B[:0]
			st.Write(&reply, v, func(text string) { reply.Error(text) })
			return nil
		}
		allocations := testing.AllocsPerRun(100, func() {
			if err := st.Run(&run, emit); err != nil {
				t.Fatal(err)
			}
		})
		allocations -= 5 // of the host
		assert.LessOrEqual(t, allocations, most, file)
	}
}
