package lua

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/lua/number"
)

// cjson, in version 2.1.0.
var jsonFunctions = map[string]function{
	"encode": jsonEncode, "decode": jsonDecode, "new": jsonNew,
	"encode_sparse_array":     jsonSparse,
	"encode_max_depth":        jsonNumber(math.MaxInt32, func(j *jsonSettings) *int { return &j.encodeDepth }),
	"decode_max_depth":        jsonNumber(math.MaxInt32, func(j *jsonSettings) *int { return &j.decodeDepth }),
	"encode_number_precision": jsonNumber(14, func(j *jsonSettings) *int { return &j.precision }),
	"encode_keep_buffer":      jsonFlag(func(j *jsonSettings) *bool { return &j.keepBuffer }),
	"encode_invalid_numbers":  jsonEncodeInvalid,
	"decode_invalid_numbers":  jsonFlag(func(j *jsonSettings) *bool { return &j.decodeInvalid }),
}

var jsonConstants = map[string]glua.LValue{"_NAME": glua.LString("cjson"), "_VERSION": glua.LString("2.1.0")}

// jsonSettings are what functions of cjson set. They end with the script.
type jsonSettings struct {
	sparseConvert            bool
	sparseRatio, sparseSafe  int
	encodeDepth, decodeDepth int
	precision                int
	keepBuffer               bool
	encodeInvalid            int // 0: an error, 1: as they are, 2: null
	decodeInvalid            bool
}

var defaultJSON = jsonSettings{
	sparseRatio: 2, sparseSafe: 10, encodeDepth: 1000, decodeDepth: 1000, precision: 14, keepBuffer: true,
	decodeInvalid: true,
}

type encoder struct {
	st  *State
	L   *glua.LState
	out []byte
}

func jsonEncode(st *State, L *glua.LState) int {
	if L.GetTop() != 1 {
		return argError(L, 1, "expected 1 argument")
	}
	e := encoder{st: st, L: L, out: st.join[:0]}
	defer st.watch.release(st.watch.reserved)
	e.value(L.Get(1), 0)
	return st.push(L, st.watch.text(e.out))
}

func (e *encoder) value(v glua.LValue, depth int) {
	e.st.watch.step(1)
	e.out = e.st.watch.room(e.out, maxFormatted)
	switch v := v.(type) {
	case glua.LString:
		e.text(string(v))
	case glua.LNumber:
		e.number(float64(v))
	case glua.LBool:
		e.out = strconv.AppendBool(e.out, bool(v))
	case *glua.LTable:
		e.table(v, depth+1)
	case *glua.LUserData:
		if v != e.st.null {
			e.fail("userdata")
		}
		e.out = append(e.out, "null"...)
	default:
		if v == glua.LNil {
			e.out = append(e.out, "null"...)
			return
		}
		e.fail(v.Type().String())
	}
}

func (e *encoder) fail(kind string) {
	raise(e.L, "Cannot serialise %s: type not supported", kind)
}

func (e *encoder) text(s string) {
	e.out = append(e.st.watch.room(e.out, len(s)+2), '"')
	for i := range len(s) {
		e.out = e.st.watch.room(e.out, len(s)-i+6)
		switch c := s[i]; {
		case c == '"', c == '\\', c == '/':
			e.out = append(e.out, '\\', c)
		case c >= 32 && c != 127:
			e.out = append(e.out, c)
		default:
			if at := strings.IndexByte("\b\t\n\f\r", c); at >= 0 {
				e.out = append(e.out, '\\', "btnfr"[at])
			} else {
				e.out = append(e.out, `\u00`...)
				e.out = append(e.out, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
			}
		}
	}
	e.out = append(e.out, '"')
}

func (e *encoder) number(f float64) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		switch e.st.json.encodeInvalid {
		case 0:
			raise(e.L, "Cannot serialise number: must not be NaN or Inf")
		case 2:
			e.out = append(e.out, "null"...)
			return
		}
		if math.IsNaN(f) {
			e.out = append(e.out, "nan"...)
			return
		}
	}
	if e.st.json.precision == 14 {
		e.out = number.Append(e.out, f, 14)
		return
	}
	e.out = strconv.AppendFloat(e.out, f, 'g', e.st.json.precision, 64)
}

