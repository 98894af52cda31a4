package effect

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/dict"
	"rlserver/zset"
)

func TestInByteOrderSortsDecimalTexts(t *testing.T) {
	for _, c := range [][2]uint64{{0, 1}, {0, 1234}, {7, 7}, {9, 12}, {95, 1005}, {12345, 67890},
		{999_999_990, 1_000_000_010}, {1<<63 - 20, 1<<63 - 1}} {
		var got, want []string
		inByteOrder(c[0], c[1], func(n uint64) bool {
			got = append(got, strconv.FormatUint(n, 10))
			return true
		})
		for n := c[0]; n < c[1]; n++ {
			want = append(want, strconv.FormatUint(n, 10))
		}
		slices.Sort(want)
		assert.Equal(t, want, got, c)
	}
}

// Recording many hits at once gives the same log as adding them one by one.
func TestPackedHitsEqualSingleHits(t *testing.T) {
	r, hasher := rand.New(rand.NewPCG(1, 2)), dict.NewHasher(1, 2)
	const epoch = 1_700_000_000_000
	for range 50 {
		packed, single := zset.New(&hasher), zset.New(&hasher)
		if r.IntN(4) == 0 {
			packed.Add([]byte("other"), epoch-1)
			single.Add([]byte("other"), epoch-1)
		}
		at, seq := int64(epoch), uint64(0)
		for range 4 {
			n := int64(1 + r.IntN(4*manyHits))
			Hits{At: at, Seq: seq, N: n}.Record(packed)
			for i := range uint64(n) {
				single.Add(Hits{At: at, Seq: seq}.Member(nil, i), float64(at))
			}
			seq += uint64(n)
			if r.IntN(2) == 0 {
				at, seq = at+1, 0
			}
		}
		require.NoError(t, packed.Check())
		require.Equal(t, single.Len(), packed.Len())
		for i := range single.Len() {
			wantName, wantScore := single.At(i)
			name, score := packed.At(i)
			require.Equal(t, string(wantName), string(name))
			require.Equal(t, wantScore, score)
		}
	}
}
