package commandtest

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/internal/clock"
	"rlserver/resp/config"
)

// Parts are what a server in a test is made of.
type Parts struct {
	Engine   *engine.Engine
	Journal  *Mirror // the engine's
	Clock    *clock.Clock
	Now      *atomic.Int64 // the time of Clock in Unix ms, which only the test advances
	Log      *slog.Logger
	Settings *config.Settings
}

// Settings returns the settings of a server in a test. By default none depends on the machine or on
// the time that the test takes, and no client is refused.
func Settings(others config.Defaults) *config.Settings {
	d := config.Defaults{
		"port": "0", "bind": "", "protected-mode": "no", "preauth-timeout": "0", "maxclients": "1000",
		"reserved-clients": "0", "maxmemory-clients": "0", "enable-debug-command": "no", "appendonly": "no",
		"auto-aof-rewrite-percentage": "0", "auto-aof-rewrite-min-size": "0",
	}
	maps.Copy(d, others)
	return config.NewSettings(d)
}

// NewParts returns the parts of a server with an empty keyspace, at Start.
func NewParts(t testing.TB, d config.Defaults) *Parts {
	settings := Settings(d)
	databases := settings.Start.Databases
	now, mirror := FrozenTime(), NewMirror(t, databases)
	return &Parts{
		Engine:  engine.New(engine.Options{Databases: databases, Seed: [2]uint64{1, 2}, Journal: mirror}),
		Journal: mirror, Clock: ClockBy(now.Load), Now: now,
		Log: slog.New(slog.DiscardHandler), Settings: settings,
	}
}

// Server is a server in a test.
type Server interface {
	Serve(net.Listener) error
	Shutdown(context.Context) (left int)
}

// Serve serves connections on a loopback port until the test ends, and returns its address. The
// journal of the parts must then tell what their engine holds.
func (p *Parts) Serve(t testing.TB, s Server) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go s.Serve(ln)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		s.Shutdown(ctx)
		p.Journal.Compare(p.Engine, p.Now.Load())
	})
	return ln.Addr().String()
}

// FrozenTime returns Start, as a time that only the test advances.
func FrozenTime() *atomic.Int64 {
	now := new(atomic.Int64)
	now.Store(Start)
	return now
}

// ClockBy returns a clock that reads the time from now, in Unix ms.
func ClockBy(now func() int64) *clock.Clock {
	elapsed := func(ms int64) time.Duration { return time.Duration(ms-Start) * time.Millisecond }
	return clock.New(clock.Source{
		Read:    func() (int64, time.Duration) { ms := now(); return ms * 1000, elapsed(ms) },
		Elapsed: func() time.Duration { return elapsed(now()) },
	}, slog.New(slog.DiscardHandler))
}

// LogBuffer is a log output that a test can read at any time.
type LogBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *LogBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *LogBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
