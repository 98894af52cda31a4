package lua

import (
	"encoding/binary"
	"fmt"
	"math"

	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/lua/number"
)

// struct packs values into strings, in the formats of C.
var structFunctions = map[string]function{"pack": structPack, "unpack": structUnpack, "size": structSize}

// layout reads a format, one item after another.
type layout struct {
	L      *glua.LState
	format string
	at     int
	big    bool
	align  int
}

func newLayout(L *glua.LState, format string) *layout { return &layout{L: L, format: format, align: 1} }

// number reads a number in the format.
func (f *layout) number(otherwise int) int {
	if f.at >= len(f.format) || !number.IsDigit(f.format[f.at]) {
		return otherwise
	}
	n := 0
	for f.at < len(f.format) && number.IsDigit(f.format[f.at]) {
		if n > (math.MaxInt32-10)/10 {
			raise(f.L, "integral size overflow")
		}
		n = n*10 + int(f.format[f.at]-'0')
		f.at++
	}
	return n
}

// next returns the next item with its size, and how many bytes of padding come before it at a
// position. kind 0: the format has ended.
func (f *layout) next(position int) (kind byte, size, padding int) {
	if f.at >= len(f.format) {
		return 0, 0, 0
	}
	kind = f.format[f.at]
	f.at++
	switch kind {
	case 'b', 'B', 'x':
		size = 1
	case 'h', 'H':
		size = 2
	case 'i', 'I':
		if size = f.number(4); size > 32 {
			raise(f.L, "integral size %d is larger than limit of %d", size, 32)
		}
	case 'l', 'L', 'T', 'd', 'n':
		size = 8
	case 'f':
		size = 4
	case 'c':
		size = f.number(1)
	}
	align := size
	if align == 0 || kind == 'c' || kind == 'x' {
		return kind, size, 0
	}
	if align = min(align, f.align); align > 1 {
		padding = (align - position&(align-1)) & (align - 1)
	}
	return kind, size, padding
}

// control handles what is no item.
func (f *layout) control(kind byte) {
	switch kind {
	case ' ':
	case '>':
		f.big = true
	case '<':
		f.big = false
	case '!':
		n := f.number(8)
		if n == 0 || n&(n-1) != 0 {
			raise(f.L, "alignment %d is not a power of 2", n)
		}
		f.align = n
	default:
		argError(f.L, 1, fmt.Sprintf("invalid format option '%c'", kind))
	}
}

func structPack(st *State, L *glua.LState) int {
	defer st.watch.release(st.watch.reserved)
	f := newLayout(L, checkString(st, L, 1))
	out := st.join[:0]
	arg := 2
	for {
		kind, size, padding := f.next(len(out))
		if kind == 0 {
			return st.push(L, st.watch.text(out))
		}
		out = st.watch.room(out, size+padding+1)
		out = append(out, make([]byte, padding)...)
		switch kind {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			out = f.appendBits(out, number.Uint64(checkNumber(L, arg)), size)
			arg++
		case 'x':
			out = append(out, 0)
		case 'f':
			out = f.appendBits(out, uint64(math.Float32bits(float32(checkNumber(L, arg)))), 4)
			arg++
		case 'd', 'n':
			out = f.appendBits(out, math.Float64bits(checkNumber(L, arg)), 8)
			arg++
		case 'c', 's':
			s := checkString(st, L, arg)
			arg++
			if size == 0 {
				size = len(s)
			}
			if len(s) < size {
				return argError(L, arg, "string too short")
			}
			out = append(st.watch.room(out, size+1), s[:size]...)
			if kind == 's' {
				out = append(out, 0)
			}
		default:
			f.control(kind)
		}
	}
}

func (f *layout) appendBits(out []byte, v uint64, size int) []byte {
	for i := range size {
		at := i
		if f.big {
			at = size - 1 - i
		}
		b := byte(0)
		if at < 8 {
			b = byte(v >> (8 * at))
		}
		out = append(out, b)
	}
	return out
}