func (e *encoder) table(t *glua.LTable, depth int) {
	if depth > min(e.st.json.encodeDepth, mostNested) {
		raise(e.L, "Cannot serialise, excessive nesting (%d)", depth)
	}
	if n := e.length(t); n > 0 {
		e.out = append(e.out, '[')
		for i := 1; i <= n; i++ {
			if i > 1 {
				e.out = append(e.out, ',')
			}
			e.value(element(t, i), depth)
		}
		e.out = append(e.out, ']')
		return
	}
	e.out = append(e.out, '{')
	first := true
	each(t, func(key, v glua.LValue) {
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		e.out = e.st.watch.room(e.out, maxFormatted)
		switch key := key.(type) {
		case glua.LString:
			e.text(string(key))
		case glua.LNumber:
			e.out = append(e.out, '"')
			e.number(float64(key))
			e.out = append(e.out, '"')
		default:
			raise(e.L, "Cannot serialise %s: table key must be a number or string", key.Type())
		}
		e.out = append(e.out, ':')
		e.value(v, depth)
	})
	e.out = append(e.out, '}')
}

// length returns the length of an array, or -1 if the table is an object.
func (e *encoder) length(t *glua.LTable) int {
	most, count, array := 0, 0, true
	each(t, func(key, _ glua.LValue) {
		n, ok := key.(glua.LNumber)
		if !ok || n < 1 || n != glua.LNumber(math.Floor(float64(n))) || n > math.MaxInt32 {
			array = false
			return
		}
		most = max(most, int(n))
		count++
	})
	j := &e.st.json
	if !array {
		return -1
	}
	if j.sparseRatio > 0 && most > count*j.sparseRatio && most > j.sparseSafe {
		if !j.sparseConvert {
			raise(e.L, "Cannot serialise table: excessively sparse array")
		}
		return -1
	}
	return most
}

type decoder struct {
	st    *State
	L     *glua.LState
	src   string
	at    int
	depth int
}

func jsonDecode(st *State, L *glua.LState) int {
	if L.GetTop() != 1 {
		return argError(L, 1, "expected 1 argument")
	}
	defer st.watch.release(st.watch.reserved)
	d := decoder{st: st, L: L, src: checkString(st, L, 1)}
	if len(d.src) > 1 && (d.src[0] == 0 || d.src[1] == 0) {
		return raise(L, "JSON parser does not support UTF-16 or UTF-32")
	}
	d.spaces()
	v := d.value()
	d.spaces()
	if d.at < len(d.src) && d.src[d.at] != 0 { // where C's texts end
		d.fail("the end", d.at)
	}
	L.Push(v)
	return 1
}

