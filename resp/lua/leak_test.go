package lua

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	glua "github.com/yuin/gopher-lua"
)

// States are used for one script after another: no way to write to a table that the next one sees
// leaves anything in it.
func TestScriptsLeaveNothingInTheState(t *testing.T) {
	st := newState()
	tables := map[string]*glua.LTable{
		"_G": st.globals, "getmetatable(_G)": st.globals.Metatable.(*glua.LTable),
		"getmetatable('')": st.L.GetMetatable(glua.LString("")).(*glua.LTable),
	}
	st.globals.ForEach(func(name, v glua.LValue) {
		if lib, ok := v.(*glua.LTable); ok && lib != st.globals && lib != st.keys && lib != st.argv {
			tables["_G."+name.String()] = lib
		}
	})
	for expression, table := range tables {
		keys := []string{"new"}
		table.ForEach(func(key, _ glua.LValue) { keys = append(keys, key.String()) })
		for _, key := range keys {
			for _, write := range []string{
				"%s.%s = 1", "%s['%s'] = 1", "%s['%s'..''] = 1", "rawset(%s, '%s', 1)", "local a a, %s.%s = 1, 2",
				"local t = %s function t.%s() end", "local t = %s function t:%s() end",
			} {
				source := fmt.Sprintf("local g = _G "+write, expression, key)
				assert.Contains(t, run(t, source), errReadonly, source)
			}
		}
		source := fmt.Sprintf("local t = %s t[1] = 1", expression)
		assert.Contains(t, run(t, source), errReadonly, source)
	}
}
