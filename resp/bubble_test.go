package resp

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"rlserver/engine"
	"rlserver/internal/storage"
	"rlserver/resp/command/commandtest"
)

// bubble is a server in a synctest bubble, with the clock of the bubble.
type bubble struct {
	*commandtest.Bubble
	*testServer
}

// inBubble runs a test in a synctest bubble, where time passes when all goroutines wait.
func inBubble(t *testing.T, test func(t *testing.T, b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		m := commandtest.NewMirror(t, 16)
		b := newBubble(t, m, nil)
		defer b.Shutdown(t.Context())
		test(t, b)
		b.Shutdown(t.Context())
		assert.Zero(t, b.queues.Len(), "a queue is left, but no call waits")
		assert.Zero(t, b.queues.Waiting.Load())
		m.Compare(b.Engine, b.Clock())
	})
}

// newBubble starts a server in the synctest bubble of the caller.
func newBubble(t *testing.T, journal engine.Journal, store storage.Store) *bubble {
	b := &bubble{Bubble: commandtest.NewBubble(t)}
	b.testServer = &testServer{t: t, Server: NewServer(Options{
		Engine:  engine.New(engine.Options{Seed: [2]uint64{1, 2}, Journal: journal}),
		Journal: journal, Store: store, Clock: b.NewClock(), Log: slog.New(slog.DiscardHandler),
		Settings: commandtest.Settings(nil), Version: "test",
	})}
	go b.Serve(b.Pipes)
	return b
}

const (
	admitted = "*5 :1 :1 :0 :0 :1000"
	denied   = "*5 :0 :1 :0 "
)

// withStore returns the option that the server has a store, whose snapshots take all locks.
func withStore(store *commandtest.Store) func(*Options) {
	return func(o *Options) { o.Store, store.Locks = store, o.Engine }
}
