package grammar

import (
	"bufio"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recordedInts are the results of INCRBY k <in> on a zero in Redis 7.0.15; "" is an error.
var recordedInts = []struct{ in, want string }{
	{"", ""},
	{"0", "0"},
	{"-0", ""},
	{"+0", ""},
	{"00", ""},
	{"01", ""},
	{"-01", ""},
	{"1", "1"},
	{"-1", "-1"},
	{"+1", ""},
	{"-", ""},
	{"+", ""},
	{"--1", ""},
	{" 1", ""},
	{"1 ", ""},
	{"1\n", ""},
	{"1.0", ""},
	{"1e3", ""},
	{"0x1", ""},
	{"a", ""},
	{"9", "9"},
	{"10", "10"},
	{"-10", "-10"},
	{"123456789", "123456789"},
	{"999999999999999999", "999999999999999999"},
	{"1000000000000000000", "1000000000000000000"},
	{"9223372036854775806", "9223372036854775806"},
	{"9223372036854775807", "9223372036854775807"},
	{"9223372036854775808", ""},
	{"-9223372036854775807", "-9223372036854775807"},
	{"-9223372036854775808", "-9223372036854775808"},
	{"-9223372036854775809", ""},
	{"9999999999999999999", ""},
	{"-9999999999999999999", ""},
	{"10000000000000000000", ""},
	{"18446744073709551615", ""},
	{"18446744073709551616", ""},
	{"27670116110564327425", ""},
	{"1000000000000000000000000000000", ""},
	{"1\x00", ""},
	{"1_0", ""},
}

func TestParseIntMatchesRedis(t *testing.T) {
	for _, c := range recordedInts {
		n, ok := ParseInt([]byte(c.in))
		assert.Equal(t, c.want != "", ok, "%q", c.in)
		if ok {
			assert.Equal(t, c.want, strconv.FormatInt(n, 10), "%q", c.in)
		}
	}
}

// longText stands for a result of hundreds of digits, see testdata/incrbyfloat.txt.
const longText = "long"

// recordedFloats are the results in Redis 7.0.15 of ZADD k <in> m, read by ZSCORE, and of
// INCRBYFLOAT k <in> on a missing key. "" is the error "not a valid float", "inf" the error "would
// produce NaN or Infinity".
var recordedFloats = []struct{ in, score, sum string }{
	{"", "", ""},
	{"1", "1", "1"},
	{"-1", "-1", "-1"},
	{"+1", "1", "1"},
	{"+", "", ""},
	{"-", "", ""},
	{"--1", "", ""},
	{"+-1", "", ""},
	{" 1", "", ""},
	{"1 ", "", ""},
	{"\t1", "", ""},
	{"1\n", "", ""},
	{"\v1", "", ""},
	{"1\x00", "", ""},
	{"\x001", "", ""},
	{"01", "1", "1"},
	{"00", "0", "0"},
	{"-01", "-1", "-1"},
	{"-0", "-0", "0"},
	{"+0", "0", "0"},
	{"0", "0", "0"},
	{"0.0", "0", "0"},
	{"-0.0", "-0", "0"},
	{".5", "0.5", "0.5"},
	{"5.", "5", "5"},
	{"-.5", "-0.5", "-0.5"},
	{"+.5", "0.5", "0.5"},
	{".", "", ""},
	{"-.", "", ""},
	{"1e5", "100000", "100000"},
	{"1E5", "100000", "100000"},
	{"1e+5", "100000", "100000"},
	{"1e-5", "1.0000000000000001e-05", "0.00001"},
	{"1e", "", ""},
	{"1e+", "", ""},
	{"1e-", "", ""},
	{"e5", "", ""},
	{".e5", "", ""},
	{"1.5e3", "1500", "1500"},
	{"1e5.5", "", ""},
	{"1e05", "100000", "100000"},
	{"1e 5", "", ""},
	{"1_000", "", ""},
	{"1,5", "", ""},
	{"0x10", "16", "16"},
	{"0X10", "16", "16"},
	{"0x1p4", "16", "16"},
	{"0x1P4", "16", "16"},
	{"0x1p", "", ""},
	{"0x1p+", "", ""},
	{"0x", "", ""},
	{"0x.", "", ""},
	{"0x.8", "0.5", "0.5"},
	{"0x1.", "1", "1"},
	{"0x1.8", "1.5", "1.5"},
	{"0x1.8p1", "3", "3"},
	{"-0x1p-2", "-0.25", "-0.25"},
	{"0xg", "", ""},
	{"0x1e5", "485", "485"},
	{"0xp1", "", ""},
	{"0x.p1", "", ""},
	{"1p4", "", ""},
	{"inf", "inf", "inf"},
	{"INF", "inf", "inf"},
	{"Inf", "inf", "inf"},
	{"+inf", "inf", "inf"},
	{"-inf", "-inf", "inf"},
	{"infinity", "inf", "inf"},
	{"-INFINITY", "-inf", "inf"},
	{"+Infinity", "inf", "inf"},
	{"infi", "", ""},
	{"infinit", "", ""},
	{"infinityx", "", ""},
	{"infx", "", ""},
	{"in", "", ""},
	{"nan", "", ""},
	{"NaN", "", ""},
	{"-nan", "", ""},
	{"nan(1)", "", ""},
	{"nan()", "", ""},
	{"1e308", "1e+308", longText},
	{"1.7976931348623157e308", "1.7976931348623157e+308", longText},
	{"1.7976931348623158e308", "1.7976931348623157e+308", longText},
	{"1.7976931348623159e308", "", longText},
	{"1e309", "", longText},
	{"-1e309", "", longText},
	{"1e400", "", longText},
	{"1e-307", "9.9999999999999991e-308", "0"},
	{"1e-308", "9.9999999999999991e-309", "0"},
	{"4.9406564584124654e-324", "4.9406564584124654e-324", "0"},
	{"5e-324", "4.9406564584124654e-324", "0"},
	{"2.5e-324", "4.9406564584124654e-324", "0"},
	{"2.4703282292062328e-324", "4.9406564584124654e-324", "0"},
	{"2.4703282292062327e-324", "", "0"},
	{"2e-324", "", "0"},
	{"1e-400", "", "0"},
	{"-1e-400", "", "0"},
	{"0e400", "0", "0"},
	{"0e-400", "0", "0"},
	{"0e99999999999999999999", "0", "0"},
	{"0.0e-99999999999999999999", "0", "0"},
	{"1e99999999999999999999", "", ""},
	{"1e-99999999999999999999", "", ""},
	{"1e00000000000000000001", "10", "10"},
	{"0x1p1023", "8.9884656743115795e+307", longText},
	{"0x1.fffffffffffffp1023", "1.7976931348623157e+308", longText},
	{"0x1.fffffffffffff7p1023", "1.7976931348623157e+308", longText},
	{"0x1.fffffffffffff8p1023", "", longText},
	{"0x1p1024", "", longText},
	{"0x1p-1074", "4.9406564584124654e-324", "0"},
	{"0x1p-1075", "", "0"},
	{"0x1.1p-1075", "4.9406564584124654e-324", "0"},
	{"0x0p99999", "0", "0"},
	{"0x1p-99999", "", ""},
	{"0x1p99999", "", ""},
	{"9007199254740993", "9007199254740992", "9007199254740993"},
	{"9007199254740992.5", "9007199254740992", "9007199254740992.5"},
	{"123456789012345678", "1.2345678901234568e+17", "123456789012345678"},
	{"0.1", "0.10000000000000001", "0.1"},
	{"0.30000000000000004", "0.30000000000000004", "0.30000000000000004"},
	{"1a", "", ""},
	{"1d", "", ""},
	{"1f", "", ""},
	{"0b1", "", ""},
	{"0o7", "", ""},
	{"1e5f", "", ""},
	{"1L", "", ""},
	{"(1", "", ""},
	{"\xd9\xa1", "", ""},
	{"0x1.8p01", "3", "3"},
	{"0x00000000000000000000000000001", "1", "1"},
	{"9223372036854775807", "9.2233720368547758e+18", "9223372036854775807"},
	{"9223372036854775808", "9.2233720368547758e+18", "9223372036854775808"},
}

func TestParseFloatMatchesRedis(t *testing.T) {
	for _, c := range recordedFloats {
		f, ok := ParseFloat([]byte(c.in))
		assert.Equal(t, c.score != "", ok, "%q", c.in)
		if ok {
			assert.Equal(t, c.score, string(AppendFloat(nil, f)), "%q", c.in)
		}
	}
}

func TestParseLongDoubleMatchesRedis(t *testing.T) {
	for _, c := range recordedFloats {
		f, ok := ParseLongDouble([]byte(c.in))
		assert.Equal(t, c.sum != "", ok, "%q", c.in)
		switch {
		case !ok || c.sum == longText:
		case c.sum == "inf":
			assert.True(t, f.IsInf(), "%q", c.in)
		default:
			assert.Equal(t, c.sum, string(AppendLongDouble(nil, f)), "%q", c.in)
		}
	}
}

// Redis copies the text of a long double to a NUL-terminated buffer of 5 KB. The length of a double
// is not limited.
func TestLengthOfNumbers(t *testing.T) {
	fits := []byte(strings.Repeat("0", 5118) + "1")
	f, ok := ParseFloat(fits)
	assert.True(t, ok && f == 1)
	long, ok := ParseLongDouble(fits)
	require.True(t, ok)
	assert.Equal(t, "1", string(AppendLongDouble(nil, long)))

	tooLong := append([]byte("0"), fits...)
	f, ok = ParseFloat(tooLong)
	assert.True(t, ok && f == 1)
	_, ok = ParseLongDouble(tooLong)
	assert.False(t, ok)

	balanced := []byte("0." + strings.Repeat("0", 400) + "1e400")
	f, ok = ParseFloat(balanced)
	assert.True(t, ok && f == 0.1)
	long, ok = ParseLongDouble(balanced)
	require.True(t, ok)
	assert.Equal(t, "0.1", string(AppendLongDouble(nil, long)))
}

// goldenLines calls f with each line of a golden file except for the first, which is a description.
func goldenLines(t *testing.T, name string, f func(line string)) {
	file, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	require.True(t, lines.Scan())
	n := 0
	for ; lines.Scan(); n++ {
		f(lines.Text())
	}
	require.NoError(t, lines.Err())
	require.Greater(t, n, 400)
}

func TestAppendFloatMatchesRedis(t *testing.T) {
	goldenLines(t, "doubles.txt", func(line string) {
		fields := strings.Fields(line)
		require.Len(t, fields, 3)
		bits, err := strconv.ParseUint(fields[0], 16, 64)
		require.NoError(t, err)
		got := string(AppendFloat(nil, math.Float64frombits(bits)))
		require.Equal(t, fields[1], got, "RESP2")
		require.Equal(t, fields[2], ","+got, "RESP3")
	})
}

func TestLongDoubleSumsMatchRedis(t *testing.T) {
	goldenLines(t, "incrbyfloat.txt", func(line string) {
		fields := strings.Split(line, "\t")
		require.Len(t, fields, 3)
		require.Equal(t, fields[2], incrByFloat(fields[0], fields[1]), "%.99s + %.99s", fields[0], fields[1])
	})
}

// Scores are never NaN, but Go's text for NaN differs from C's.
func TestAppendFloatOfNaN(t *testing.T) {
	assert.Equal(t, "score nan", string(AppendFloat([]byte("score "), math.NaN())))
}

// incrByFloat is INCRBYFLOAT.
func incrByFloat(value, increment string) string {
	a, ok1 := ParseLongDouble([]byte(value))
	b, ok2 := ParseLongDouble([]byte(increment))
	if !ok1 || !ok2 {
		return "-ERR value is not a valid float"
	}
	sum, ok := AddLongDouble(a, b)
	if !ok {
		return "-ERR increment would produce NaN or Infinity"
	}
	return string(AppendLongDouble(nil, sum))
}

func TestParseFloatReadsWhatAppendFloatWrites(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 30_000 {
		f := math.Float64frombits(rnd.Uint64())
		if rnd.IntN(2) == 0 {
			f = float64(rnd.Int64()>>rnd.IntN(64)) / math.Pow10(rnd.IntN(12))
		}
		if math.IsNaN(f) {
			continue
		}
		text := AppendFloat(nil, f)
		back, ok := ParseFloat(text)
		require.True(t, ok, "%s, seed %d", text, seed)
		require.Equal(t, math.Float64bits(f), math.Float64bits(back), "%s, seed %d", text, seed)
	}
}

func TestNumbersDoNotAllocate(t *testing.T) {
	integer, score := []byte("-1234567890"), []byte("1700000000000.25")
	var buf [32]byte
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		ParseInt(integer)
		f, _ := ParseFloat(score)
		AppendFloat(buf[:0], f)
	}))
}

