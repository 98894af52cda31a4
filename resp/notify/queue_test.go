package notify

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/change"
	"rlserver/resp/config"
	"rlserver/resp/pubsub"
	"rlserver/resp/tracking"
)

// stuck is a journal that keeps nothing until it is released.
type stuck struct{ released chan struct{} }

func (stuck) Append(int64, []byte) engine.Position { return 1 }
func (j stuck) Wait(engine.Position) error         { <-j.released; return nil }

// Changes of nobody's calls wait for the journal. There is a bound on how many, and the rest is
// counted.
func TestQueueIsBounded(t *testing.T) {
	j := stuck{make(chan struct{})}
	e := engine.New(engine.Options{Journal: j})
	settings := config.NewSettings(config.Defaults{})
	channels, tracked := pubsub.New(&settings.PubSub), tracking.New(&settings.Tracking)
	l := New(channels, tracked, new(atomic.Uint32), &settings.PubSub.Changes)
	l.Attach(e.Memory())
	settings.PubSub.Changes.Store(100)
	list := make([]change.Change, 51)
	l.hear(e, engine.Changes{Named: list}, 1)
	require.Eventually(t, func() bool { // it waits for the journal with the first
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.queues[e].size == 0
	}, time.Minute, time.Millisecond)
	l.hear(e, engine.Changes{Named: list}, 2)
	l.hear(e, engine.Changes{Named: list}, 3)
	assert.EqualValues(t, len(list), l.Dropped.Load())
	close(j.released)
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.queues) == 0
	}, time.Minute, time.Millisecond, "the goroutine ends")
}
