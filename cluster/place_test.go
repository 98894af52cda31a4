package cluster

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/mux"
)

// spread checks that all groups have their replicas on members that stay, evenly.
func spread(t *testing.T, m *Map) {
	t.Helper()
	require.NoError(t, m.check())
	replicas, leads := map[string]int{}, map[string]int{}
	for _, n := range m.staying() {
		replicas[n.Name], leads[n.Name] = 0, 0
	}
	for _, names := range m.Replicas {
		require.Len(t, names, min(replication, len(replicas)))
		seen := map[string]bool{}
		for _, name := range names {
			require.Contains(t, replicas, name)
			require.False(t, seen[name], "two replicas on one node")
			seen[name] = true
			replicas[name]++
		}
		leads[names[0]]++
	}
	for _, counts := range []map[string]int{replicas, leads} {
		nodes := sorted(counts)
		assert.LessOrEqual(t, counts[nodes[len(nodes)-1]]-counts[nodes[0]], 1, "%v %v", replicas, leads)
	}
}

func moved(before, after *Map) (n int) {
	for g := range before.Replicas {
		for _, name := range after.Replicas[g] {
			found := false
			for _, b := range before.Replicas[g] {
				found = found || b == name
			}
			if !found {
				n++
			}
		}
	}
	return n
}

func TestReplicasAreSpread(t *testing.T) {
	for _, groups := range []int{1, 4, 16, 100} {
		m := newMap(mux.ClusterID{1}, "n0", []Member{{Name: "n0"}}, groups)
		for size := 2; size <= 9; size++ {
			before, next := m, m.next()
			next.Members = append(next.Members, Member{Name: fmt.Sprint("n", size-1)})
			next.place()
			spread(t, next)
			assert.LessOrEqual(t, moved(before, next), groups*3/min(size, 3)+1, "%d groups, %d nodes", groups, size)
			again := next.next()
			again.place()
			assert.Equal(t, next.Replicas, again.Replicas, "nothing is left to do")
			m = next
		}
		for left := 8; left >= 1; left-- {
			next := m.next()
			next.Members[left].Leaving = true
			next.place()
			spread(t, next)
			next.Members = next.Members[:left]
			m = next
		}
	}
}
