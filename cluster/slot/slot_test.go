package slot

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The slots are those that CLUSTER KEYSLOT of redis-server 7.0.15 returns.
func TestOfIsRedisClusters(t *testing.T) {
	for key, want := range map[string]int{
		"": 0, "foo": 12182, "somekey": 11058, "123456789": 12739, "foo{hash_tag}": 2515, "hash_tag": 2515,
		"{user1000}.following": 3443, "user1000": 3443, "foo{}{bar}": 8363, "foo{{bar}}zap": 4015, "{bar": 4015,
		"foo{bar}{zap}": 5061, "bar": 5061, "foo{bar": 15278,
	} {
		assert.Equal(t, want, Of([]byte(key)), "%q", key)
	}
}

func TestEachSlotIsInTheRangeOfItsGroup(t *testing.T) {
	for _, groups := range []int{1, 2, 3, 7, 16, 100, 1024} {
		next := 0
		for group := range groups {
			r := RangeOf(group, groups)
			assert.Equal(t, next, r.First)
			next = r.Last + 1
			for s := r.First; s <= r.Last; s++ {
				if Group(s, groups) != group {
					t.Fatalf("slot %d of %d groups is in group %d, want %d", s, groups, Group(s, groups), group)
				}
			}
		}
		assert.Equal(t, Count, next)
	}
}
