package engine

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// modelHash is a hash as one would write it down: pairs in the order in which their fields came.
type modelHash []pair

func (m *modelHash) index(field string) int {
	return slices.IndexFunc(*m, func(p pair) bool { return p.field == field })
}

func (m *modelHash) set(field, value string) (added bool) {
	if i := m.index(field); i >= 0 {
		(*m)[i].value = value
		return false
	}
	*m = append(*m, pair{field, value})
	return true
}

func (m *modelHash) remove(field string) bool {
	i := m.index(field)
	if i >= 0 {
		*m = slices.Delete(*m, i, i+1)
	}
	return i >= 0
}

func pairsOf(fields func(func(string, string) bool)) (pairs modelHash) {
	for field, value := range fields {
		pairs = append(pairs, pair{field, value})
	}
	return pairs
}

func (m modelHash) sorted() modelHash {
	return slices.SortedFunc(slices.Values(m), func(a, b pair) int { return strings.Compare(a.field, b.field) })
}

// TestHashesAgainstAModel lets a small hash and one around the size where it becomes a table grow
// and shrink.
func TestHashesAgainstAModel(t *testing.T) {
	seed := rand.Uint64()
	for _, fields := range []int{8, 2 * smallHash} {
		rnd := rand.New(rand.NewPCG(seed, 0))
		tape := new(recorder)
		o := Options{Shards: 1, Seed: [2]uint64{seed, 1}, Journal: tape}
		c := newCaller(t, o)
		var model modelHash
		ordered := true
		name := func() string { return fmt.Sprint("field:", rnd.IntN(fields)) }

		for step := range 15 * fields {
			at := fmt.Sprintf("step %d with %d fields of seed %d", step, fields, seed)
			c.with("h", func(k Key) {
				h, err := c.tx.Hash(k)
				require.NoError(t, err, at)
				require.Equal(t, len(model), h.Len(), at)
				switch rnd.IntN(5) {
				case 0, 1, 2:
					f, g, v := name(), name(), fmt.Sprint(rnd.IntN(3))
					want := 0
					for _, field := range []string{f, g} {
						if model.set(field, v) {
							want++
						}
					}
					added, err := c.tx.HSet(k, [][]byte{[]byte(f), []byte(v), []byte(g), []byte(v)})
					require.NoError(t, err, at)
					require.Equal(t, want, added, at)
				case 3:
					f, g := name(), name()
					want := 0
					for _, field := range []string{f, g, f} {
						if model.remove(field) {
							want++
						}
					}
					removed, err := c.tx.HDel(k, [][]byte{[]byte(f), []byte(g), []byte(f)})
					require.NoError(t, err, at)
					require.Equal(t, want, removed, at)
				case 4:
					f := name()
					value, ok := h.Get([]byte(f))
					i := model.index(f)
					require.Equal(t, i >= 0, ok, at)
					require.True(t, i < 0 || model[i].value == value, at)
				}
				h, _ = c.tx.Hash(k)
				ordered = (ordered || len(model) == 0) && len(model) <= smallHash
				require.Equal(t, len(model), h.Len(), at)
				if len(model) > 0 && ordered && (fields < smallHash || step%100 == 0) {
					require.Equal(t, model, pairsOf(h.All()), at)
				}
				require.Equal(t, len(model) > 0, c.tx.Exists(k), at)
			})
		}
		c.with("h", func(k Key) {
			h, _ := c.tx.Hash(k)
			require.Equal(t, model.sorted(), pairsOf(h.All()).sorted(), "seed %d", seed)
		})
		if fields > smallHash {
			require.False(t, ordered, "the hash has never been large, seed %d", seed)
		}
		requireSound(t, c.e)
		require.Equal(t, dump(c.e), dump(tape.replayed(o)), "replayed, seed %d", seed)
	}
}