func structUnpack(st *State, L *glua.LState) int {
	f, data := newLayout(L, checkString(st, L, 1)), checkString(st, L, 2)
	at := optInt(L, 3, 1) - 1
	if at < 0 {
		return argError(L, 3, "offset must be 1 or greater")
	}
	n := 0
	var last glua.LValue
	for {
		kind, size, padding := f.next(at)
		if kind == 0 {
			st.pushInt(L, at+1)
			return n + 1
		}
		if at += padding; size > len(data) || at > len(data)-size {
			return argError(L, 2, "data string too short")
		}
		if n > maxUnpacked {
			return raise(L, "too many results to unpack")
		}
		st.watch.step(1)
		last = nil
		switch kind {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			last = glua.LNumber(f.integer(data[at:at+size], kind >= 'a'))
		case 'f':
			last = glua.LNumber(math.Float32frombits(uint32(f.bits(data[at : at+size]))))
		case 'd', 'n':
			last = glua.LNumber(math.Float64frombits(f.bits(data[at : at+size])))
		case 'c':
			if size == 0 {
				length, ok := L.Get(-1).(glua.LNumber)
				if n == 0 || !ok {
					return raise(L, "format 'c0' needs a previous size")
				}
				size = number.Int(float64(length))
				L.Pop(1)
				if n--; size < 0 || at > len(data)-size {
					return argError(L, 2, "data string too short")
				}
			}
			last = glua.LString(st.watch.part(data, data[at:at+size]))
		case 's':
			end := at
			for end < len(data) && data[end] != 0 {
				end++
			}
			if end == len(data) {
				return raise(L, "unfinished string in data")
			}
			last, size = glua.LString(st.watch.part(data, data[at:end])), end+1-at
		case 'x':
		default:
			f.control(kind)
		}
		if at += size; last != nil {
			L.Push(last)
			n++
		}
	}
}

func (f *layout) bits(b string) (v uint64) {
	for i := range len(b) {
		at := i
		if f.big {
			at = len(b) - 1 - i
		}
		if i < 8 {
			v |= uint64(b[at]) << (8 * i)
		}
	}
	return v
}

func (f *layout) integer(b string, signed bool) float64 {
	v := f.bits(b)
	if !signed {
		return float64(v)
	}
	if shift := 64 - 8*len(b); shift > 0 {
		return float64(int64(v<<shift) >> shift)
	}
	return float64(int64(v))
}

func structSize(st *State, L *glua.LState) int {
	f, total := newLayout(L, checkString(st, L, 1)), 0
	for {
		kind, size, padding := f.next(total)
		switch {
		case kind == 0:
			return st.pushInt(L, total)
		case kind == 's', kind == 'c' && size == 0:
			return argError(L, 1, fmt.Sprintf("option '%c' has no fixed size", kind))
		case size == 0 && kind != 'c':
			f.control(kind)
		}
		if total += size + padding; total > math.MaxInt32 {
			return raise(L, "format result too large")
		}
	}
}

// cmsgpack packs values in MessagePack.
var packFunctions = map[string]function{
	"pack": packPack, "unpack": packUnpack, "unpack_one": packUnpackOne, "unpack_limit": packUnpackLimit,
}

var packConstants = map[string]glua.LValue{
	"_NAME": glua.LString("cmsgpack"), "_VERSION": glua.LString("lua-cmsgpack 0.4.0"),
	"_COPYRIGHT":   glua.LString("Copyright (C) 2012, Salvatore Sanfilippo"),
	"_DESCRIPTION": glua.LString("MessagePack C implementation for Lua"),
}

// maxPackNested is how deep tables are packed: deeper ones are nil, as in Redis.
const maxPackNested = 16

func packPack(st *State, L *glua.LState) int {
	n := L.GetTop()
	if n == 0 {
		return argError(L, 0, "MessagePack pack needs input.")
	}
	defer st.watch.release(st.watch.reserved)
	out := st.join[:0]
	for i := 1; i <= n; i++ {
		out = st.packValue(out, L.Get(i), 0)
	}
	return st.push(L, st.watch.text(out))
}

func (st *State) packValue(out []byte, v glua.LValue, level int) []byte {
	st.watch.step(1)
	out = st.watch.room(out, 16)
	switch v := v.(type) {
	case glua.LString:
		out = st.watch.room(out, len(v)+5)
		return append(packLength(out, len(v), 0xa0, 32, 0xd9), v...)
	case glua.LBool:
		if v {
			return append(out, 0xc3)
		}
		return append(out, 0xc2)
	case glua.LNumber:
		return packNumber(out, float64(v))
	case *glua.LTable:
		if level < maxPackNested {
			return st.packTable(out, v, level+1)
		}
	}
	return append(out, 0xc0)
}

