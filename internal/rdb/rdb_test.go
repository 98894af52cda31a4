package rdb

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorded is a payload that Redis 7.0.15 wrote, or read if it only reads that encoding, and its
// content in Redis.
type recorded struct {
	Name    string
	Payload string   // in hexadecimal
	Content []string // the type, then the content in the order of names, quoted as in Go
}

func (r *recorded) bytes(t testing.TB) []byte {
	b, err := hex.DecodeString(r.Payload)
	require.NoError(t, err, r.Name)
	return b
}

func allRecorded(t testing.TB) []recorded {
	return recordedIn(t, "testdata/payloads-7.0.15.jsonl")
}

func recordedIn(t testing.TB, path string) (all []recorded) {
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range bytes.Lines(file) {
		var r recorded
		require.NoError(t, json.Unmarshal(line, &r))
		all = append(all, r)
	}
	return all
}

func quoted(b []byte) string {
	var text strings.Builder
	for _, c := range b {
		if 32 <= c && c < 127 && c != '"' && c != '\\' {
			text.WriteByte(c)
		} else {
			fmt.Fprintf(&text, "\\x%02x", c)
		}
	}
	return text.String()
}

// content returns a value in the form of recorded.
func content(v Value) []string {
	var pairs [][2]string
	kind := "hash"
	switch v.Kind {
	case String:
		return []string{"string", quoted(v.Text)}
	case Hash:
		for i := 0; i < len(v.Elements); i += 2 {
			pairs = append(pairs, [2]string{string(v.Elements[i]), string(v.Elements[i+1])})
		}
	case List, Set:
		list := []string{map[Kind]string{List: "list", Set: "set"}[v.Kind]}
		for _, e := range v.Elements {
			list = append(list, quoted(e))
		}
		if v.Kind == Set {
			slices.Sort(list[1:])
		}
		return list
	case SortedSet:
		kind = "zset"
		for _, m := range v.Members {
			score := strconv.FormatFloat(m.Score, 'g', -1, 64)
			pairs = append(pairs, [2]string{string(m.Name), score})
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	list := []string{kind}
	for _, p := range pairs {
		list = append(list, quoted([]byte(p[0])), quoted([]byte(p[1])))
	}
	return list
}

func TestDecodeReadsWhatRedisWrites(t *testing.T) {
	for _, r := range allRecorded(t) {
		t.Run(r.Name, func(t *testing.T) {
			v, err := decode(r.bytes(t), math.MaxInt64)
			if kind := r.Content[0]; kind == "stream" {
				assert.Equal(t, ForeignError(kind), err)
				return
			}
			require.NoError(t, err)
			want, got := r.Content, content(v)
			if v.Kind == SortedSet {
				want, got = scored(t, want), scored(t, got)
			}
			assert.Equal(t, want, got)
			assert.Equal(t, content(v), content(decoded(t, encode(v))), "written and read again")
		})
	}
}

// scored returns a copy with scores in canonical form.
func scored(t *testing.T, list []string) []string {
	list = slices.Clone(list)
	for i := 2; i < len(list); i += 2 {
		f, err := strconv.ParseFloat(list[i], 64)
		require.NoError(t, err)
		list[i] = fmt.Sprint(f)
	}
	return list
}

func encode(v Value) []byte {
	var b []byte
	switch v.Kind {
	case String:
		b = AppendString(b, v.Text)
	case Hash:
		b = AppendHash(b, len(v.Elements)/2)
		for _, text := range v.Elements {
			b = AppendText(b, text)
		}
	case List, Set:
		b = AppendList(b, len(v.Elements))
		if v.Kind == Set {
			b = AppendSet(nil, len(v.Elements))
		}
		for _, text := range v.Elements {
			b = AppendText(b, text)
		}
	case SortedSet:
		b = AppendSortedSet(b, len(v.Members))
		for _, m := range v.Members {
			b = AppendMember(b, m.Name, m.Score)
		}
	default:
		b = AppendLimiter(b, v.Kind, v.Numbers)
	}
	return AppendFooter(b)
}

func decoded(t testing.TB, payload []byte) Value {
	v, err := decode(payload, math.MaxInt64)
	require.NoError(t, err)
	return v
}

// Strings that Redis does not deflate are written exactly as by Redis.
func TestStringsAreWrittenAsByRedis(t *testing.T) {
	same := 0
	for _, r := range allRecorded(t) {
		payload := r.bytes(t)
		if payload[0] != typeString || payload[1] == encodedLZF {
			continue
		}
		same++
		assert.Equal(t, r.Payload, hex.EncodeToString(encode(decoded(t, payload))), r.Name)
	}
	assert.Greater(t, same, 15)
}

func TestLimitersAreRestored(t *testing.T) {
	for _, v := range []Value{
		{Kind: "rl.token", Numbers: Numbers{1, -2, math.MaxInt64, 3}},
		{Kind: "rl.fixed", Numbers: Numbers{math.MinInt64, 7}},
		{Kind: "rl.counter", Numbers: Numbers{1, 2, 3, 4}}} {
		got := decoded(t, encode(v))
		assert.Equal(t, v.Numbers, got.Numbers)
		assert.Equal(t, v.Kind, got.Kind)
	}
}

// sealed returns a payload with a valid checksum.
func sealed(body string) []byte { return AppendFooter([]byte(body)) }

func TestDecodeRefusesInvalidPayloads(t *testing.T) {
	listpack := func(kind byte, entries string, count byte) []byte {
		size := 7 + len(entries)
		return sealed(string([]byte{kind, byte(size), byte(size), 0, 0, 0, count, 0}) + entries + "\xff")
	}
	newer := sealed("\x00\x01a")
	newer[len(newer)-footerSize] = version + 1 // the checksum is that of another version
	for _, of := range []struct {
		what    string
		payload []byte
		want    error
	}{
		{"nothing", nil, ErrChecksum},
		{"no footer", []byte("123456789"), ErrChecksum},
		{"a newer version", newer, ErrChecksum},
		{"another byte", append([]byte("x"), sealed("\x00\x01a")...), ErrChecksum},
		{"no type", sealed(""), ErrFormat},
		{"an unknown type", sealed("\x08\x01a"), ErrFormat},
		{"no string", sealed("\x00"), ErrFormat},
		{"a string that is too short", sealed("\x00\x05abc"), ErrFormat},
		{"a string with a huge length", sealed("\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff"), ErrFormat},
		{"an unknown encoding", sealed("\x00\xc4abc"), ErrFormat},
		{"an integer that is cut off", sealed("\x00\xc2\x01"), ErrFormat},
		{"a hash of nothing", sealed("\x04\x00"), ErrFormat},
		{"a hash that lacks a value", sealed("\x04\x01\x01a"), ErrFormat},
		{"a hash with a huge count", sealed("\x04\x80\xff\xff\xff\xff\x01a\x01b"), ErrFormat},
		{"a field twice", sealed("\x04\x02\x01a\x01b\x01a\x01c"), ErrFormat},
		{"a sorted set of nothing", sealed("\x05\x00"), ErrFormat},
		{"a score that is cut off", sealed("\x05\x01\x01a1234567"), ErrFormat},
		{"NaN", sealed("\x05\x01\x01a\x01\x00\x00\x00\x00\x00\xf8\x7f"), ErrFormat},
		{"NaN in the old form", sealed("\x03\x01\x01a\xfd"), ErrFormat},
		{"a score that is no number", sealed("\x03\x01\x01a\x02xy"), ErrFormat},
		{"a member twice", sealed("\x03\x02\x01a\xfe\x01a\xff"), ErrFormat},
		{"LZF from before the beginning", sealed("\x00\xc3\x03\x04\x00a\x20"), ErrFormat},
		{"LZF that makes too little", sealed("\x00\xc3\x02\x04\x00a"), ErrFormat},
		{"LZF that makes too much", sealed("\x00\xc3\x05\x02\x00a\x40\x00\x00"), ErrFormat},
		{"LZF that promises the impossible", sealed("\x00\xc3\x02\x80\x7f\xff\xff\xff\x00a"), ErrFormat},
		{"a listpack of nothing", listpack(typeHashListpack, "", 0), ErrFormat},
		{"a listpack that lacks a value", listpack(typeHashListpack, "\x81a\x02", 1), ErrFormat},
		{"a listpack with a wrong count", listpack(typeHashListpack, "\x81a\x02\x01\x01", 3), ErrFormat},
		{"a listpack with a wrong back length", listpack(typeHashListpack, "\x81a\x03\x01\x01", 2), ErrFormat},
		{"a listpack with a long entry", listpack(typeHashListpack, "\xf0\xff\xff\xff\xff\x01", 1), ErrFormat},
		{"a listpack with an unknown entry", listpack(typeHashListpack, "\xf5\x01\x01\x01", 2), ErrFormat},
		{"a listpack with an invalid score", listpack(typeZSetListpack, "\x81a\x02\x81b\x02", 2), ErrFormat},
		{"a ziplist with a wrong tail",
			sealed("\x0d\x0f\x0f\x00\x00\x00\x0b\x00\x00\x00\x02\x00\x00\xf1\x02\xf2\xff"), ErrFormat},
		{"a zipmap that ends early", sealed("\x09\x04\x01\x01a\xff"), ErrFormat},
		{"a set of nothing", sealed("\x02\x00"), ErrFormat},
		{"a list of nothing", sealed("\x12\x00"), ErrFormat},
		{"a member twice", sealed("\x02\x02\x01a\x01a"), ErrFormat},
		{"a list of unknown runs", sealed("\x12\x01\x03\x01a"), ErrFormat},
		{"integers of 3 bytes", sealed("\x0b\x0b\x03\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00"), ErrFormat},
		{"integers that are cut off", sealed("\x0b\x09\x02\x00\x00\x00\x01\x00\x00\x00\x01"), ErrFormat},
		{"an integer twice",
			sealed("\x0b\x0c\x02\x00\x00\x00\x02\x00\x00\x00\x01\x00\x01\x00"), ErrFormat},
		{"a module", sealed("\x07"), ForeignError("module's value")},
		{"numbers that are cut off", sealed("\xc8\x02\x02"), ErrFormat},
	} {
		_, err := decode(of.payload, math.MaxInt64)
		assert.Equal(t, of.want, err, of.what)
	}
	v, err := decode(listpack(typeHashListpack, "\x81a\x02\x01\x01", 2), math.MaxInt64)
	require.NoError(t, err)
	assert.Equal(t, []string{"hash", "a", "1"}, content(v))
	v, err = decode(listpack(typeSetListpack, "\x81a\x02\x01\x01", 2), math.MaxInt64)
	require.NoError(t, err)
	assert.Equal(t, []string{"set", "1", "a"}, content(v))
}

// However small a payload is, decode allocates no more memory than allowed.
func TestDecodeKeepsItsMemoryLimit(t *testing.T) {
	bomb := []byte{0, 'a'} // then the byte before, 264 times, repeatedly
	for range 10_000 {
		bomb = append(bomb, 0xe0, 0xff, 0)
	}
	payload := append(appendLength([]byte{typeString, encodedLZF}, uint64(len(bomb))), appendLength(nil, 2_640_001)...)
	payload = AppendFooter(append(payload, bomb...))
	v, err := decode(payload, 10<<20)
	require.NoError(t, err)
	assert.Len(t, v.Text, 2_640_001)
	allocs := testing.AllocsPerRun(1, func() { _, err = decode(payload, 1<<20) })
	assert.Equal(t, ErrTooLarge, err)
	assert.Less(t, allocs, 20.0)

	many := AppendHash(nil, 50_000)
	for i := range 50_000 {
		many = AppendText(AppendText(many, strconv.Itoa(i)), "")
	}
	many = AppendFooter(many)
	_, err = decode(many, 1<<20)
	assert.Equal(t, ErrTooLarge, err)
	v, err = decode(many, 32<<20)
	require.NoError(t, err)
	assert.Len(t, v.Elements, 100_000)
}

// FuzzDecode gives decode bodies with a valid checksum, as an attacker can. Refused ones are cheap.
func FuzzDecode(f *testing.F) {
	for _, r := range allRecorded(f) {
		if payload := r.bytes(f); len(payload) < 4<<10 {
			f.Add(payload[:len(payload)-footerSize])
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		const most = 1 << 20
		payload := AppendFooter(slices.Clone(body))
		var v Value
		var err error
		if spent := cost(func() { v, err = decode(payload, most) }); err != nil {
			require.LessOrEqual(t, spent, 4*len(payload)+fixed)
			return
		}
		require.LessOrEqual(t, v.Size, int64(most))
		again, err := decode(encode(v), math.MaxInt64)
		require.NoError(t, err)
		v.Size, again.Size = 0, 0
		require.Equal(t, v, again)
	})
}

// decode decodes a payload, and allocates at most limit bytes for it. See Check.
func decode(payload []byte, limit int64) (Value, error) {
	p, err := Check(payload, limit)
	if err != nil {
		return Value{}, err
	}
	return p.Value()
}
