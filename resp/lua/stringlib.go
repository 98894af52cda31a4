package lua

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/lua/interior"
	"rlserver/resp/lua/number"
)

var stringFunctions = map[string]function{
	"byte": stringByte, "char": stringChar, "dump": stringDump, "find": stringFind, "format": stringFormat,
	"gfind": stringGmatch, "gmatch": stringGmatch, "gsub": stringGsub, "len": stringLen,
	"lower": mapped(shift('A', 'Z', 'a'-'A')), "match": stringMatch, "rep": stringRep,
	"reverse": mapped(slices.Reverse), "sub": stringSub, "upper": mapped(shift('a', 'z', 'A'-'a')),
}

// openStrings gives strings their methods, and arithmetic on strings that are numbers.
func (st *State) openStrings() {
	mt := st.L.CreateTable(0, 8)
	mt.RawSetString("__index", st.globals.RawGetString("string"))
	for name, op := range map[string]func(a, b float64) float64{
		"__add": func(a, b float64) float64 { return a + b },
		"__sub": func(a, b float64) float64 { return a - b },
		"__mul": func(a, b float64) float64 { return a * b },
		"__div": func(a, b float64) float64 { return a / b },
		"__mod": modulo,
		"__pow": math.Pow,
		"__unm": func(a, _ float64) float64 { return -a },
	} {
		mt.RawSetString(name, st.function(func(st *State, L *glua.LState) int {
			a, b := L.Get(1), L.Get(2)
			if name == "__unm" {
				b = a
			}
			x, ok := asNumber(a)
			y, fine := asNumber(b)
			if !ok || !fine {
				bad, side := a, 0
				if ok {
					bad, side = b, 1
				}
				return raise(L, "attempt to perform arithmetic on %s", interior.Operand(L, side, bad.Type().String()))
			}
			return st.pushNumber(L, op(x, y))
		}))
	}
	st.readonly[mt] = true
	st.L.SetMetatable(glua.LString(""), mt)
}

func modulo(a, b float64) float64 { return a - math.Floor(a/b)*b }

// span returns the bytes from position i to j, counted from 1, or from the end if negative.
func span(s string, i, j int) string {
	if i < 0 {
		i = max(len(s)+i+1, 1)
	} else if i == 0 {
		i = 1
	}
	if j < 0 {
		j = len(s) + j + 1
	}
	if j = min(j, len(s)); i > j {
		return ""
	}
	return s[i-1 : j]
}

func stringByte(st *State, L *glua.LState) int {
	s := checkString(st, L, 1)
	from := optInt(L, 2, 1)
	part := span(s, from, optInt(L, 3, from))
	if len(part) >= maxUnpacked {
		return raise(L, "string slice too long")
	}
	for i := range len(part) {
		st.pushInt(L, int(part[i]))
	}
	return len(part)
}

func stringChar(st *State, L *glua.LState) int {
	b := make([]byte, L.GetTop())
	for i := range b {
		n := checkInt(L, i+1)
		if n < 0 || n > 255 {
			return argError(L, i+1, "invalid value")
		}
		b[i] = byte(n)
	}
	return st.push(L, string(b))
}

func stringDump(_ *State, L *glua.LState) int { return raise(L, "unable to dump given function") }

func stringFind(st *State, L *glua.LState) int  { return find(st, L, true) }
func stringMatch(st *State, L *glua.LState) int { return find(st, L, false) }

func stringLen(st *State, L *glua.LState) int {
	return st.pushInt(L, len(checkString(st, L, 1)))
}

// mapped pushes a string that op makes of the first argument.
func mapped(op func(b []byte)) function {
	return func(st *State, L *glua.LState) int {
		s := checkString(st, L, 1)
		st.watch.charge(len(s))
		st.watch.step(len(s) / 64)
		b := []byte(s)
		op(b)
		return st.push(L, unsafe.String(unsafe.SliceData(b), len(b)))
	}
}

