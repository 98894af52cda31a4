package zset

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Hits that are appended to packed hits are those that a set would get.
func TestAppendIsAddHits(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	appended, refused := 0, 0
	for range 2000 {
		var b Borrowed
		p := Packed{Data: make([]byte, 0, r.IntN(60))}
		set := b.Load(nil, &p)
		now := r.Int64N(1e13)
		set.AddHits(now, uint64(r.IntN(3)), 1+r.Uint64N(3))
		require.True(t, set.Packed(&p))
		p.Data = append(make([]byte, 0, len(p.Data)+r.IntN(40)), p.Data...)
		for range 20 {
			now += r.Int64N(4) * r.Int64N(1<<r.IntN(30))
			seq, n := uint64(r.IntN(2)*r.IntN(300)), 1+uint64(r.IntN(2)*r.IntN(300))
			before, room := p, cap(p.Data)-len(p.Data)
			ok := Append(&p, now, seq, n)
			if !ok {
				require.Equal(t, before, p, "seed %d", seed)
				refused++
				if p.At < now {
					require.Less(t, room, 32, "seed %d", seed)
					break
				}
				continue
			}
			appended++
			before.Data = slices.Clone(before.Data)
			set := b.Load(nil, &before)
			set.AddHits(now, seq, n)
			var want Packed
			require.True(t, set.Packed(&want))
			require.Equal(t, want, p, "seed %d", seed)
		}
	}
	require.Greater(t, appended, 1000)
	require.Greater(t, refused, 1000)
	p := Packed{Data: make([]byte, 0, 100), At: maxName - 1, First: maxName - 1, N: 1}
	require.False(t, Append(&p, maxName+1, 0, 1), "a member with such a time is no hit")
}
