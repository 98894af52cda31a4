package lua

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/wire"
)

// endings ends a script soon, with any reply of a command.
type endings struct {
	st    *State
	reply []byte
}

func (e endings) Do([][]byte, bool) []byte     { return e.reply }
func (endings) Allowed([][]byte) (bool, error) { return true, nil }
func (endings) Log(int, string)                {}
func (endings) MustEnd() string                { return "" }
func (endings) Long()                          {}
func (e endings) Overdue()                     { e.st.watch.killed.Store(true) }

// FuzzScripts runs any text as a script: it ends in time, takes no more memory than it may, and
// never panics. A state is as before when it runs another one.
func FuzzScripts(f *testing.F) {
	for _, source := range []string{
		"return {KEYS[1], ARGV[1], #ARGV}", "local t = {} for i = 1, 9 do t[i] = i .. 'x' end return t",
		"return redis.call('SET', KEYS[1], 1.5)", "while true do end", "return string.rep('x', 1e9)",
		"return cjson.encode({cjson.decode('[1,{\"a\":null}]'), struct.pack('>I2', 7), cmsgpack.pack({1, 'b'})})",
		"local function f(n) return n < 2 and n or f(n - 1) + f(n - 2) end return f(12)",
		"return pcall(string.gsub, 'hello world', '(o)(.?)', '%2%1')",
		"local a, b = unpack({1, 2}) return bit.bxor(a, b)",
		"#!lua flags=no-writes\nreturn redis.pcall('GET', 1)", "local t = setmetatable({}, {__index = _G}) return t.x",
		"return coroutine.wrap(function(...) coroutine.yield(...) end)(1, nil, 'a')", "goto x", "a = 1",
		"local t = {} t[1] = t return t", "return {err = 'x', ok = 1, double = 2.5, map = {a = 1}}",
	} {
		f.Add(source)
	}
	all := NewScripts()
	canary, err := Compile("return KEYS[1] .. tostring(ARGV[1]) .. #tostring(redis.call) .. table.concat({1, 2})")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, source string) {
		run := func(s *Script) (text string, err error) {
			st := Take()
			defer st.Release()
			var reply wire.Reply
			limits := Limits{Memory: 2 << 20, All: 8 << 20, Time: 50 * time.Millisecond}
			host := endings{st, []byte("*2\r\n$1\r\nx\r\n:5\r\n")}
			words := [][]byte{[]byte("k")}
			err = st.Run(&Run{Script: s, Keys: words, Args: words, Host: host, Limits: limits, Among: all},
				func(st *State, v glua.LValue) error {
					st.Write(&reply, v, func(text string) { reply.Error(text) })
					return nil
				})
			return string(reply.B), err
		}
		want, err := run(canary)
		require.NoError(t, err)
		if _, _, err := parseShebang(source); err != nil {
			return
		}
		s, err := Compile(source)
		if err != nil {
			return
		}
		begun := time.Now()
		if _, err = run(s); err != nil {
			_, ok := err.(*Error)
			require.True(t, ok, "%v", err)
		}
		require.Less(t, time.Since(begun), 10*time.Second)
		require.Zero(t, all.Memory())
		got, err := run(canary)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}
