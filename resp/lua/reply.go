package lua

import (
	"strings"
	"unsafe"

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
		format, named := v.RawGetString("format").(glua.LString)
		text, ok := v.RawGetString("string").(glua.LString)
		if ok && named {
			w.VerbatimAs((string(format) + "   ")[:3], w.text(text))
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

// replyReader makes values of the reply of a command.
type replyReader struct {
	st     *State
	rest   string
	shared bool // strings are parts of rest, which stays as it is
}

// maxShared is the length of a reply in bytes whose strings share memory.
const maxShared = 64

// value returns the value of a command's reply. What it takes is reserved before it is built.
func (st *State) value(reply []byte) glua.LValue {
	if len(reply) <= maxShared {
		st.watch.charge(8 * len(reply))
	} else {
		defer st.watch.release(st.watch.reserved)
		st.watch.reserve(len(reply) + sizeOfValues(reply))
	}
	r := replyReader{st: st, shared: len(reply) <= maxShared && reply[0] == '*'}
	if r.shared {
		r.rest = st.scratch.clone(reply)
	} else {
		r.rest = unsafe.String(unsafe.SliceData(reply), len(reply))
	}
	return r.next()
}

// sizeOfValues returns how many bytes the values of a reply take.
func sizeOfValues(reply []byte) (size int) {
	r := replyReader{rest: unsafe.String(unsafe.SliceData(reply), len(reply))}
	for r.rest != "" {
		kind := r.rest[0]
		n := integer(r.line())
		size += 2 * perValue
		switch kind {
		case '$', '=':
			if n >= 0 {
				size += len(r.bulk(n))
			}
		case '*', '>':
			size += perTable / 16
		case '%', '~':
			size += perTable/16 + n*perEntry
		case '+', '-', ',', '(':
			size += perTable / 4
		}
	}
	return size
}

func (r *replyReader) text(s string) glua.LValue {
	switch {
	case r.shared:
	case len(s) <= maxShared:
		s = r.st.scratch.clone(unsafe.Slice(unsafe.StringData(s), len(s)))
	default:
		s = cloneText(s)
	}
	return r.st.scratch.string(s)
}

// line returns what follows the type, up to the end of the line.
func (r *replyReader) line() string {
	line, rest, _ := strings.Cut(r.rest[1:], "\r\n")
	r.rest = rest
	return line
}

func integer(line string) (n int) {
	digits := line
	if line != "" && line[0] == '-' {
		digits = line[1:]
	}
	for i := range len(digits) {
		n = n*10 + int(digits[i]-'0')
	}
	if len(digits) < len(line) {
		n = -n
	}
	return n
}

// bulk returns the next n bytes, and skips the end of the line.
func (r *replyReader) bulk(n int) string {
	s := r.rest[:n]
	r.rest = r.rest[n+2:]
	return s
}

func (r *replyReader) next() glua.LValue {
	kind := r.rest[0]
	line := r.line()
	switch kind {
	case ':':
		return r.st.scratch.number(float64(integer(line)))
	case '+':
		return r.wrapped("ok", r.text(line))
	case '-':
		return r.wrapped("err", r.text(line))
	case '_':
		return glua.LNil
	case '#':
		return glua.LBool(line == "t")
	case ',':
		f, _ := number.Parse(line)
		return r.wrapped("double", glua.LNumber(f))
	case '(':
		return r.wrapped("big_number", r.text(line))
	}
	n := integer(line)
	switch {
	case n < 0:
		return glua.LFalse
	case kind == '$':
		return r.text(r.bulk(n))
	case kind == '=':
		return r.verbatim(r.bulk(n))
	case kind == '%':
		return r.wrapped("map", r.mapping(n, r.next))
	case kind == '~':
		return r.wrapped("set", r.mapping(n, func() glua.LValue { return glua.LTrue }))
	}
	return r.list(n) // '*' and '>'
}

// wrapped returns a table with one field.
func (r *replyReader) wrapped(name string, v glua.LValue) *glua.LTable {
	t := r.st.L.CreateTable(0, 1)
	t.RawSetString(name, v)
	return t
}

func (r *replyReader) list(n int) glua.LValue {
	t := r.st.scratch.list(n)
	for i := 1; i <= n; i++ {
		r.st.watch.step(1)
		t.RawSetInt(i, r.next())
	}
	return t
}

func (r *replyReader) verbatim(s string) glua.LValue {
	t := r.st.L.CreateTable(0, 2)
	t.RawSetString("format", r.text(s[:3]))
	t.RawSetString("string", r.text(s[4:]))
	return r.wrapped("verbatim_string", t)
}

// mapping returns a table of n keys, and the values that follow them.
func (r *replyReader) mapping(n int, value func() glua.LValue) *glua.LTable {
	t := r.st.L.CreateTable(0, n)
	for range n {
		key, v := r.next(), value()
		if key != glua.LNil {
			t.RawSet(key, v)
		}
	}
	return t
}
