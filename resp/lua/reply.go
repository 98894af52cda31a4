package lua

import (
	"bytes"

	glua "github.com/yuin/gopher-lua"
)

// parseReply returns the value of a command's reply.
func (st *State) parseReply(reply []byte) glua.LValue {
	v, _ := st.parse(reply)
	return v
}

// line returns the number in the header of a reply, and what follows it.
func line(b []byte) (n int, text, rest []byte) {
	for i := 1; i < len(b) && b[0] != '+' && b[0] != '-'; i++ {
		switch {
		case isDigit(b[i]):
			n = n*10 + int(b[i]-'0')
		case b[i] == '\r':
			return n, b[1:i], b[min(i+2, len(b)):]
		default:
			i = len(b) // not of digits alone
		}
	}
	n = 0
	end := bytes.IndexByte(b, '\r')
	if end < 0 {
		return 0, nil, nil
	}
	text, rest = b[1:end], b[min(end+2, len(b)):]
	negative := false
	for i, c := range text {
		switch {
		case c == '-' && i == 0:
			negative = true
		case isDigit(c):
			n = n*10 + int(c-'0')
		default:
			return 0, text, rest
		}
	}
	if negative {
		n = -n
	}
	return n, text, rest
}

func (st *State) parse(b []byte) (v glua.LValue, rest []byte) {
	if len(b) == 0 {
		return glua.LFalse, nil
	}
	n, text, rest := line(b)
	switch b[0] {
	case ':':
		return glua.LNumber(n), rest
	case '$':
		if n < 0 {
			return glua.LFalse, rest
		}
		st.watch.charge(n + perValue)
		return glua.LString(rest[:n]), rest[n+2:]
	case '+':
		return st.wrapped("ok", glua.LString(text)), rest
	case '-':
		return st.wrapped("err", glua.LString(text)), rest
	case '*', '>':
		if n < 0 {
			return glua.LFalse, rest
		}
		return st.parseArray(n, rest)
	}
	return st.parse3(b, n, text, rest)
}

// wrapped returns a table with one field.
func (st *State) wrapped(name string, v glua.LValue) *glua.LTable {
	t := st.L.CreateTable(0, 1)
	t.RawSetString(name, v)
	return t
}

func (st *State) parseArray(n int, rest []byte) (glua.LValue, []byte) {
	st.watch.charge(perTable/16 + n*perValue)
	t := st.L.CreateTable(n, 0)
	for i := 1; i <= n; i++ {
		st.watch.step(1)
		var v glua.LValue
		v, rest = st.parse(rest)
		t.RawSetInt(i, v)
	}
	return t, rest
}

// parse3 is parse for the replies that only RESP3 has.
func (st *State) parse3(b []byte, n int, text, rest []byte) (glua.LValue, []byte) {
	switch b[0] {
	case '_':
		return glua.LNil, rest
	case '#':
		return glua.LBool(string(text) == "t"), rest
	case ',':
		f, _ := parseNumber(string(text))
		return st.wrapped("double", glua.LNumber(f)), rest
	case '(':
		return st.wrapped("big_number", glua.LString(text)), rest
	case '=':
		t := st.L.CreateTable(0, 2)
		t.RawSetString("format", glua.LString(rest[:3]))
		t.RawSetString("string", glua.LString(rest[4:n]))
		return st.wrapped("verbatim_string", t), rest[n+2:]
	case '%', '~':
		st.watch.charge(perTable/16 + n*perEntry)
		t := st.L.CreateTable(0, n)
		for range n {
			var key glua.LValue
			var v glua.LValue = glua.LTrue
			key, rest = st.parse(rest)
			if b[0] == '%' {
				v, rest = st.parse(rest)
			}
			if key != glua.LNil {
				t.RawSet(key, v)
			}
		}
		if b[0] == '%' {
			return st.wrapped("map", t), rest
		}
		return st.wrapped("set", t), rest
	}
	return glua.LFalse, rest
}

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
	for t.RawGet(glua.LNumber(n+1)) != glua.LNil {
		n++
	}
	r.Array(n)
	for i := 1; i <= n; i++ {
		st.Write(r, t.RawGet(glua.LNumber(i)), fail, depth+1)
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
