package hitlog

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type hit struct {
	at  int64
	seq uint64
}

func (h hit) text() string { return strconv.FormatUint(h.seq, 10) }

func order(a, b hit) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.text(), b.text())) }

// model is the reference implementation of a Log.
type model []hit

func (m *model) add(h hit) {
	if i, found := slices.BinarySearchFunc(*m, h, order); !found {
		*m = slices.Insert(*m, i, h)
	}
}

func (m model) before(at int64, text string) int {
	i, _ := slices.BinarySearchFunc(m, at, func(h hit, at int64) int {
		if h.at < at || h.at == at && h.text() < text {
			return -1
		}
		return 1
	})
	return i
}

func requireSame(t *testing.T, m model, l *Log) {
	t.Helper()
	require.NoError(t, l.Check())
	require.Equal(t, len(m), l.Len())
	var up, down model
	l.plain.Ascend(0, l.Len(), func(at int64, seq uint64) bool { up = append(up, hit{at, seq}); return true })
	require.Equal(t, m, up)
	l.plain.Descend(0, l.Len(), func(at int64, seq uint64) bool { down = append(down, hit{at, seq}); return true })
	slices.Reverse(down)
	require.Equal(t, m, down)
}

func requireAnswers(t *testing.T, r *rand.Rand, m model, l *Log, at int64, seq uint64) {
	t.Helper()
	_, found := slices.BinarySearchFunc(m, hit{at, seq}, order)
	require.Equal(t, found, l.Has(at, seq))
	require.Equal(t, m.before(at+1, ""), l.After(at))
	text := []string{
		strconv.FormatUint(seq, 10), fmt.Sprint(seq, "\x00"), "", "0", "00", "0x", "~", "/", fmt.Sprint(seq, "/"),
		fmt.Sprint(seq, ":"), fmt.Sprint(seq/10, ":7"), "99999999999999999999", "1", "1/", fmt.Sprintf("0%d", seq),
	}[r.IntN(15)]
	require.Equal(t, m.before(at, text), l.plain.Before(at, []byte(text)), "%d %q", at, text)
	end := uint64(0)
	for _, h := range m {
		if h.at == at && seq <= h.seq && h.seq < seq+20 {
			end = max(end, h.seq+1)
		}
	}
	got := l.EndIn(at, seq, seq+20)
	require.Equal(t, end == 0, got == 0)
	for require.GreaterOrEqual(t, got, end); end < got; end++ {
		require.True(t, l.Has(at, end), "the hits up to there are in a row")
	}
	if len(m) == 0 {
		return
	}
	i := r.IntN(len(m))
	foundAt, foundSeq := l.plain.At(i)
	require.Equal(t, m[i], hit{foundAt, foundSeq}, "rank %d", i)
	require.Equal(t, m[i].at, l.TimeAt(i))
	lo := r.IntN(len(m))
	hi := lo + r.IntN(min(30, len(m)-lo)+1)
	var up, down model
	visit := func(at int64, seq uint64) bool { up = append(up, hit{at, seq}); return true }
	require.True(t, l.plain.Ascend(lo, hi, visit))
	require.Equal(t, []hit(m[lo:hi]), append([]hit{}, up...))
	l.plain.Descend(lo, hi, func(at int64, seq uint64) bool { down = append(down, hit{at, seq}); return true })
	slices.Reverse(down)
	require.Equal(t, []hit(m[lo:hi]), append([]hit{}, down...))
}

// history is a distribution of random changes.
type history struct {
	name  string
	steps int
	ms    int64  // the clock runs by up to so many ms, mostly
	back  int    // in so many of 100 additions hits come anywhere
	cost  uint64 // at most
	gap   uint64 // between numbers of a millisecond, at most
	most  int    // hits that are kept
	drop  int    // in so many of 100 steps some hits are removed
}

var histories = []history{
	{name: "single hits", steps: 2000, ms: 3, cost: 1, gap: 1, most: 700, drop: 10},
	{name: "rare", steps: 1000, ms: 100_000, cost: 1, gap: 1, most: 300, drop: 3},
	{name: "calls of any cost", steps: 500, ms: 5, cost: 400, gap: 30, most: 2000, drop: 20},
	{name: "one millisecond", steps: 500, ms: 0, cost: 30, gap: 200, most: 2000, drop: 40},
	{name: "fragments", steps: 1500, ms: 0, cost: 1, gap: 3, back: 90, most: 1000, drop: 20},
	{name: "any order", steps: 1000, ms: 2, back: 80, cost: 12, gap: 50, most: 1000, drop: 30},
}

func TestLogMatchesModel(t *testing.T) {
	for _, h := range histories {
		t.Run(h.name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			h.run(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func (h history) run(t *testing.T, r *rand.Rand) {
	l, m := new(Log), model(nil)
	var old *Log
	var oldModel model
	now, end := int64(1_700_000_000_000), uint64(0)
	begun := now
	for step := range h.steps {
		at, lo := now, end
		switch {
		case r.IntN(100) < h.drop && len(m) > 0:
			lo := [4]int{0, 0, r.IntN(len(m)), max(0, len(m)-5)}[r.IntN(4)]
			n := [4]int{1, 7, len(m) - h.most, r.IntN(len(m))}[r.IntN(4)]
			hi := min(len(m), lo+max(0, min(n, len(m)/4+1)))
			l.RemoveSpan(lo, hi)
			m = slices.Delete(m, lo, hi)
		case r.IntN(100) < h.back:
			at = begun - 5 + r.Int64N(now-begun+10)
			lo = r.Uint64N(h.cost*h.gap*1000 + 1)
			fallthrough
		default:
			if at == now && lo == end {
				if by := r.Int64N(h.ms + 1); by > 0 && r.IntN(3) > 0 {
					now, end = now+by, 0
				}
				at, lo = now, end+r.Uint64N(h.gap)
			}
			n := 1 + r.Uint64N(h.cost)
			l.Add(at, lo, lo+n)
			for i := range n {
				m.add(hit{at, lo + i})
			}
			if at == now {
				end = max(end, lo+n)
			}
		}
		if over := len(m) - h.most; over > 0 {
			l.RemoveSpan(0, over)
			m = slices.Delete(m, 0, over)
		}
		if r.IntN(100) == 0 {
			old, oldModel = l.Clone(), slices.Clone(m)
			if r.IntN(2) == 0 {
				l, old = old, l
			}
		}
		seq := r.Uint64N(end + 5)
		if len(m) > 0 && r.IntN(2) == 0 {
			x := m[r.IntN(len(m))]
			at, seq = x.at, x.seq
		}
		requireAnswers(t, r, m, l, at, seq)
		if step%100 == 0 {
			requireSame(t, m, l)
			if old != nil {
				requireSame(t, oldModel, old)
			}
		}
	}
	requireSame(t, m, l)
	l.RemoveSpan(0, l.Len())
	requireSame(t, nil, l)
}

// However many hits with gaps between their numbers one millisecond has, a lookup decodes little.
func TestGapsWithinAMillisecondKeepChunksSmall(t *testing.T) {
	const hits = 20_000
	var l Log
	for i := range uint64(hits) {
		l.Add(1, 2*i, 2*i+1)
		require.LessOrEqual(t, l.tail.size(), maxTail+maxEntry)
	}
	require.NoError(t, l.Check())
	require.Equal(t, hits, l.Len())
	require.Zero(t, testing.AllocsPerRun(10, func() {
		if !l.Has(1, hits) || l.Has(1, hits+1) {
			panic("wrong")
		}
	}))
}
