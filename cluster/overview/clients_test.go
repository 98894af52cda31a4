package overview

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/cluster/slot"
)

// Clients get a node for each slot, also while there is no leader: this one if it is a replica, or
// else one that is up.
func TestShownHasANodeForEachSlot(t *testing.T) {
	c := Cluster{Name: "a", Nodes: []Node{{Name: "a", Up: true}, {Name: "b"}, {Name: "c", Up: true}}}
	for i, g := range []Group{
		{Leader: "b", Replicas: []string{"b", "a", "c"}}, {Replicas: []string{"b", "a", "c"}},
		{Replicas: []string{"b", "c"}}, {Replicas: []string{"b"}},
	} {
		r := slot.RangeOf(i, 4)
		g.First, g.Last = r.First, r.Last
		c.Groups = append(c.Groups, g)
	}
	for i, want := range []string{"b", "a", "c", "b"} {
		assert.Equal(t, want, c.Shown(&c.Groups[i]).Name)
	}
	assert.Equal(t, []slot.Range{slot.RangeOf(1, 4)}, c.Slots(c.Node("a")))
	assert.Equal(t, []slot.Range{slot.RangeOf(0, 4), slot.RangeOf(3, 4)}, c.Slots(c.Node("b")))
	assert.Equal(t, []slot.Range{slot.RangeOf(2, 4)}, c.Slots(c.Node("c")))
}

func TestAcknowledgedIsWhatAMajorityHasBesideTheLeader(t *testing.T) {
	for _, test := range []struct {
		voters []int
		want   int
	}{
		{nil, 0}, {[]int{0}, 0}, {[]int{1}, 0}, {[]int{2}, 1}, {[]int{3, 0, 4}, 1}, {[]int{5, 5}, 2}, {[]int{3, 1}, 0},
	} {
		var c Cluster
		for _, n := range test.voters {
			c.Groups = append(c.Groups, Group{Voters: n})
		}
		assert.Equal(t, test.want, c.Acknowledged(), "%v", test.voters)
	}
}
