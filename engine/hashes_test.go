package engine

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/object"
)

// modelHash is the reference implementation of a hash: pairs in the order of insertion.
type modelHash []modelField

type modelField struct{ name, value string }

func (m *modelHash) index(field string) int {
	return slices.IndexFunc(*m, func(p modelField) bool { return p.name == field })
}

func (m *modelHash) set(field, value string) (added bool) {
	if i := m.index(field); i >= 0 {
		(*m)[i].value = value
		return false
	}
	*m = append(*m, modelField{field, value})
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
		pairs = append(pairs, modelField{field, value})
	}
	return pairs
}

func (m modelHash) sorted() modelHash {
	return slices.SortedFunc(slices.Values(m), func(a, b modelField) int { return strings.Compare(a.name, b.name) })
}

// TestHashesMatchModel grows and shrinks a small hash and one around the size at which it becomes a
// table.
func TestHashesMatchModel(t *testing.T) {
	seed := rand.Uint64()
	for _, fields := range []int{8, 2 * object.SmallHash} {
		rnd := rand.New(rand.NewPCG(seed, 0))
		log := new(recorder)
		o := Options{Shards: 1, Seed: [2]uint64{seed, 1}, Journal: log}
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
				ordered = (ordered || len(model) == 0) && len(model) <= object.SmallHash
				require.Equal(t, len(model), h.Len(), at)
				if len(model) > 0 && ordered && (fields < object.SmallHash || step%100 == 0) {
					require.Equal(t, model, pairsOf(h.All()), at)
				}
				require.Equal(t, len(model) > 0, c.tx.Exists(k), at)
			})
		}
		c.with("h", func(k Key) {
			h, _ := c.tx.Hash(k)
			require.Equal(t, model.sorted(), pairsOf(h.All()).sorted(), "seed %d", seed)
		})
		if fields > object.SmallHash {
			require.False(t, ordered, "the hash has never been large, seed %d", seed)
		}
		requireSound(t, c.e)
		require.Equal(t, dump(c.e), dump(log.replayed(o)), "replayed, seed %d", seed)
	}
}

// Setting a field to its value is not a change, and a key is deleted with its last field.
func TestHashChangesRecordOnlyChangedFields(t *testing.T) {
	log := new(recorder)
	c := newCaller(t, Options{Journal: log})
	words := func(line string) (list [][]byte) {
		for _, w := range strings.Fields(line) {
			list = append(list, []byte(w))
		}
		return list
	}
	for _, step := range []struct {
		do   string // + pairs, - fields
		n    int
		want []effect.Kind
	}{
		{"+ a 1 b 2", 2, []effect.Kind{effect.HashSet, effect.HashSet}},
		{"+ a 1 b 2", 0, nil},
		{"+ a 1 b 3 c 4 c 4", 1, []effect.Kind{effect.HashSet, effect.HashSet}},
		{"- nope", 0, nil},
		{"- a nope a", 1, []effect.Kind{effect.HashDelete}},
		{"- c b c b", 2, []effect.Kind{effect.HashDelete, effect.HashDelete}},
		{"- a", 0, nil},
		{"+ a 1", 1, []effect.Kind{effect.HashSet}},
	} {
		log.calls = nil
		c.with("k", func(k Key) {
			change := c.tx.HSet
			if step.do[0] == '-' {
				change = c.tx.HDel
			}
			n, err := change(k, words(step.do[1:]))
			require.NoError(t, err)
			assert.Equal(t, step.n, n, step.do)
		})
		var kinds []effect.Kind
		for _, f := range log.effects() {
			kinds = append(kinds, f.Kind)
		}
		assert.Equal(t, step.want, kinds, step.do)
	}
}

// Keep returns the fields at one point in time, even if they change during the iteration, and
// several iterations may run.
func TestKeptFieldsDoNotChange(t *testing.T) {
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
