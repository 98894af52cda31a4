package limit

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random traces; 0 draws one")

// traces runs f n times, each time with its own random source. A failure prints the seed that
// repeats the run.
func traces(t *testing.T, n int, f func(rnd *rand.Rand)) {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	if testing.Short() {
		n = (n + 3) / 4
	}
	for i := range n {
		f(rand.New(rand.NewPCG(seed, uint64(i))))
		if t.Failed() {
			t.Fatalf("trace %d of -seed=%d", i, seed)
		}
	}
}

// between returns a number from lo to hi, both included.
func between(rnd *rand.Rand, lo, hi int64) int64 { return lo + rnd.Int64N(hi-lo+1) }

// epoch is the time at which tests begin: 2026-01-01T00:00:00Z.
const epoch int64 = 1767225600000

// ms reads an instant of RFC 3339.
func ms(t testing.TB, s string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

// zone loads a time zone.
func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// sliceLog is a Log on a sorted slice. It counts lookups.
type sliceLog struct {
	times  []float64
	asked  int // calls of After
	looked int // calls of At
}

func logOf(times ...float64) *sliceLog { return &sliceLog{times: times} }

func (l *sliceLog) Len() int { return len(l.times) }

func (l *sliceLog) At(i int) float64 {
	l.looked++
	return l.times[i]
}

func (l *sliceLog) After(t float64) int {
	l.asked++
	lo, hi := 0, len(l.times)
	for lo < hi {
		mid := (lo + hi) / 2
		if l.times[mid] <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (l *sliceLog) add(t float64, n int64) {
	for range n {
		l.times = slices.Insert(l.times, l.After(t), t)
	}
}
