package commandtest

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/internal/clock"
	"rlserver/internal/stats"
	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/executor"
	"rlserver/resp/pubsub"
	"rlserver/resp/tracking"
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

// Start is the time at which the clock of a Runner starts: 2026-01-01 00:00:00 UTC, in Unix ms.
const Start = 1767225600000

// Waits is the result of Do for a call that waits.
const Waits = "waits"

// Runner runs calls on an engine of its own. Only Advance moves its clock.
type Runner struct {
	command.Call
	Queued bool // Env.Waiting reports that other calls wait for each key

	// OnWait is called for a call that waits, under the locks of its keys; may be nil.
	OnWait func(command.Prepared)

	// OnPause is called while changes are paused, until it returns; false: the client has left. May
	// be nil.
	OnPause func() bool

	t        testing.TB
	mirror   *Mirror
	now      int64 // Unix ms
	deferred []func()
}

// New returns a Runner with an empty keyspace. At the end of the test, the journal must tell what
// the keyspace holds.
func New(t testing.TB) *Runner {
	r := &Runner{t: t, mirror: NewMirror(t, 16), now: Start}
	e := engine.New(engine.Options{Databases: 16, Seed: [2]uint64{1, 2}, Journal: r.mirror})
	t.Cleanup(func() { r.mirror.Compare(e, r.now) })
	r.Call = command.Call{
		Env: &command.Env{
			Cluster: command.Alone{},
			Engine:  e, Home: e, Time: ClockBy(func() int64 { return r.now }), Log: slog.New(slog.DiscardHandler),
			Stats: stats.New(command.Count), Settings: Settings(nil), Waiting: waiting{r},
		},
		Tx: e.NewTx(), Conn: conn{r}, Client: 1, Random: rand.New(rand.NewPCG(1, 2)),
	}
	return r
}

// Advance moves the clock.
func (r *Runner) Advance(ms int64) { r.now += ms }

// Do runs a call, its words separated by spaces, and returns the raw reply with each \r\n as a
// space: "*2 :1 :2".
func (r *Runner) Do(line string) string {
	r.t.Helper()
	var words [][]byte
	for _, word := range strings.Fields(line) {
		words = append(words, []byte(word))
	}
	p := command.Prepare(words)
	if p.Command == nil || p.Command.Rejects(len(words)) {
		r.t.Fatalf("no such command, or a wrong number of arguments: %s", line)
	}
	return r.run(p)
}

func (r *Runner) run(p command.Prepared) string {
	hasher := command.Hasher{Engine: r.Env.Engine}
	hasher.Add(&p)
	r.Reply.B, r.Ready = nil, nil
	if p.Command.Prepare != nil {
		p.Command.Prepare(&r.Call, p.Words)
	}
	writes := p.Command.Flags&command.Write != 0
	locks := p.WantsAll() || len(hasher.Keys) > 0
	switch {
	case p.WantsAll():
		r.Tx.BeginAll(r.now, r.DB, writes)
	case locks:
		r.Tx.Begin(r.now, r.DB, hasher.Keys, writes)
	}
	waits := executor.Run(&r.Call, &p, hasher.Keys)
	if waits && r.OnWait != nil {
		r.OnWait(p)
	}
	if locks {
		r.Tx.End()
	}
	for _, do := range r.deferred {
		do()
	}
	r.deferred = nil
	if waits {
		return Waits
	}
	for _, word := range p.Words { // as the next request does
		clear(word)
	}
	return strings.TrimSuffix(strings.ReplaceAll(string(r.Reply.B), "\r\n", " "), " ")
}

type waiting struct{ r *Runner }

func (w waiting) Empty(int, []engine.Key) bool { return !w.r.Queued }
func (w waiting) RetryAll()                    {}

type conn struct{ r *Runner }

func (conn) Gone() bool                                { return false }
func (conn) TakesLong()                                {}
func (conn) Running() time.Duration                    { return 0 }
func (conn) See(engine.Position)                       {}
func (c conn) ChangesPaused() bool                     { return c.r.OnPause != nil }
func (conn) FlushStats()                               {}
func (conn) LogIfSlow(command.Prepared, time.Duration) {}
func (conn) Messages() *pubsub.Conn                    { return nil }
func (conn) Track() *tracking.Client                   { return nil }
func (conn) Local() bool                               { return true }
func (conn) TLS() bool                                 { return false }
func (c conn) EvictFor(bytes int64)                    { c.r.Tx.MakeRoomFor(c.r.now, bytes) }
func (c conn) AwaitChanges() bool {
	pause := c.r.OnPause
	c.r.OnPause = nil
	return pause()
}
func (c conn) DeferUntilUnlocked(do func()) { c.r.deferred = append(c.r.deferred, do) }
