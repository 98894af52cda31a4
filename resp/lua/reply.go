package lua

import (
	"strings"

	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/lua/number"
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
const maxReplyNested = 7991

// ErrTooDeep is the error of a result that Write does not write.
const ErrTooDeep = "ERR reached lua stack limit"

// Write writes the result of a script; fail writes an error. It reports false if tables are nested
// too deep, or contain themselves: what was written is to be dropped.
func (st *State) Write(r Reply, v glua.LValue, fail func(text string)) (ok bool) {
	defer st.watch.release(st.watch.reserved)
	w := resultWriter{st: st, Reply: r, fail: fail}
	return w.value(v, 0)
}

type resultWriter struct {
	Reply
	st   *State
	fail func(text string)

	// mark is the table that contains the value at a depth of a power of two. One that contains
	// itself is found there before long.
	mark   *glua.LTable
	marked int
}

// perReplied is how many bytes of the reply a value takes beside its text.
const perReplied = 16

func (w *resultWriter) value(v glua.LValue, depth int) (ok bool) {
	w.st.watch.step(1)
	w.st.watch.reserve(perReplied)
	switch v := v.(type) {
	case glua.LString:
		w.BulkString(w.text(v))
	case glua.LNumber:
		w.Integer(number.Int64(float64(v)))
	case glua.LBool:
		w.boolean(bool(v))
	case *glua.LTable:
		return w.nested(v, depth+1) && w.table(v, depth+1)
	default:
		w.Null()
	}
	return true
}

func (w *resultWriter) text(s glua.LString) string {
	w.st.watch.reserve(len(s))
	return string(s)
}

// nested reports whether a table may be written at a depth.
func (w *resultWriter) nested(t *glua.LTable, depth int) bool {
	if depth <= w.marked {
		w.mark = nil // it contains this one no more
	}
	if t == w.mark || depth > maxReplyNested {
		return false
	}
	if depth&(depth-1) == 0 {
		w.mark, w.marked = t, depth
	}
	return true
}

func (w *resultWriter) boolean(yes bool) {
	switch {
	case w.st.resp3:
		w.Boolean(yes)
	case yes:
		w.Integer(1)
	default:
		w.Null()
	}
}

func (w *resultWriter) table(t *glua.LTable, depth int) (ok bool) {
	if text, ok := t.RawGetString("err").(glua.LString); ok {
		w.st.Counted = wasCounted(t)
		w.fail(cText(w.text(text)))
		return true
	}
	if text, ok := t.RawGetString("ok").(glua.LString); ok {
		w.Status(oneLine(cText(w.text(text))))
		return true
	}
	if f, ok := t.RawGetString("double").(glua.LNumber); ok {
		var buf [32]byte
		w.DoubleText(number.Append(buf[:0], float64(f), 17))
		return true
	}
	if m, ok := t.RawGetString("map").(*glua.LTable); ok {
		w.Mapping(countOf(m))
		return w.entries(m, depth, true)
	}
	if m, ok := t.RawGetString("set").(*glua.LTable); ok {
		w.Set(countOf(m))
		return w.entries(m, depth, false)
	}
	if text, ok := t.RawGetString("big_number").(glua.LString); ok {
		w.BigNumber(oneLine(w.text(text)))
		return true
	}
	if v, ok := t.RawGetString("verbatim_string").(*glua.LTable); ok {
		format, _ := v.RawGetString("format").(glua.LString)
		text, ok := v.RawGetString("string").(glua.LString)
		if ok && len(format) == 3 {
			w.VerbatimAs(string(format), w.text(text))
			return true
		}
	}
	return w.list(t, depth)
}

// entries writes the keys of a table, with their values if these are wanted too.
func (w *resultWriter) entries(t *glua.LTable, depth int, values bool) (ok bool) {
	ok = true
	each(t, func(key, v glua.LValue) {
		ok = ok && w.value(key, depth) && (!values || w.value(v, depth))
	})
	return ok
}

func (w *resultWriter) list(t *glua.LTable, depth int) (ok bool) {
	n := 0
	for element(t, n+1) != glua.LNil {
		n++
	}
	w.Array(n)
	for i := 1; i <= n; i++ {
		if !w.value(element(t, i), depth) {
			return false
		}
	}
	return true
}

func countOf(t *glua.LTable) (n int) {
	each(t, func(_, _ glua.LValue) { n++ })
	return n
}

// cText returns a text up to where C's texts end.
func cText(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
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
