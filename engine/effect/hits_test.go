package effect

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/dict"
	"rlserver/zset"
)

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
			n := int64(1 + r.IntN(4096))
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

// Runs that are decoded are those that were encoded; no part of a run is one, nor is damage.
func TestRunsAreDecodedAsEncoded(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var want, got []Hits
		var value []byte
		last := int64(0)
		for range 1 + r.IntN(5) {
			before := len(value)
			h := Hits{At: min(last+r.Int64N(1<<r.IntN(52)), zset.MaxTime), N: 1}
			h.Seq = uint64(r.IntN(2)) * r.Uint64N(1<<r.IntN(53))
			if r.IntN(2) == 0 {
				h.N = 1 + r.Int64N(int64(min(zset.MaxSeq-h.Seq+1, MaxHits)))
			}
			value, want = AppendRun(value, last, h), append(want, h)
			last = h.At
			for cut := before + 1; cut < len(value); cut++ {
				require.False(t, FitRuns(value[:cut]))
			}
		}
		require.True(t, FitRuns(value))
		for h := range EachRun(value) {
			got = append(got, h)
		}
		require.Equal(t, want, got)
	}
	assert.False(t, FitRuns(nil))
	late := Hits{At: zset.MaxTime, N: 1}
	assert.False(t, FitRuns(AppendRun(AppendRun(nil, 0, late), zset.MaxTime-1, late)),
		"a time after the last")
}

// Hits for the future, which a client has written, do not end the sequence.
func TestSequenceAfterHitsForTheFuture(t *testing.T) {
	var q Sequence
	q.Use(2000, 20)
	for want := range uint64(3) {
		first, _ := q.Next(nil, 1000, 1)
		require.Equal(t, want, first)
		q.Use(1000, first+1)
		q.SkipUsed()
	}
}

// What an effect changes besides its key is known of each kind.
func TestKindsThatChangeOnlyTheirKey(t *testing.T) {
	for _, k := range Kinds() {
		more := k.HasTo() || k == Move
		assert.Equal(t, k.ChangesKey() && !more, k.ChangesOnlyKey(), "%v", k)
		has := k.Fields()
		assert.Equal(t, has&(HasTo|HasToDB) != 0 && k.ChangesKey(), more, "%v", k)
	}
}