// sizedHash is a hash of n fields, which are numbered, as are their values.
func sizedHash(n int) (*caller, *hash) {
	c := newCaller(nil, Options{Seed: [2]uint64{3, 4}})
	h := newHash(&c.e.hasher)
	for i := range n {
		h.set(fmt.Appendf(nil, "%d", i), fmt.Appendf(nil, "value %d", i))
	}
	return c, &h
}

func TestCloneOfAHash(t *testing.T) {
	for _, n := range []int{0, 3, smallHash, smallHash + 1} {
		_, h := sizedHash(n)
		before := maps.Collect(h.all())
		c := h.clone()
		require.Equal(t, before, maps.Collect(c.all()), n)

		c.set([]byte("0"), []byte("of the clone"))
		c.set([]byte("more"), []byte("of the clone"))
		c.remove([]byte("1"))
		require.Equal(t, before, maps.Collect(h.all()), n)

		after := maps.Collect(c.all())
		h.set([]byte("2"), []byte("of the original"))
		h.remove([]byte("0"))
		require.Equal(t, after, maps.Collect(c.all()), n)
	}
}

// A scan sees all that is there throughout, whatever comes and goes; of what is there at no time it
// sees nothing.
func TestScanOfAHash(t *testing.T) {
	for _, n := range []int{0, 3, smallHash, 5000} {
		_, h := sizedHash(n)
		seen := make(map[string]string)
		for cursor, calls := uint64(0), 0; calls == 0 || cursor != 0; calls++ {
			cursor = Hash{h}.Scan(cursor, 10, func(field, value string) { seen[field] = value })
			h.set(fmt.Appendf(nil, "passing %d", calls), nil)
			h.remove(fmt.Appendf(nil, "passing %d", calls-1))
		}
		for i := range n {
			require.Equal(t, fmt.Sprint("value ", i), seen[fmt.Sprint(i)], "%d of %d", i, n)
			delete(seen, fmt.Sprint(i))
		}
		for field := range seen {
			require.Contains(t, field, "passing")
		}
	}
	require.Zero(t, Hash{}.Scan(0, 10, func(string, string) { t.Error("a missing key has a field") }))
}

func TestSamplesOfAHash(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 10, smallHash, 3000} {
		_, h := sizedHash(n)
		for _, wanted := range []int64{0, 1, 2, int64(n) / 5, int64(n) / 2, int64(n) - 1, int64(n), int64(n) + 1,
			1 << 62} {
			sample := pairsOf(Hash{h}.Sample(rnd, wanted))
			require.Len(t, sample, int(min(wanted, int64(n))), "%d of %d", wanted, n)
			require.Len(t, maps.Collect(Hash{h}.Sample(rnd, wanted)), len(sample), "%d of %d: a field twice", wanted, n)
			for _, p := range sample {
				require.Equal(t, "value "+p.field, p.value)
			}
		}
		for range (Hash{h}).Sample(rnd, int64(n)/5+1) { // the caller may stop
			break
		}
		require.Len(t, pairsOf(Hash{h}.Pick(rnd, 3*n)), 3*n)
	}
	assert.Empty(t, pairsOf(Hash{}.Sample(rnd, 3)))
	assert.Empty(t, pairsOf(Hash{}.Pick(rnd, 3)))
	_, _, ok := Hash{}.Random(rnd)
	assert.False(t, ok)
}

// Each field is drawn about as often as any other, in whichever way a sample comes about. The
// source of chance is fixed, and so is the outcome.
func TestSamplesOfAHashAreFair(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct{ fields, wanted, samples int }{
		{10, 3, 4000},                         // small
		{smallHash + 88, 20, 4000},            // drawn again and again
		{smallHash + 88, smallHash - 12, 300}, // passed through
	} {
		_, h := sizedHash(c.fields)
		drawn := make(map[string]int)
		for range c.samples {
			for field := range (Hash{h}).Sample(rnd, int64(c.wanted)) {
				drawn[field]++
			}
		}
		chance := float64(c.wanted) / float64(c.fields)
		mean, variance := float64(c.samples)*chance, float64(c.samples)*chance*(1-chance)
		chiSquare := 0.0
		for i := range c.fields {
			off := float64(drawn[fmt.Sprint(i)]) - mean
			chiSquare += off * off / variance
		}
		// The sum of so many squares is about their number, with a deviation of the root of twice
		// that.
		assert.InDelta(t, c.fields, chiSquare, 4*math.Sqrt(2*float64(c.fields)), "%+v", c)
	}
}