// shift adds to the bytes from first to last.
func shift(first, last byte, by int) func(b []byte) {
	return func(b []byte) {
		for i, c := range b {
			if first <= c && c <= last {
				b[i] = byte(int(c) + by)
			}
		}
	}
}

func stringRep(st *State, L *glua.LState) int {
	s, n := checkString(st, L, 1), checkInt(L, 2)
	if n <= 0 || s == "" {
		return st.push(L, "")
	}
	if int64(n) > st.watch.limits.Memory/int64(len(s)) {
		st.watch.refuseValue()
	}
	st.watch.charge(len(s) * n)
	st.watch.step(len(s) * n / 1024)
	return st.push(L, strings.Repeat(s, n))
}

func stringSub(st *State, L *glua.LState) int {
	s := checkString(st, L, 1)
	part := span(s, checkInt(L, 2), optInt(L, 3, -1))
	st.watch.charge(perValue)
	return st.push(L, st.watch.part(s, part))
}

// stringFormat is string.format, with the verbs of C.
func stringFormat(st *State, L *glua.LState) int {
	format := checkString(st, L, 1)
	defer st.watch.release(st.watch.reserved)
	out := st.join[:0]
	arg := 1
	for i := 0; i < len(format); i++ {
		out = st.watch.room(out, maxFormatted)
		if format[i] != '%' {
			out = append(out, format[i])
			continue
		}
		if i++; i < len(format) && format[i] == '%' {
			out = append(out, '%')
			continue
		}
		if arg++; arg > L.GetTop() {
			return argError(L, arg, "no value")
		}
		v, next := parseVerb(L, format, i)
		i = next
		out = st.formatArg(L, out, v, arg)
	}
	return st.push(L, st.watch.text(out))
}

// maxText is the length from which %s appends a text as it is.
const maxText = 100

// maxFormatted is how long a number is in any format, at most: 1e308 with 99 decimals.
const maxFormatted = 512

// verb is a conversion of string.format.
type verb struct {
	flags            string // of "-+ #0"
	width, precision int    // precision -1: none
	kind             byte
}

func (v verb) has(flag string) bool { return strings.Contains(v.flags, flag) }

func parseVerb(L *glua.LState, format string, i int) (v verb, at int) {
	v.precision = -1
	begin := i
	for i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0 {
		i++
	}
	if v.flags = format[begin:i]; len(v.flags) > len("-+ #0") {
		raise(L, "invalid format (repeated flags)")
	}
	digits := func() (n int) {
		for k := 0; k < 2 && i < len(format) && number.IsDigit(format[i]); k++ {
			n = n*10 + int(format[i]-'0')
			i++
		}
		return n
	}
	v.width = digits()
	if i < len(format) && format[i] == '.' {
		i++
		v.precision = digits()
	}
	if i < len(format) && number.IsDigit(format[i]) {
		raise(L, "invalid format (width or precision too long)")
	}
	if i < len(format) {
		v.kind = format[i]
	}
	return v, i
}

func (st *State) formatArg(L *glua.LState, out []byte, v verb, arg int) []byte {
	switch v.kind {
	case 'c':
		return v.pad(out, "", string([]byte{byte(number.Int64(checkNumber(L, arg)))}), false)
	case 'd', 'i':
		return v.integer(out, number.Int64(checkNumber(L, arg)))
	case 'o', 'u', 'x', 'X':
		return v.unsigned(out, number.Uint64(checkNumber(L, arg)))
	case 'e', 'E', 'f', 'g', 'G':
		return v.float(out, checkNumber(L, arg))
	case 'q':
		s := checkString(st, L, arg)
		return quoted(st.watch.room(out, 4*len(s)+2), s)
	case 's':
		s := checkString(st, L, arg)
		if v.precision >= 0 || len(s) < maxText { // as C: up to the first NUL
			s, _, _ = strings.Cut(s, "\x00")
		}
		if v.precision >= 0 && v.precision < len(s) {
			s = s[:v.precision]
		}
		return v.pad(st.watch.room(out, len(s)+maxFormatted), "", s, false)
	}
	raise(L, "invalid option '%%%s' to 'format'", strings.TrimRight(string([]byte{v.kind}), "\x00"))
	return nil
}

