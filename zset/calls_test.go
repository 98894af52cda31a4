package zset

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFreeNumbers(t *testing.T) {
	const most = MaxNumber
	s := New(&hasher)
	assert.Equal(t, [][2]uint64{{1, 8}}, s.FreeNumbers([]byte("a"), 7))
	s.AddCall(5, []byte("a"), 3, 1<<50)
	assert.Equal(t, [][2]uint64{{1, 3}, {3 + 1<<50, 8 + 1<<50}}, s.FreeNumbers([]byte("a"), 7))
	s.Add([]byte("a"), 1)
	s.Add([]byte("a:2"), 1)
	s.Add([]byte("a:02"), 1)
	s.Add(fmt.Append(nil, "a:", 5+1<<50), 1)
	for _, n := range []uint64{2, 3, 50} { // fewer than others, as many, and more
		want := [][2]uint64{{3 + 1<<50, 5 + 1<<50}}
		if n > 2 {
			want = append(want, [2]uint64{6 + 1<<50, 6 + 1<<50 + n - 2})
		}
		assert.Equal(t, want, s.FreeNumbers([]byte("a"), n))
	}
	assert.Equal(t, [][2]uint64{{1, 4}}, s.FreeNumbers([]byte("b"), 3))
	s.AddCall(6, []byte("a"), 6+1<<50, most-10-(6+1<<50)+1)
	assert.Equal(t, [][2]uint64{{3 + 1<<50, 5 + 1<<50}, {most - 9, most + 1}}, s.FreeNumbers([]byte("a"), 100),
		"there are no more")
}
