package effect

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/limit"
)

// The packed form keeps every number, in as many bytes as it needs; no part of an effect is one,
// nor is a number of more than 8 bytes.
func TestPackedForm(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	number := func() int64 {
		n := int64(r.Uint64() >> r.IntN(64))
		switch r.IntN(10) {
		case 0:
			return -n
		case 1:
			return []int64{0, 1, math.MaxInt64, math.MinInt64}[r.IntN(4)]
		}
		return n
	}
	for range 5000 {
		f := Effect{DB: r.IntN(300), ExpireAt: number()}
		f.Key.Name = make([]byte, r.IntN(40))
		switch r.IntN(3) {
		case 0:
			f.Kind, f.Tokens = Bucket, limit.Tokens{Missing: number(), Since: number(), Fraction: uint64(number())}
		case 1:
			f.Kind, f.Count = Window, limit.Count{Start: number(), Length: number(), Used: number()}
		default:
			f.Kind, f.Lo, f.Hits = AddHits, int(number()), Hits{At: number(), Seq: uint64(number()), N: number()}
		}
		b := Append([]byte("before"), &f)[len("before"):]
		reader := Reader{Rest: append(b, "after"...)}
		got := reader.Append(nil)
		require.NoError(t, reader.Err)
		require.Equal(t, f, got[0])
		require.Equal(t, "after", string(reader.Rest))
		for cut := range b {
			reader := Reader{Rest: b[:cut]}
			reader.Append(nil)
			require.ErrorIs(t, reader.Err, ErrEnds)
		}
	}
	bucket := Append(nil, &Effect{Kind: Bucket})
	bucket[3] = 9
	reader := Reader{Rest: append(bucket, make([]byte, 40)...)}
	reader.Append(nil)
	assert.ErrorIs(t, reader.Err, errWide)
	reader = Reader{Rest: []byte{byte(String) | packed, 0, 0, 0, 0}}
	reader.Append(nil)
	assert.ErrorContains(t, reader.Err, "unknown kind")
}
