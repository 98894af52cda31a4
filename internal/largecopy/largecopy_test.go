package largecopy

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCopiesAreEqual(t *testing.T) {
	for _, n := range []int{0, 1, Piece, Piece + 1, 3*Piece + 7} {
		src := bytes.Repeat([]byte("0123456"), n/7+1)[:n]
		clone := Clone(src)
		assert.True(t, bytes.Equal(src, clone), n)
		for _, before := range []int{0, 3, 2 * Piece} {
			for _, space := range []int{0, n, n + 5} {
				dst := append(make([]byte, 0, before+space), bytes.Repeat([]byte("x"), before)...)
				got := Append(dst, src)
				want := append(bytes.Repeat([]byte("x"), before), src...)
				assert.True(t, bytes.Equal(want, got), "%d after %d", n, before)
				if space >= n && before+n > 0 {
					assert.Same(t, &dst[:1][0], &got[0], "there was space")
				}
			}
		}
		if n > 0 {
			src[0] = 'y'
			assert.Equal(t, byte('0'), clone[0])
		}
	}
	assert.Nil(t, Clone(nil))
}