func FuzzParseFloat(f *testing.F) {
	for _, c := range recordedFloats {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, okDouble := ParseFloat(b)
		long, okLong := ParseLongDouble(b)
		switch {
		case !okLong && okDouble:
			require.GreaterOrEqual(
				t,
				len(b),
				longDoubleMaxText,
				"%q is accepted as a double, but not as a long double",
				b,
			)
		case okDouble && !math.IsInf(d, 0):
			// rounding twice may differ from rounding once by one step
			near, _ := long.Float64()
			steps := int64(math.Float64bits(d)) - int64(math.Float64bits(near))
			require.LessOrEqual(t, max(steps, -steps), int64(1), "%q", b)
		}
		if okLong && !long.IsInf() {
			text := AppendLongDouble(nil, long)
			_, ok := ParseLongDouble(text)
			require.True(t, ok, "%q gave %q", b, text)
		}
	})
}

func BenchmarkParseInt(b *testing.B) {
	text := []byte("1700000000000")
	b.ReportAllocs()
	for b.Loop() {
		ParseInt(text)
	}
}

func BenchmarkParseFloat(b *testing.B) {
	for _, text := range []string{"1700000000000", "1700000000000.25", "0.1", "1e-5"} {
		b.Run(text, func(b *testing.B) {
			in := []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				ParseFloat(in)
			}
		})
	}
}

func BenchmarkAppendFloat(b *testing.B) {
	for _, f := range []float64{1700000000000, 1700000000000.25, 0.1, 1e100} {
		b.Run(strconv.FormatFloat(f, 'g', -1, 64), func(b *testing.B) {
			var buf [32]byte
			b.ReportAllocs()
			for b.Loop() {
				AppendFloat(buf[:0], f)
			}
		})
	}
}

func BenchmarkAddLongDouble(b *testing.B) {
	var sum *big.Float
	b.ReportAllocs()
	for b.Loop() {
		x, _ := ParseLongDouble([]byte("10.5"))
		y, _ := ParseLongDouble([]byte("0.1"))
		sum, _ = AddLongDouble(x, y)
	}
	_ = sum
}
