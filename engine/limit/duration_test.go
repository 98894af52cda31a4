package limit

import (
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]int64{
		"1": 1000, "60": 60_000, "0.5": 500, "00.50": 500, "007s": 7000,
		"250ms": 250, "1ms": 1, "1s": 1000, "1.5m": 90_000, "24h": dayMs, "7d": 7 * dayMs, "2w": 14 * dayMs,
		"0.001": 1, "1.0ms": 1, "1.0010000": 1001, "0.999": 999, "0.1w": 60_480_000, "0.00005m": 3,
		"1." + strings.Repeat("0", 5000) + "s": 1000,
		strings.Repeat("0", 5000) + "1s":       1000,
		"315360000":                            MaxDuration, "3650d": MaxDuration, "315360000000ms": MaxDuration,
		"315359999.999": MaxDuration - 1, "521.4w": 521*7*dayMs + 4*7*dayMs/10,
	} {
		if got, ok := ParseDuration([]byte(in)); !ok || got != want {
			t.Errorf("%.40q: got %d, %v, want %d", in, got, ok, want)
		}
	}
	for _, in := range []string{
		"0.0010001", "1.0001ms", "1.1ms", "1.0000001", "0.9995", "999.1ms", "0.000000002w",
		"0.333333333333333333333333333h",
		"315359999.9999999", "1." + strings.Repeat("0", 5000) + "1s",
		"0.0005", "0.0000001", "0.1ms", "0.5ms", "0.999ms", "0.000000000001w", "0.00001m",
		"", "-1", "+1", ".5", "5.", "5.s", ".", "1e3", "1 s", " 1s", "1s ", "0", "0.0000", "0ms", "0w", "1S", "1MS",
		"1Ms", "1y", "1sec", "1mss",
		"s", "ms", "1..5", "1.5.5", "1,5", "0x10", "1_000", "inf", "nan", "١", "1\x00", "1s1s",
		"315360001", "315360000.0000001", "315360000000.1ms", "3651d", "522w", "9223372036854775807",
		"9223372036854775808ms",
		"18446744073709551617", strings.Repeat("9", 5000), strings.Repeat("9", 5000) + "x",
	} {
		if got, ok := ParseDuration([]byte(in)); ok {
			t.Errorf("%.40q: got %d, want none", in, got)
		}
	}
}

var durationGrammar = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w|)$`)

func FuzzParseDuration(f *testing.F) {
	for _, in := range []string{"250ms", "1.5m", "0.0005", "10", "3650d", "3650.0001d", "0.14285714285714285714w",
		"1e3", "-1", "5.", ""} {
		f.Add([]byte(in))
	}
	lengths := map[string]int64{"ms": 1, "": 1000, "s": 1000, "m": 60e3, "h": 3600e3, "d": 86400e3, "w": 604800e3}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, ok := ParseDuration(in)
		parts := durationGrammar.FindSubmatch(in)
		if parts == nil {
			if ok {
				t.Errorf("%q is not a duration, got %d", in, got)
			}
			return
		}
		exact, _ := new(big.Rat).SetString(string(parts[1]))
		want := ceilRat(exact.Mul(exact, new(big.Rat).SetInt64(lengths[string(parts[2])])))
		valid := exact.IsInt() && want.Sign() > 0 && want.Cmp(big.NewInt(MaxDuration)) <= 0
		if ok != valid || valid && got != want.Int64() {
			t.Errorf("%q: got %d, %v, want %v, %v", in, got, ok, want, valid)
		}
	})
}

func TestParseCalendar(t *testing.T) {
	for in, want := range map[string]Unit{
		"minute": Minute, "HOUR": Hour, "Day": Day, "wEEk": Week, "month": Month, "YEAR": Year,
	} {
		if got, ok := ParseCalendar([]byte(in)); !ok || got != want {
			t.Errorf("%q: got %v, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "d", "days", "da", "second", "wee\u212a", "hour ", "YE\x01R", "mo-th"} {
		if got, ok := ParseCalendar([]byte(in)); ok {
			t.Errorf("%q: got %v", in, got)
		}
	}
}

func TestDurationTextIsParsedBack(t *testing.T) {
	for ms, want := range map[int64]string{1: "1ms", 999: "999ms", 1000: "1s", 1500: "1500ms", 60_000: "1m",
		90_000: "90s", 86_400_000: "1d", MaxDuration: "3650d"} {
		if got := DurationText(ms); got != want {
			t.Errorf("%d: got %s, want %s", ms, got, want)
		}
	}
	traces(t, 1000, func(rnd *rand.Rand) {
		ms := extreme(rnd, MaxDuration)
		if got, ok := ParseDuration([]byte(DurationText(ms))); !ok || got != ms {
			t.Errorf("%d is written %s, and read %d, %v", ms, DurationText(ms), got, ok)
		}
	})
}
