package integration

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rueidis has a command for GCRA, sends the calls of all goroutines in one pipeline, and uses
// client-side caching.
func TestRueidis(t *testing.T) {
	t.Parallel()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{startServer(t).addr}})
	require.NoError(t, err)
	defer client.Close()
	gcra := func(key string, burst int64) []int64 {
		command := client.B().Gcra().Key(key).MaxBurst(burst).TokensPerPeriod(1).Period(86400.5).Build()
		answer, err := client.Do(t.Context(), command).AsIntSlice()
		assert.NoError(t, err)
		return answer
	}

	assert.Equal(t, []int64{0, 2, 1, -1, 86401}, gcra("k", 1))
	admitted := gcra("k", 1)
	assert.Equal(t, []int64{0, 2, 0, -1}, admitted[:4])
	denied := gcra("k", 1)
	assert.Equal(t, []int64{1, 2, 0}, denied[:3])
	assert.InDelta(t, 86401, denied[3], 3600, "until there is a token, less the time since the first call")
	assert.InDelta(t, 172801, denied[4], 3600, "until all are there")

	command := client.B().Gcra().Key("four").MaxBurst(9).TokensPerPeriod(10).Period(86400).Count(4).Build()
	four, err := client.Do(t.Context(), command).AsIntSlice()
	require.NoError(t, err)
	assert.Equal(t, []int64{0, 10, 6, -1, 34560}, four)

	var admissions atomic.Int64
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for range 10 {
				if gcra("shared", 99)[0] == 0 {
					admissions.Add(1)
				}
			}
		})
	}
	callers.Wait()
	assert.EqualValues(t, 100, admissions.Load())
}
