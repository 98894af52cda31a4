package tracking

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The prefixes of a key are those that it begins with, whatever was added and removed before.
func TestPrefixesOfKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func(most int) string {
		b := make([]byte, r.IntN(most+1))
		for i := range b {
			b[i] = "abc"[r.IntN(3)]
		}
		return string(b)
	}
	var s prefixes
	clients := []*Client{{}, {}, {}}
	want := make(map[string]map[*Client]bool)
	for range 20_000 {
		name, c := text(5), clients[r.IntN(len(clients))]
		if want[name][c] {
			s.remove(name, c)
			if delete(want[name], c); len(want[name]) == 0 {
				delete(want, name)
			}
		} else {
			s.add(name, c)
			if want[name] == nil {
				want[name] = make(map[*Client]bool)
			}
			want[name][c] = true
		}
		key := text(8)
		var got, all []string
		for p := s.longest(key); p != nil; p = p.parent {
			require.Len(t, p.clients, len(want[p.name]))
			got = append(got, p.name)
		}
		for p := range want {
			if strings.HasPrefix(key, p) {
				all = append(all, p)
			}
		}
		slices.Sort(got)
		slices.Sort(all)
		require.Equal(t, all, got, key)
	}
	require.Len(t, s.list, len(want))
}
