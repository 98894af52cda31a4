package importer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPaceHoldsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := newPace(100), time.Now()
		for range 10 {
			require.NoError(t, p.take(t.Context(), 50))
		}
		assert.Equal(t, 4500*time.Millisecond, time.Since(began), "the last units are on their way")
		require.NoError(t, newPace(0).take(t.Context(), 1<<40))

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		require.NoError(t, p.take(ctx, 1_000_000))
		began = time.Now()
		assert.Equal(t, context.Canceled, p.take(ctx, 1))
		assert.Less(t, time.Since(began), 2*time.Second)
	})
}
