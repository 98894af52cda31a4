package wire

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// numbers yields those around each power of ten, negative and random ones.
func numbers(yield func(int64) bool) {
	for power := int64(1); power > 0 && power <= math.MaxInt64/10; power *= 10 {
		for _, n := range []int64{power - 1, power, power + 1, -power} {
			if !yield(n) {
				return
			}
		}
	}
	for range 1000 {
		if !yield(int64(rand.Uint64()) >> rand.IntN(64)) {
			return
		}
	}
	_ = yield(math.MaxInt64) && yield(math.MinInt64)
}

func TestHeadersOfAllNumbers(t *testing.T) {
	for n := range numbers {
		want := "before:" + strconv.FormatInt(n, 10) + "\r\n"
		b := AppendHeader(append(make([]byte, 0, rand.IntN(40)), "before"...), ':', n)
		require.Equal(t, want, string(b))
	}
}

func TestIntegersAreAnArray(t *testing.T) {
	var r, single Reply
	for n := range numbers {
		list := []int64{n, 1, -n, 123456}[:rand.IntN(5)]
		r.Integers(list)
		single.Array(len(list))
		for _, n := range list {
			single.Integer(n)
		}
		require.Equal(t, string(single.B), string(r.B))
	}
}

// tooLarge is a limit of replies.
type tooLarge int

func (most tooLarge) MayReply(size, _ int) int {
	if size > int(most) {
		return 0
	}
	return int(most) + 1
}

// A reply of integers that is too large is truncated, as others are.
func TestIntegersOfATruncatedReply(t *testing.T) {
	r := Reply{Limiter: tooLarge(100)}
	for range 100 {
		r.Integers([]int64{1, 2, 3, 4, 5})
	}
	assert.True(t, r.Truncated)
	assert.Less(t, len(r.B), 200, fmt.Sprintf("%q", r.B))
}
