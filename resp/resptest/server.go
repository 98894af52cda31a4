package resptest

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/resp"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/waitqueue"
)

// What tests use of commandtest, under shorter names.
type (
	Answer   = commandtest.Answer
	Client   = commandtest.Client
	Store    = commandtest.Store
	Received = commandtest.Received
)

// StartTime is the time at which tests start, in Unix ms: 2026-01-01 00:00:00 UTC.
const StartTime = commandtest.Start

// Server is a server in this process, on a loopback port, with a clock that the test controls.
type Server struct {
	*resp.Server
	T       *testing.T
	Address string
	Now     *atomic.Int64 // Unix ms
}

// Start starts a server without persistence, unless an option adds it. At the end of the test, its
// journal must tell what its memory holds.
func Start(t *testing.T, d config.Defaults, with ...func(*resp.Options)) *Server {
	t.Helper()
	p := commandtest.NewParts(t, d)
	o := resp.Options{
		Engine: p.Engine, Journal: p.Journal, Clock: p.Clock, Log: p.Log, Settings: p.Settings, Version: "test",
	}
	for _, change := range with {
		change(&o)
	}
	s := resp.NewServer(o)
	return &Server{s, t, p.Serve(t, s), p.Now}
}

// With returns the option that the server has a store, whose snapshots take all locks.
func With(store *Store) func(*resp.Options) {
	return func(o *resp.Options) { o.Store, store.Locks = store, o.Engine }
}

// Advance advances the clock.
func (s *Server) Advance(ms int64) { s.Now.Add(ms) }

// Dial returns a new client.
func (s *Server) Dial() *Client {
	s.T.Helper()
	return commandtest.Dial(s.T, s.Address)
}

// As returns a client that is logged in as a user with these rules.
func (s *Server) As(user, rules string) *Client {
	s.T.Helper()
	require.Equal(s.T, "+OK", s.Dial().Do("ACL SETUSER "+user+" reset on nopass "+rules))
	c := s.Dial()
	require.Equal(s.T, "+OK", c.Do("AUTH "+user+" any"))
	return c
}

// Queues returns the queues of the calls that wait.
func (s *Server) Queues() *waitqueue.Queues { return s.Waiting.(*waitqueue.Queues) }

// AwaitWaiting waits until n calls wait.
func (s *Server) AwaitWaiting(n int64) {
	s.T.Helper()
	require.Eventually(s.T, func() bool { return s.Queues().Waiting.Load() == n }, time.Minute, time.Millisecond)
}

// Bubble is a server in a synctest bubble, with the clock of the bubble.
type Bubble struct {
	*commandtest.Bubble
	*resp.Server
}

// Queues returns the queues of the calls that wait.
func (b *Bubble) Queues() *waitqueue.Queues { return b.Waiting.(*waitqueue.Queues) }

// InBubble runs a test in a synctest bubble, where time passes when all goroutines wait. At its end
// no call may wait.
func InBubble(t *testing.T, test func(t *testing.T, b *Bubble), with ...func(*resp.Options)) {
	synctest.Test(t, func(t *testing.T) {
		m, b := commandtest.NewMirror(t, 16), &Bubble{Bubble: commandtest.NewBubble(t)}
		o := resp.Options{
			Engine:  engine.New(engine.Options{Seed: [2]uint64{1, 2}, Journal: m}),
			Journal: m, Clock: b.NewClock(), Log: slog.New(slog.DiscardHandler),
			Settings: commandtest.Settings(nil), Version: "test",
		}
		for _, change := range with {
			change(&o)
		}
		b.Server = resp.NewServer(o)
		go b.Serve(b.Pipes)
		defer b.Shutdown(t.Context())
		test(t, b)
		b.Shutdown(t.Context())
		assert.Zero(t, b.Queues().Len(), "a queue is left, but no call waits")
		assert.Zero(t, b.Queues().Waiting.Load())
		m.Compare(b.Engine, b.Clock())
	})
}
