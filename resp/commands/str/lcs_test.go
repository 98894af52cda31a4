package str_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/commands/str"
)

func TestLCSIsLimited(t *testing.T) {
	const bulk = 512 << 20
	for _, of := range []struct {
		a, b, bulk int64
		want       error
	}{
		{0, 0, bulk, nil},
		{11584, 11584, bulk, nil},
		{11585, 11585, bulk, str.ErrLCSBound},
		{bulk, 0, bulk, str.ErrLCSBound},
		{bulk/4 - 1, 0, bulk, nil},
		{math.MaxUint32 - 1, 0, math.MaxInt64, str.ErrLCSTooLong},
		{1 << 20, 1 << 20, math.MaxInt64, str.ErrLCSMemory},
	} {
		if err := str.LCSFits(of.a, of.b, of.bulk); of.want == nil {
			assert.NoError(t, err, "%d and %d", of.a, of.b)
		} else {
			assert.Equal(t, of.want, err, "%d and %d", of.a, of.b)
		}
	}
}

// The connection is checked while the table is filled; the call ends when its client is gone.
func TestLCSStopsWhenTheClientIsGone(t *testing.T) {
	a, b := bytes.Repeat([]byte("a"), 10_000), bytes.Repeat([]byte("b"), 10_000)
	checks := 0
	_, ok := str.FillLCS(a, b, true, func() bool { checks++; return checks == 3 })
	assert.False(t, ok)
	assert.Equal(t, 3, checks)
	_, ok = str.FillLCS(a[:100], b, true, func() bool { return true })
	assert.True(t, ok, "too short to check the connection")
}

func BenchmarkLCS(b *testing.B) {
	x, y := bytes.Repeat([]byte("abcdefg"), 300), bytes.Repeat([]byte("gafced"), 300)
	for b.Loop() {
		str.FillLCS(x, y, true, func() bool { return false })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x)*len(y)), "ns/pair")
}