func (d *decoder) spaces() {
	for d.at < len(d.src) {
		switch d.src[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

// fail raises the error of Redis for a token that is not what is expected.
func (d *decoder) fail(want string, at int) {
	raise(d.L, "Expected %s but found %s at character %d", want, d.token(want, at), at+1)
}

var punctuation = map[byte]string{
	'{': "T_OBJ_BEGIN", '}': "T_OBJ_END", '[': "T_ARR_BEGIN", ']': "T_ARR_END", ':': "T_COLON", ',': "T_COMMA",
	0: "T_END",
}

// token names the token at a position, as cjson does.
func (d *decoder) token(want string, at int) string {
	if at >= len(d.src) {
		return "T_END"
	}
	rest := d.src[at:]
	name, known := punctuation[rest[0]]
	switch {
	case known:
		return name
	case rest[0] == '"':
		d.at = at
		d.text(want) // may raise an error of its own
		return "T_STRING"
	case d.hasNumber(rest):
		if _, n := longestNumber(rest); n == 0 || !d.st.json.decodeInvalid && invalidNumber(rest) {
			return "invalid number"
		}
		return "T_NUMBER"
	case strings.HasPrefix(rest, "true"), strings.HasPrefix(rest, "false"):
		return "T_BOOLEAN"
	case strings.HasPrefix(rest, "null"):
		return "T_NULL"
	}
	return "invalid token"
}

// hasNumber reports whether cjson reads a number here.
func (d *decoder) hasNumber(rest string) bool {
	return rest[0] == '-' || number.IsDigit(rest[0]) || d.st.json.decodeInvalid && invalidNumber(rest)
}

// invalidNumber reports whether a text begins like a number that JSON does not have.
func invalidNumber(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	switch {
	case s[0] == '+':
		return true
	case strings.HasPrefix(digits, "0"):
		return len(digits) > 1 && (digits[1]|0x20 == 'x' || number.IsDigit(digits[1]))
	}
	return len(digits) > 2 && (strings.EqualFold(digits[:3], "inf") || strings.EqualFold(digits[:3], "nan"))
}

// mostNested is how many levels of tables are encoded or decoded, whatever a script sets: each
// takes Go's stack, whose overflow would end the process. Redis stops there too.
const mostNested = 7997

// longestNumber reads the longest number that a text begins with, as strtod does. n is its length.
func longestNumber(s string) (f float64, n int) {
	if n = numberEnd(s); n == 0 {
		return 0, 0
	}
	f, ok := number.Parse(s[:n])
	if !ok {
		return 0, 0
	}
	return f, n
}

// numberEnd returns where the longest number ends that a text begins with; 0: it begins with none.
func numberEnd(s string) int {
	sign := 0
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign = 1
	}
	digits := s[sign:]
	for _, word := range []string{"infinity", "inf", "nan"} {
		if len(digits) >= len(word) && strings.EqualFold(digits[:len(word)], word) {
			return sign + len(word)
		}
	}
	if len(digits) > 1 && digits[0] == '0' && digits[1]|0x20 == 'x' {
		if n := mantissa(digits[2:], isHex); n > 0 {
			return sign + 2 + n + exponent(digits[2+n:], 'p')
		}
	}
	n := mantissa(digits, number.IsDigit)
	if n == 0 {
		return 0
	}
	return sign + n + exponent(digits[n:], 'e')
}

func isHex(c byte) bool { return number.IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// mantissa returns the length of digits with a point at most; 0: there is no digit.
func mantissa(s string, isDigit func(byte) bool) (n int) {
	points := 0
	for ; n < len(s) && (isDigit(s[n]) || s[n] == '.' && points == 0); n++ {
		if s[n] == '.' {
			points++
		}
	}
	if n == points {
		return 0
	}
	return n
}

// exponent returns the length of an exponent; 0: there is none.
func exponent(s string, letter byte) (n int) {
	if s == "" || s[0]|0x20 != letter {
		return 0
	}
	first := 1
	if len(s) > 1 && (s[1] == '-' || s[1] == '+') {
		first = 2
	}
	for n = first; n < len(s) && number.IsDigit(s[n]); n++ {
	}
	if n == first {
		return 0
	}
	return n
}

func (d *decoder) value() glua.LValue {
	d.st.watch.step(1)
	if d.at >= len(d.src) {
		d.fail("value", d.at)
	}
	rest := d.src[d.at:]
	switch c := rest[0]; {
	case c == '{':
		return d.object()
	case c == '[':
		return d.array()
	case c == '"':
		return glua.LString(d.text("value"))
	case strings.HasPrefix(rest, "true"):
		d.at += 4
		return glua.LTrue
	case strings.HasPrefix(rest, "false"):
		d.at += 5
		return glua.LFalse
	case strings.HasPrefix(rest, "null"):
		d.at += 4
		return d.st.null
	case d.hasNumber(rest):
		return d.number()
	}
	d.fail("value", d.at)
	return nil
}

func (d *decoder) number() glua.LValue {
	f, n := longestNumber(d.src[d.at:])
	d.st.watch.step(n / 16)
	if n == 0 || !d.st.json.decodeInvalid && invalidNumber(d.src[d.at:]) {
		d.fail("value", d.at)
	}
	d.at += n
	return glua.LNumber(f)
}

func (d *decoder) enter() {
	if d.depth++; d.depth > min(d.st.json.decodeDepth, mostNested) {
		raise(d.L, "Found too many nested data structures (%d) at character %d", d.depth, d.at+1)
	}
	d.st.watch.reserve(perTable / 4)
	d.at++
	d.spaces()
}

// ends reports whether an array or an object ends here. If not, the next element follows: after the
// first, a comma is skipped.
func (d *decoder) ends(with byte, first bool, want string) bool {
	d.spaces()
	if d.at < len(d.src) && d.src[d.at] == with {
		d.at++
		d.depth--
		return true
	}
	if !first {
		d.skip(',', want)
	}
	return false
}

// skip skips a byte that has to be here, and spaces after it.
func (d *decoder) skip(c byte, want string) {
	if d.at >= len(d.src) || d.src[d.at] != c {
		d.fail(want, d.at)
	}
	d.at++
	d.spaces()
}

func (d *decoder) array() glua.LValue {
	d.enter()
	t := d.L.CreateTable(4, 0)
	for i := 1; !d.ends(']', i == 1, "comma or array end"); i++ {
		d.st.watch.reserve(2 * perValue)
		t.RawSetInt(i, d.value())
	}
	return t
}

func (d *decoder) object() glua.LValue {
	d.enter()
	t := d.L.CreateTable(0, 4)
	for first := true; !d.ends('}', first, "comma or object end"); first = false {
		if d.at >= len(d.src) || d.src[d.at] != '"' {
			d.fail("object key string", d.at)
		}
		key := d.text("object key string")
		d.spaces()
		d.skip(':', "colon")
		d.st.watch.reserve(perEntry)
		t.RawSetString(key, d.value())
	}
	return t
}

// text reads a string, where want is expected.
func (d *decoder) text(want string) string {
	begin := d.at
	d.at++
	var out []byte
	from := d.at
	for {
		if d.at >= len(d.src) || d.src[d.at] == 0 {
			d.broken(want, "unexpected end of string", d.at)
		}
		switch c := d.src[d.at]; {
		case c == '"':
			d.at++
			d.st.watch.reserve(d.at - begin + perValue)
			d.st.watch.step((d.at - begin) / 16)
			if out == nil {
				return d.st.watch.part(d.src, d.src[from:d.at-1])
			}
			return string(append(out, d.src[from:d.at-1]...))
		case c == '\\':
			out = append(out, d.src[from:d.at]...)
			out = d.escape(out, want)
			from = d.at
		default:
			d.at++
		}
	}
}

// broken raises the error for a string.
func (d *decoder) broken(want, why string, at int) {
	raise(d.L, "Expected %s but found %s at character %d", want, why, at+1)
}

func (d *decoder) escape(out []byte, want string) []byte {
	if d.at+1 >= len(d.src) {
		d.broken(want, "unexpected end of string", d.at+1)
	}
	c := d.src[d.at+1]
	if c == 'u' {
		return d.unicode(out, want)
	}
	at := strings.IndexByte(`"\/bfnrt`, c)
	if at < 0 {
		d.broken(want, "invalid escape code", d.at)
	}
	d.at += 2
	return append(out, "\"\\/\b\f\n\r\t"[at])
}

func (d *decoder) unicode(out []byte, want string) []byte {
	at := d.at
	r, ok := d.hex(at)
	if ok && r >= 0xdc00 && r < 0xe000 {
		ok = false
	}
	d.at += 6
	if ok && r >= 0xd800 && r < 0xdc00 {
		low, fine := d.hex(d.at)
		if ok = fine && low >= 0xdc00 && low < 0xe000; ok {
			r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
			d.at += 6
		}
	}
	if !ok {
		d.broken(want, "invalid unicode escape code", at)
	}
	return utf8.AppendRune(out, r)
}

func (d *decoder) hex(at int) (rune, bool) {
	if at+6 > len(d.src) || d.src[at] != '\\' || d.src[at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(d.src[at+2:at+6], 16, 16)
	return rune(n), err == nil
}

func jsonNew(st *State, L *glua.LState) int {
	L.Push(st.globals.RawGetString("cjson"))
	return 1
}

// jsonNumber sets a number from 1 to most, and returns it.
func jsonNumber(most int, field func(*jsonSettings) *int) function {
	return func(st *State, L *glua.LState) int {
		at := field(&st.json)
		*at = jsonInt(L, 1, *at, 1, most)
		return st.pushInt(L, *at)
	}
}

func jsonFlag(field func(*jsonSettings) *bool) function {
	return func(st *State, L *glua.LState) int {
		at := field(&st.json)
		if v := L.Get(1); v != glua.LNil {
			*at = glua.LVAsBool(v)
		}
		L.Push(glua.LBool(*at))
		return 1
	}
}

func jsonInt(L *glua.LState, n, otherwise, least, most int) int {
	if L.Get(n) == glua.LNil {
		return otherwise
	}
	v := checkInt(L, n)
	if v < least || v > most {
		argError(L, n, "expected integer between "+strconv.Itoa(least)+" and "+strconv.Itoa(most))
	}
	return v
}

func jsonSparse(st *State, L *glua.LState) int {
	j := &st.json
	if v := L.Get(1); v != glua.LNil {
		j.sparseConvert = glua.LVAsBool(v)
	}
	j.sparseRatio = jsonInt(L, 2, j.sparseRatio, 0, math.MaxInt32)
	j.sparseSafe = jsonInt(L, 3, j.sparseSafe, 0, math.MaxInt32)
	L.Push(glua.LBool(j.sparseConvert))
	st.pushInt(L, j.sparseRatio)
	st.pushInt(L, j.sparseSafe)
	return 3
}

func jsonEncodeInvalid(st *State, L *glua.LState) int {
	switch v := L.Get(1); {
	case v == glua.LNil:
	case v == glua.LString("null"):
		st.json.encodeInvalid = 2
	case glua.LVAsBool(v):
		st.json.encodeInvalid = 1
	default:
		st.json.encodeInvalid = 0
	}
	if st.json.encodeInvalid == 2 {
		st.push(L, "null")
	} else {
		L.Push(glua.LBool(st.json.encodeInvalid == 1))
	}
	return 1
}