// pad appends sign and text, filled up to the width.
func (v verb) pad(out []byte, sign, text string, numeric bool) []byte {
	fill := v.width - len(sign) - len(text)
	switch {
	case v.has("-"):
		out = append(append(out, sign...), text...)
		return append(out, bytes.Repeat([]byte{' '}, max(fill, 0))...)
	case v.has("0") && numeric:
		out = append(out, sign...)
		return append(append(out, bytes.Repeat([]byte{'0'}, max(fill, 0))...), text...)
	}
	out = append(out, bytes.Repeat([]byte{' '}, max(fill, 0))...)
	return append(append(out, sign...), text...)
}

func (v verb) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case v.has("+"):
		return "+"
	case v.has(" "):
		return " "
	}
	return ""
}

// digits fills an integer up to the precision.
func (v verb) digits(text string) string {
	if v.precision == 0 && text == "0" {
		return ""
	}
	return strings.Repeat("0", max(v.precision-len(text), 0)) + text
}

func (v verb) integer(out []byte, n int64) []byte {
	size := uint64(n)
	if n < 0 {
		size = -size
	}
	return v.pad(out, v.sign(n < 0), v.digits(strconv.FormatUint(size, 10)), v.precision < 0)
}

func (v verb) unsigned(out []byte, n uint64) []byte {
	text, prefix := "", ""
	switch v.kind {
	case 'o':
		if text = strconv.FormatUint(n, 8); v.has("#") && n != 0 {
			text = "0" + text
		}
	case 'u':
		text = strconv.FormatUint(n, 10)
	case 'x', 'X':
		if text = strconv.FormatUint(n, 16); v.has("#") && n != 0 {
			prefix = "0x"
		}
		if v.kind == 'X' {
			text, prefix = strings.ToUpper(text), strings.ToUpper(prefix)
		}
	}
	return v.pad(out, prefix, v.digits(text), v.precision < 0)
}

func (v verb) float(out []byte, f float64) []byte {
	negative := math.Signbit(f)
	upper := v.kind == 'E' || v.kind == 'G'
	if math.IsInf(f, 0) || math.IsNaN(f) {
		text := "inf"
		if math.IsNaN(f) {
			text = "nan"
		}
		if upper {
			text = strings.ToUpper(text)
		}
		return v.pad(out, v.sign(negative), text, false)
	}
	precision := v.precision
	if precision < 0 {
		precision = 6
	}
	kind := v.kind | 0x20
	if kind == 'g' && precision == 0 {
		precision = 1
	}
	text := strconv.FormatFloat(math.Abs(f), kind, precision, 64)
	if v.has("#") && kind == 'g' {
		text = withZeros(math.Abs(f), precision)
	} else if v.has("#") && strings.IndexByte(text, '.') < 0 {
		text = strings.Replace(text+"|", "e", ".e", 1)
		if text = strings.TrimSuffix(text, "|"); strings.IndexByte(text, '.') < 0 {
			text += "."
		}
	}
	if upper {
		text = strings.ToUpper(text)
	}
	return v.pad(out, v.sign(negative), text, true)
}

// withZeros is %#g: the zeros at the end stay.
func withZeros(f float64, precision int) string {
	e := strconv.FormatFloat(f, 'e', precision-1, 64)
	exponent, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	if exponent < -4 || exponent >= precision {
		return e
	}
	text := strconv.FormatFloat(f, 'f', precision-1-exponent, 64)
	if strings.IndexByte(text, '.') < 0 {
		text += "."
	}
	return text
}

func quoted(out []byte, s string) []byte {
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			out = append(out, '\\', c)
		case '\r':
			out = append(out, `\r`...)
		case 0:
			out = append(out, `\000`...)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
