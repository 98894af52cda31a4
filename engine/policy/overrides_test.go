package policy

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/dict"
)

func newOverrides() *Overrides {
	h := dict.NewHasher(1, 2)
	return NewOverrides(func(key string) uint64 { return h.Sum([]byte(key)) })
}

// The table does what a map does, and a cut stays as it was.
func TestOverridesAreLikeAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	table, model := newOverrides(), map[string]Override{}
	for step := range 20_000 {
		most := 1 + 40*(step/1000%10) // it grows and shrinks
		key := fmt.Sprintf("p%d:{%d}", r.IntN(3), r.IntN(most))
		hash := table.hash(key)
		switch r.IntN(8) {
		case 0, 1, 2, 3:
			o := Override{Key: key, Definition: fmt.Sprintf("SLIDE %d 1m", r.IntN(1e6)), Since: uint64(r.IntN(1e4))}
			table.Put(o)
			model[key] = o
		case 4, 5, 6:
			_, want := model[key]
			require.Equal(t, want, table.Delete(hash, []byte(key)))
			delete(model, key)
		case 7:
			if r.IntN(200) == 0 {
				cut, before := table.Cut(), len(model)
				deleted := table.DeleteAll("p1")
				for k, o := range model {
					if o.Of("p1") {
						delete(model, k)
						deleted--
					}
				}
				require.Zero(t, deleted)
				for range cut {
					before--
				}
				require.Zero(t, before)
			}
		}
		o, ok := table.Find(hash, []byte(key))
		want, has := model[key]
		require.Equal(t, has, ok)
		require.Equal(t, want, o)
		require.Equal(t, len(model), table.Len())
	}
	for key, want := range model {
		o, ok := table.Find(table.hash(key), []byte(key))
		require.True(t, ok)
		require.Equal(t, want, o)
	}
	assert.Equal(t, "7", (&Override{Key: "p1:{7}"}).ID())
}

// What is there all the time is visited, though the table grows and shrinks in between.
func TestScanVisitsOverrides(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		table := newOverrides()
		for i := range 100 {
			table.Put(Override{Key: fmt.Sprintf("p:{%d}", i), Definition: "SLIDE 1 1m"})
		}
		seen := map[string]int{}
		for cursor, more := uint64(0), true; more; {
			cursor, more = table.Scan(cursor, 5, func(o Override) { seen[o.Key]++ })
			for range r.IntN(60) {
				table.Put(Override{Key: fmt.Sprintf("q:{%d}", r.IntN(1000)), Definition: "SLIDE 1 1m"})
			}
			if r.IntN(8) == 0 {
				table.DeleteAll("q")
			}
		}
		for i := range 100 {
			require.Positive(t, seen[fmt.Sprintf("p:{%d}", i)])
		}
	}
}

// A million overrides with numbers of their own take at most 100 bytes each.
func TestOverridesTakeLittleMemory(t *testing.T) {
	const shards, each = 8, 1_000_000 / 64
	before := heap()
	var tables []*Overrides
	sum := int64(0)
	for s := range shards {
		table := newOverrides()
		for i := range each {
			table.Put(Override{
				Key:        fmt.Sprintf("requests:{customer-%07d}", s*each+i),
				Definition: fmt.Sprintf("TOKEN %d %d 1m", 1000+i, 100+i), Since: 1000,
			})
		}
		tables = append(tables, table)
		sum += table.Bytes()
	}
	taken := float64(heap()-before) / shards / each
	t.Logf("%.1f bytes each, counted as %.1f", taken, float64(sum)/shards/each)
	assert.Less(t, taken, 100.0)
	assert.InDelta(t, taken, float64(sum)/shards/each, 10)
	runtime.KeepAlive(tables)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestSplitKey(t *testing.T) {
	for _, c := range []struct {
		key, name, id string
		ok            bool
	}{
		{"p:{7}", "p", "7", true}, {"a:b:{7}", "a:b", "7", true}, {"p:{}}", "p", "}", true},
		{"p:{a:{b}}", "p", "a:{b}", true},
		{"p:{}", "p", "", true}, {":{7}", "", "7", true},
		{"", "", "", false}, {"}", "", "", false},
		{"p:{", "", "", false}, {"p:{7", "", "", false}, {"p{7}", "", "", false},
	} {
		name, id, ok := SplitKey(c.key)
		assert.Equal(t, []any{c.name, c.id, c.ok}, []any{name, id, ok}, c.key)
		of, _, ok := SplitKey([]byte(c.key))
		assert.Equal(t, []any{c.name, c.ok}, []any{string(of), ok}, c.key)
	}
}