// packLength appends the header of a string, an array or a map: those below few have it in the
// first byte. Only strings have a header with one byte of length.
func packLength(out []byte, n int, base byte, few int, first byte) []byte {
	switch {
	case n < few:
		return append(out, base|byte(n))
	case n <= 0xff && base == 0xa0:
		return append(out, first, byte(n))
	case base == 0xa0:
		first++
	}
	if n <= 0xffff {
		return binary.BigEndian.AppendUint16(append(out, first), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(out, first+1), uint32(n))
}

func packNumber(out []byte, f float64) []byte {
	n := int64(f)
	if f != float64(n) || f >= -math.MinInt64 || f < math.MinInt64 {
		if float64(float32(f)) == f {
			return binary.BigEndian.AppendUint32(append(out, 0xca), math.Float32bits(float32(f)))
		}
		return binary.BigEndian.AppendUint64(append(out, 0xcb), math.Float64bits(f))
	}
	switch {
	case n >= 0 && n <= 127, n < 0 && n >= -32:
		return append(out, byte(n))
	case n >= 0 && n <= 0xff:
		return append(out, 0xcc, byte(n))
	case n >= 0 && n <= 0xffff:
		return binary.BigEndian.AppendUint16(append(out, 0xcd), uint16(n))
	case n >= 0 && n <= 0xffffffff:
		return binary.BigEndian.AppendUint32(append(out, 0xce), uint32(n))
	case n >= 0:
		return binary.BigEndian.AppendUint64(append(out, 0xcf), uint64(n))
	case n >= -128:
		return append(out, 0xd0, byte(n))
	case n >= -32768:
		return binary.BigEndian.AppendUint16(append(out, 0xd1), uint16(n))
	case n >= -2147483648:
		return binary.BigEndian.AppendUint32(append(out, 0xd2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(out, 0xd3), uint64(n))
}

func (st *State) packTable(out []byte, t *glua.LTable, level int) []byte {
	if n, ok := arrayLength(t); ok {
		out = packLength(out, n, 0x90, 16, 0xdc)
		for i := 1; i <= n; i++ {
			out = st.packValue(out, t.RawGetInt(i), level)
		}
		return out
	}
	out = packLength(out, countOf(t), 0x80, 16, 0xde)
	each(t, func(key, v glua.LValue) { out = st.packValue(st.packValue(out, key, level), v, level) })
	return out
}

// each visits the elements of a table in a fixed order.
func each(t *glua.LTable, visit func(key, v glua.LValue)) {
	for key, v := t.Next(glua.LNil); key != glua.LNil; key, v = t.Next(key) {
		visit(key, v)
	}
}

// arrayLength reports whether all keys of a table are the numbers from 1 to its length.
func arrayLength(t *glua.LTable) (n int, ok bool) {
	count, most := 0, glua.LNumber(0)
	ok = true
	each(t, func(key, _ glua.LValue) {
		i, isNumber := key.(glua.LNumber)
		if !isNumber || i < 1 || i != glua.LNumber(int(i)) {
			ok = false
			return
		}
		count++
		most = max(most, i)
	})
	return count, ok && int(most) == count
}

// unpacker reads MessagePack.
type unpacker struct {
	st    *State
	L     *glua.LState
	data  string
	at    int
	depth int
}

func packUnpack(st *State, L *glua.LState) int { return st.unpackMany(L, 0, 0, false) }

func packUnpackOne(st *State, L *glua.LState) int {
	return st.unpackMany(L, 1, optInt(L, 2, 0), true)
}

func packUnpackLimit(st *State, L *glua.LState) int {
	return st.unpackMany(L, checkInt(L, 2), optInt(L, 3, 0), true)
}

func (st *State) unpackMany(L *glua.LState, limit, offset int, partial bool) int {
	data := checkString(st, L, 1)
	switch {
	case offset < 0 || limit < 0:
		return raise(L, "Invalid request to unpack with offset of %d and limit of %d.", offset, len(data))
	case offset > len(data):
		return raise(L, "Start offset %d greater than input length %d.", offset, len(data))
	}
	defer st.watch.release(st.watch.reserved)
	u := unpacker{st: st, L: L, data: data, at: offset}
	if partial {
		st.pushInt(L, 0)
	}
	n := 0
	for ; u.at < len(data) && (limit == 0 && !partial || n < limit || partial && limit == 0); n++ {
		if n > maxUnpacked {
			return raise(L, "too many results to unpack")
		}
		L.Push(u.value())
	}
	if !partial {
		return n
	}
	next := u.at
	if next >= len(data) {
		next = -1
	}
	L.Replace(L.GetTop()-n, glua.LNumber(next))
	return n + 1
}

func (u *unpacker) take(n int) string {
	if n < 0 || n > len(u.data)-u.at {
		raise(u.L, "Missing bytes in input.")
	}
	u.at += n
	return u.data[u.at-n : u.at]
}

func (u *unpacker) number(bytes int) (v uint64) {
	for _, b := range []byte(u.take(bytes)) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (u *unpacker) value() glua.LValue {
	u.st.watch.step(1)
	switch c := u.take(1)[0]; {
	case c <= 0x7f:
		return glua.LNumber(c)
	case c >= 0xe0:
		return glua.LNumber(int8(c))
	case c&0xe0 == 0xa0:
		return u.text(int(c & 0x1f))
	case c&0xf0 == 0x90:
		return u.array(int(c & 0xf))
	case c&0xf0 == 0x80:
		return u.mapping(int(c & 0xf))
	default:
		return u.long(c)
	}
}

func (u *unpacker) long(c byte) glua.LValue {
	switch c {
	case 0xc0:
		return glua.LNil
	case 0xc2, 0xc3:
		return glua.LBool(c == 0xc3)
	case 0xca:
		return glua.LNumber(math.Float32frombits(uint32(u.number(4))))
	case 0xcb:
		return glua.LNumber(math.Float64frombits(u.number(8)))
	case 0xcc, 0xcd, 0xce, 0xcf:
		return glua.LNumber(u.number(1 << (c - 0xcc)))
	case 0xd0:
		return glua.LNumber(int8(u.number(1)))
	case 0xd1:
		return glua.LNumber(int16(u.number(2)))
	case 0xd2:
		return glua.LNumber(int32(u.number(4)))
	case 0xd3:
		return glua.LNumber(int64(u.number(8)))
	case 0xd9, 0xda, 0xdb:
		return u.text(int(u.number(1 << (c - 0xd9))))
	case 0xc4, 0xc5, 0xc6:
		return u.text(int(u.number(1 << (c - 0xc4))))
	case 0xdc, 0xdd:
		return u.array(int(u.number(2 << (c - 0xdc))))
	case 0xde, 0xdf:
		return u.mapping(int(u.number(2 << (c - 0xde))))
	}
	raise(u.L, "Bad data format in input.")
	return glua.LNil
}

func (u *unpacker) text(n int) glua.LValue {
	u.st.watch.reserve(min(n, len(u.data)) + perValue)
	return glua.LString(u.st.watch.part(u.data, u.take(n)))
}

func (u *unpacker) enter(n int) {
	if u.depth++; u.depth > maxNestedData {
		raise(u.L, "too many nested values")
	}
	if n > len(u.data)-u.at {
		raise(u.L, "Missing bytes in input.")
	}
	u.st.watch.reserve(perTable/8 + perEntry)
}

// maxNestedData is how deep what is read may be nested.
const maxNestedData = 1000

func (u *unpacker) array(n int) glua.LValue {
	u.enter(n)
	u.st.watch.reserve(2 * perValue * n)
	t := u.L.CreateTable(n, 0)
	for i := 1; i <= n; i++ {
		t.RawSetInt(i, u.value())
	}
	u.depth--
	return t
}

func (u *unpacker) mapping(n int) glua.LValue {
	u.enter(n)
	u.st.watch.reserve(perEntry * n)
	t := u.L.CreateTable(0, n)
	for range n {
		key := u.value()
		v := u.value()
		if f, ok := key.(glua.LNumber); ok && f != f || key == glua.LNil {
			raise(u.L, "Bad data format in input.")
		}
		u.st.grow(t, key, v)
		t.RawSet(key, v)
	}
	u.depth--
	return t
}
