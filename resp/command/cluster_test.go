package command

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/cluster/slot"
)

// Clients get a node for each slot, also while there is no leader: this one if it is a replica, or
// else one that is up.
func TestShownHasANodeForEachSlot(t *testing.T) {
	v := ClusterView{
		Me:     "a",
		Nodes:  []ClusterNode{{ID: "a", Up: true}, {ID: "b"}, {ID: "c", Up: true}},
		Groups: [][]string{{"b", "a", "c"}, {"", "b", "a", "c"}, {"", "b", "c"}, {"", "b"}},
	}
	for group, want := range []string{"b", "a", "c", "b"} {
		assert.Equal(t, want, v.Shown(group))
	}
	assert.Equal(t, []slot.Range{slot.RangeOf(1, 4)}, v.Slots("a"))
	assert.Equal(t, []slot.Range{slot.RangeOf(0, 4), slot.RangeOf(3, 4)}, v.Slots("b"))
	assert.Equal(t, []slot.Range{slot.RangeOf(2, 4)}, v.Slots("c"))
}

func TestAcknowledgedIsWhatAMajorityHasBesideTheLeader(t *testing.T) {
	for _, test := range []struct {
		voters []int
		want   int
	}{
		{nil, 0}, {[]int{0}, 0}, {[]int{1}, 0}, {[]int{2}, 1}, {[]int{3, 0, 4}, 1}, {[]int{5, 5}, 2}, {[]int{3, 1}, 0},
	} {
		v := ClusterView{Voters: test.voters}
		assert.Equal(t, test.want, v.Acknowledged(), "%v", test.voters)
	}
}
