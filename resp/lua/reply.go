package lua

import (
	glua "github.com/yuin/gopher-lua"
)

// Reply is what a script's result is written to.
type Reply interface {
	Integer(n int64)
	BulkString(s string)
	Status(s string)
	Null()
	NullArray()
	Array(n int)
	Mapping(n int)
	Set(n int)
	DoubleText(text []byte)
	Boolean(yes bool)
	BigNumber(text string)
	VerbatimAs(format, text string)
}

// maxReplyNested is how deep tables of a reply may be nested: Lua's C stack, as in Redis.
const maxReplyNested = 7990

// ErrTooDeep is the error of a reply that is nested too deep, or is a table that contains itself.
const ErrTooDeep = "ERR reached lua stack limit"

// Write writes the result of a script. It returns the text of an error, or "".
func (st *State) Write(r Reply, v glua.LValue, fail func(text string), depth int) {
	st.watch.step(1)
	switch v := v.(type) {
	case glua.LString:
		r.BulkString(string(v))
	case glua.LNumber:
		r.Integer(toInt64(float64(v)))
	case glua.LBool:
		st.writeBool(r, bool(v))
	case *glua.LTable:
		if depth > maxReplyNested {
			fail(ErrTooDeep)
			return
		}
		st.writeTable(r, v, fail, depth)
	default:
		r.Null()
	}
}

func (st *State) writeBool(r Reply, yes bool) {
	switch {
	case st.resp3:
		r.Boolean(yes)
	case yes:
		r.Integer(1)
	default:
		r.Null()
	}
}

func (st *State) writeTable(r Reply, t *glua.LTable, fail func(string), depth int) {
	if text, ok := t.RawGetString("err").(glua.LString); ok {
		fail(string(text))
		return
	}
	if text, ok := t.RawGetString("ok").(glua.LString); ok {
		r.Status(oneLine(string(text)))
		return
	}
	if f, ok := t.RawGetString("double").(glua.LNumber); ok {
		var buf [32]byte
		r.DoubleText(appendNumber(buf[:0], float64(f), 17))
		return
	}
	if m, ok := t.RawGetString("map").(*glua.LTable); ok {
		n := 0
		each(m, func(_, _ glua.LValue) { n++ })
		r.Mapping(n)
		each(m, func(key, v glua.LValue) {
			st.Write(r, key, fail, depth+1)
			st.Write(r, v, fail, depth+1)
		})
		return
	}
	if m, ok := t.RawGetString("set").(*glua.LTable); ok {
		n := 0
		each(m, func(_, _ glua.LValue) { n++ })
		r.Set(n)
		each(m, func(key, _ glua.LValue) { st.Write(r, key, fail, depth+1) })
		return
	}
	if text, ok := t.RawGetString("big_number").(glua.LString); ok {
		r.BigNumber(oneLine(string(text)))
		return
	}
	if v, ok := t.RawGetString("verbatim_string").(*glua.LTable); ok {
		format, _ := v.RawGetString("format").(glua.LString)
		text, ok := v.RawGetString("string").(glua.LString)
		if ok && len(format) == 3 {
			r.VerbatimAs(string(format), string(text))
			return
		}
	}
	n := 0
	for element(t, n+1) != glua.LNil {
		n++
	}
	r.Array(n)
	for i := 1; i <= n; i++ {
		st.Write(r, element(t, i), fail, depth+1)
	}
}

// oneLine replaces line ends, which would end a status.
func oneLine(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c == '\r' || c == '\n' {
			b[i] = ' '
		}
	}
	return string(b)
}