// A change to what is there already is none, and the key goes with its last field.
func TestEffectsOfHashes(t *testing.T) {
	tape := new(recorder)
	c := newCaller(t, Options{Journal: tape})
	words := func(line string) (list [][]byte) {
		for _, w := range strings.Fields(line) {
			list = append(list, []byte(w))
		}
		return list
	}
	for _, step := range []struct {
		do   string // + pairs, - fields
		n    int
		want []EffectKind
	}{
		{"+ a 1 b 2", 2, []EffectKind{EffectHashSet, EffectHashSet}},
		{"+ a 1 b 2", 0, nil},
		{"+ a 1 b 3 c 4 c 4", 1, []EffectKind{EffectHashSet, EffectHashSet}},
		{"- nope", 0, nil},
		{"- a nope a", 1, []EffectKind{EffectHashDelete}},
		{"- c b c b", 2, []EffectKind{EffectHashDelete, EffectHashDelete}},
		{"- a", 0, nil},
		{"+ a 1", 1, []EffectKind{EffectHashSet}},
	} {
		tape.calls = nil
		c.with("k", func(k Key) {
			change := c.tx.HSet
			if step.do[0] == '-' {
				change = c.tx.HDel
			}
			n, err := change(k, words(step.do[1:]))
			require.NoError(t, err)
			assert.Equal(t, step.n, n, step.do)
		})
		var kinds []EffectKind
		for _, f := range tape.effects() {
			kinds = append(kinds, f.Kind)
		}
		assert.Equal(t, step.want, kinds, step.do)
	}
}

func BenchmarkHash(b *testing.B) {
	for _, n := range []int{4, 64, smallHash, 100_000} {
		_, h := sizedHash(n)
		field := fmt.Appendf(nil, "%d", n/2)
		b.Run(fmt.Sprint("find/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.find(field)
			}
		})
		b.Run(fmt.Sprint("set/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.set(field, field)
			}
		})
	}
}

// Fields that are kept are those of the moment, whatever changes before they have been gone
// through, and several may go through them.
func TestKeptFieldsStayAsTheyAre(t *testing.T) {
	e := New(Options{})
	tx, k := e.NewTx(), e.Key([]byte("h"))
	all := func(do func()) {
		tx.Begin(epoch, 0, []Key{k}, true)
		defer tx.End()
		do()
	}
	want := make(map[string]string)
	all(func() {
		for i := range 5000 {
			field := fmt.Sprint("f", i)
			want[field] = "v"
			_, err := tx.HSet(k, [][]byte{[]byte(field), []byte("v")})
			require.NoError(t, err)
		}
	})
	var first, second iter.Seq2[string, string]
	all(func() { h, _ := tx.Hash(k); first, second = h.Keep(), h.Keep() })
	change := func(i int) {
		all(func() {
			_, err := tx.HSet(
				k,
				[][]byte{fmt.Append(nil, "f", i), []byte("other"), fmt.Append(nil, "new", i), []byte("new")},
			)
			require.NoError(t, err)
			_, err = tx.HDel(k, [][]byte{fmt.Append(nil, "f", 4999-i)})
			require.NoError(t, err)
		})
	}
	got, changed := make(map[string]string), 0
	for field, value := range first {
		got[field] = value
		if changed < 2000 {
			change(changed)
			changed++
		}
	}
	assert.Equal(t, want, got)
	assert.Equal(t, want, maps.Collect(second))
	all(func() {
		tx.Delete(k)
		h, _ := tx.Hash(k)
		assert.Empty(t, maps.Collect(h.Keep()))
	})
}
