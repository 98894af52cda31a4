package lua

import (
	"strings"
	"unsafe"

	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/lua/number"
)

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
