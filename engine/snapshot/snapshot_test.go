package snapshot

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/engine/counts"
	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/engine/table"
)

// Keys whose hashes are the same are visited once each, as they were, whatever happens to the
// others with their hash; and the walk forgets the hashes of keys that are gone.
func TestKeysWithTheSameHash(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		places := 1 + r.Uint64N(4000)
		hash := func(name string) uint64 {
			n, _ := strconv.ParseUint(name, 10, 64)
			return n % places << 52
		}
		var idle counts.Sum
		keys := table.New(hash, &idle)
		put := func(name, value string) {
			o := object.NewString([]byte(name))
			o.Value = []byte(value)
			keys.Insert(hash(name), o)
		}
		names := make([]string, 1000)
		want, now := map[string]string{}, map[string]string{}
		for i := range names {
			names[i] = strconv.Itoa(i)
			if r.IntN(2) == 0 {
				want[names[i]], now[names[i]] = "before", "before"
				put(names[i], "before")
			}
		}
		var mu sync.Mutex
		s := New(1, nil, nil, func(end func()) { end() })
		w := s.Walk(&mu, 0, keys)
		got := map[string]string{}
		for more := true; more; {
			more = s.Step(func(effects []effect.Effect) {
				require.Len(t, effects, 1)
				name := string(effects[0].Key.Name)
				require.NotContains(t, got, name, "visited twice")
				got[name] = string(effects[0].Value)
			})
			for range r.IntN(100) {
				name := names[r.IntN(len(names))]
				place := hash(name)
				if o := keys.Find(place, []byte(name)); o != nil {
					s.Keep(w, place)
					keys.Remove(place, o)
					delete(now, name)
					w.Removed(place)
				}
				if r.IntN(2) == 0 {
					s.Keep(w, place)
					put(name, "after")
					now[name] = "after"
				}
			}
			used := map[uint64]bool{}
			for name := range now {
				used[hash(name)] = true
			}
			require.LessOrEqual(t, w.Overtaken(), len(used))
		}
		require.Equal(t, want, got)
		require.Equal(t, len(now), keys.Len())
	}
}
