package resp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/engine"
	"rlserver/internal/certs"
	"rlserver/internal/clock"
	"rlserver/internal/listen"
	"rlserver/internal/logins"
	"rlserver/internal/stats"
	"rlserver/internal/storage"
	"rlserver/resp/clientmem"
	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/diagnostics"
	"rlserver/resp/executor"
	"rlserver/resp/forward"
	"rlserver/resp/lua"
	"rlserver/resp/notify"
	"rlserver/resp/ports"
	"rlserver/resp/pubsub"
	"rlserver/resp/tracking"
	"rlserver/resp/waitqueue"
)

// Server serves the Redis protocol on any number of listeners from one engine.
type Server struct {
	command.Env
	Logins       *logins.Limiter // limits failed logins, by RESP and other protocols
	certificates *certs.Store    // of the listeners with TLS
	ports        *ports.Ports
	limits       *config.ConnectionLimits
	// see Options.LongCall
	longCall func() (end func())

	home   *partition       // of calls without keys; without a cluster, of all
	only   []*partition     // only home
	queues waitqueue.Queues // of home

	executor *executor.Executor // runs all calls
	listener *notify.Listener   // of what they change

	paused atomic.Pointer[pause] // nil: no pause
	held   atomic.Int64          // clients whose calls wait for the end of the pause

	rates      rates
	peakMemory atomic.Int64 // bytes, the maximum so far
	startup    int64        // bytes in use when the server was made

	cluster Cluster                     // nil: the server is alone
	passing *forward.Pool               // of calls that other nodes run, in a cluster
	led     []atomic.Pointer[partition] // by group, those that this node leads
	leading sync.Mutex                  // held while led is changed

	configuring sync.Mutex // held while the store is configured
	setting     sync.Mutex // held by CONFIG SET

	memory        clientmem.Pools
	overhead      atomic.Int64 // bytes of the process other than keys and clients, as last measured
	oomRefusals   atomic.Int64 // calls refused with OOM since the start or CONFIG RESETSTAT
	loginTimeouts atomic.Int64 // clients closed because they did not log in in time, likewise

	handshakeFailures atomic.Int64 // of TLS, since the start or CONFIG RESETSTAT

	// Limits of log lines and collections that clients cause.
	loginLog, httpLog, handshakeLog, journalLog, evictionLog, outputLog clock.Throttle
	remeasure, purge                                                    clock.Throttle

	noSave       atomic.Bool   // the server ends by SHUTDOWN NOSAVE
	save         atomic.Bool   // likewise SHUTDOWN SAVE
	shutdown     chan struct{} // closed when a client has sent SHUTDOWN
	shutdownOnce sync.Once

	mu              sync.Mutex // guards the fields below
	sessions        map[int64]*session
	forNodes        int   // sessions for other nodes
	connectionBytes int64 // memory of all sessions without their accounts
	connectionPeak  int64 // maximum of connectionBytes since takeConnectionPeak
	draining        bool
	ended           totals // of sessions that have ended; connections: of all, the last id
	baseline        totals // as of the last CONFIG RESETSTAT
}

// Options are the arguments of NewServer.
type Options struct {
	Engine  *engine.Engine
	Journal engine.Journal // the engine's; nil if it has none
	Store   storage.Store  // nil: the data is only in memory
	// Certificates are those of the listeners with TLS; nil: none so far. CONFIG SET changes their
	// files.
	Certificates *certs.Store
	// Sockets are the listeners of the ports for clients, which CONFIG SET changes. They are served
	// by Serve and ServeTLS. nil: there are none.
	Sockets  *listen.Sockets
	Clock    *clock.Clock
	Log      *slog.Logger
	Settings *config.Settings
	Version  string // of this server, for INFO

	// Cluster is the cluster that the server is a node of. Engine then has no keys: those of a call
	// are in a partition. nil: the server is alone.
	Cluster Cluster
	Hold    time.Duration // how long calls wait for a leader, in a cluster

	// LongCall is called when a call begins that takes many milliseconds, and end when it has
	// ended. May be nil.
	LongCall func() (end func())

	// ReloadPolicies reads the policy file again. It changes all policies or, with an error that
	// clients may see, none. nil: there is no policy file. The caller holds no lock of the engine.
	ReloadPolicies func() error
}

// NewServer returns a server that does not listen yet.
func NewServer(o Options) *Server {
	o.Settings.Stored = o.Store != nil
	s := &Server{
		Env: command.Env{
			Version: o.Version, Started: time.Now(), Store: o.Store,
			RunID:   fmt.Sprintf("%016x%016x%08x", rand.Uint64(), rand.Uint64(), rand.Uint32()),
			Slowlog: new(diagnostics.Slowlog), Latency: new(diagnostics.Latency),
			Engine: o.Engine, Home: o.Engine, Time: o.Clock, Settings: o.Settings, Log: o.Log,
			Stats: stats.New(command.Count), ReloadPolicies: o.ReloadPolicies,
		},
		certificates: o.Certificates, longCall: o.LongCall,
		limits:   o.Settings.Limits,
		Logins:   logins.New(&o.Settings.Logins, o.Clock, o.Log),
		sessions: make(map[int64]*session),
		shutdown: make(chan struct{}),
	}
	s.Channels = pubsub.New(&o.Settings.PubSub)
	s.Channels.Relieve = func() { s.evictClients(&s.memory.Normal) }
	s.Waiting, s.Env.Server = &s.queues, s
	s.Scripts = lua.NewScripts()
	s.Tracking = tracking.New(&o.Settings.Tracking)
	s.listener = notify.New(s.Channels, s.Tracking, &o.Settings.NotifyEvents, &o.Settings.PubSub.Changes)
	s.Tracking.Find, s.Tracking.Changed = s.findTarget, func() { s.listener.Apply(o.Engine.Memory()) }
	s.listener.Attach(o.Engine.Memory())
	s.executor = executor.New(&s.Env)
	s.initUsers()
	o.Clock.OnStep(s.queues.RetryAll)
	s.queues.Init(o.Engine, o.Clock, s.executor, s.changesPaused)
	s.place(&o)
	if s.certificates == nil {
		s.certificates = certs.New(time.Now, s.Log)
	}
	if o.Sockets == nil {
		o.Sockets = new(listen.Sockets)
	}
	s.ports = ports.New(ports.Options{
		Settings: s.Settings, Certificates: s.certificates, Sockets: o.Sockets, Clock: s.Time, Log: s.Log,
		Wrap: func(tls bool) func(net.Conn) net.Conn {
			if tls {
				return s.wrap(s.certificates.Config(), ordinary)
			}
			return s.wrap(nil, ordinary)
		},
		Opened: s.accept, Closed: s.closed,
	})
	if s.Store != nil {
		s.Saves = storage.NewSaves(s.Store, func(err error) {
			s.Log.Error("a snapshot that was scheduled could not be started", "error", err)
		})
	}
	s.memory.Init()
	s.applyDiagnostics()
	s.startup = command.RuntimeBytes("/memory/classes/heap/objects:bytes")
	s.applyMemoryLimits()
	s.warnAboutMaxMemory()
	return s
}

// SetLoading sets whether the data is being loaded; clients then get LOADING. A new server is not
// loading.
func (s *Server) SetLoading(yes bool) { s.executor.SetLoading(yes) }

// PoliciesChanged retries the waiting calls with the current policies. It must be called after
// policies have changed without a command. No lock of the engine is held.
func (s *Server) PoliciesChanged() {
	for _, p := range s.partitions() {
		p.queues.RetryAll()
	}
}

// elapsed returns the monotonic time in ms. It measures durations, as the server's time may jump.
func (s *Server) elapsed() int64 { return s.Time.Elapsed().Milliseconds() }

// allows is clock.Throttle.Allow at the current time.
func (s *Server) allows(t *clock.Throttle, interval time.Duration) (skipped int64, ok bool) {
	return t.Allow(s.elapsed(), interval)
}

// ChangeSettings implements command.Server. The call is CONFIG SET.
func (s *Server) ChangeSettings(c *command.Call, changes []config.Change) error {
	s.setting.Lock()
	defer s.setting.Unlock()
	var apply []func()
	for _, change := range changes {
		if why := change.InCluster; why != "" && s.Settings.Start.Cluster.Enabled == "yes" {
			return change.Refuse(errors.New(why))
		}
		put, err := change.Set(s.Settings, change.Value)
		if err != nil {
			return change.Refuse(err)
		}
		apply = append(apply, put)
	}
	exchange, err := s.ports.Change(changes)
	if err != nil {
		return err
	}
	timeout, preauth := s.Settings.Timeout(), s.Settings.PreauthTimeout()
	for _, put := range apply {
		put()
	}
	if exchange != nil {
		exchange()
	}
	if s.Settings.Timeout() != timeout || s.Settings.PreauthTimeout() != preauth {
		s.applyTimeouts()
	}
	changed := func(name string) bool {
		return slices.ContainsFunc(changes, func(change config.Change) bool { return change.Name == name })
	}
	if changed("requirepass") {
		s.usersChanged(c)
	}
	s.applyMemoryLimits()
	s.applyDiagnostics()
	s.listener.Apply(s.Engine.Memory())
	s.Tracking.Trim(c.Conn.Messages())
	if changed("maxmemory") {
		s.warnAboutMaxMemory()
	}
	c.Conn.DeferUntilUnlocked(s.configure)
	c.Conn.DeferUntilUnlocked(func() { // the largest, if the limits are lower now
		s.evictClients(&s.memory.Normal)
		s.evictClients(&s.memory.Unauthenticated)
	})
	return nil
}

// configure passes the current settings to the store.
func (s *Server) configure() {
	if s.Store == nil {
		return
	}
	s.configuring.Lock() // so that the newest settings are applied last
	defer s.configuring.Unlock()
	s.Store.Configure(s.Settings.Store())
}

func init() {
	const operator = command.Admin | command.NoScript | command.Loading | command.Stale
	command.Register("server",
		&command.Command{Name: "shutdown", Arity: -1, Flags: operator | command.NoMulti | command.AllowBusy,
			Run: shutdown},
	)
}

const (
	errNoShutdown     = engine.Error("ERR No shutdown in progress.")
	errCannotShutDown = engine.Error("ERR Errors trying to SHUTDOWN. Check logs.")
)

// shutdown handles SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]. It has no reply: the connection
// closes when the server has ended. Without SAVE no snapshot is taken, as the log has all data.
func shutdown(c *command.Call) error {
	s := sessionOf(c)
	var save, nosave, now, force, abort bool
	for c.Args.More() {
		switch {
		case c.Args.Word("SAVE"):
			save = true
		case c.Args.Word("NOSAVE"):
			nosave = true
		case c.Args.Word("NOW"):
			now = true
		case c.Args.Word("FORCE"):
			force = true
		case c.Args.Word("ABORT"):
			abort = true
		default:
			c.Args.Fail(engine.ErrSyntax)
		}
	}
	if save && nosave || abort && (save || nosave || now || force) {
		c.Args.Fail(engine.ErrSyntax)
	}
	if err := c.Args.End(); err != nil {
		return err
	}
	if abort {
		return errNoShutdown // a shutdown that has begun cannot be stopped
	}
	if save {
		if err := s.server.saveBeforeShutdown(c.Client, force); err != nil && !force {
			return errCannotShutDown
		}
	}

	s.closing = true
	s.server.noSave.Store(nosave)
	s.server.save.Store(save)
	s.server.shutdownOnce.Do(func() { close(s.server.shutdown) })
	return nil
}

// saveBeforeShutdown takes a snapshot, unless there is no store or the data is still being loaded:
// part of the data must not become a snapshot. force means that the server stops even if the
// snapshot fails; it is only logged.
func (s *Server) saveBeforeShutdown(client int64, force bool) error {
	if s.Store == nil || s.executor.LoadingSince() != 0 {
		return nil
	}
	err := storage.SnapshotAfterCurrent(s.Store)
	if err != nil {
		s.Log.Error("SHUTDOWN SAVE could not save", "client", client, "error", err, "stopping", force)
	}
	return err
}

// ShutdownRequested returns a channel that is closed when a client has sent SHUTDOWN.
func (s *Server) ShutdownRequested() <-chan struct{} { return s.shutdown }

// EndsSaved reports whether a client has sent SHUTDOWN SAVE. The snapshot that this has taken lacks
// what other clients have changed meanwhile.
func (s *Server) EndsSaved() bool { return s.save.Load() }

// EndsUnsaved reports whether a client has sent SHUTDOWN NOSAVE.
func (s *Server) EndsUnsaved() bool { return s.noSave.Load() }

// Shutdown closes the listeners and drains the connections: each client gets the replies to the
// commands that it has sent in full, then its connection is closed. When the context ends first,
// Shutdown closes the connections that are left, and returns their number.
func (s *Server) Shutdown(ctx context.Context) (left int) {
	s.ports.Close()
	s.mu.Lock()
	s.draining = true
	for _, ss := range s.sessions {
		ss.guard.Drain()
	}
	s.mu.Unlock()

	if left = s.waitForSessions(ctx); left > 0 {
		s.Scripts.Stop()
		// their calls run to the end, but no reply is sent
		s.each(func(ss *session) { ss.guard.Conn.Close() })
	}
	s.ports.End()
	return left
}

// waitForSessions waits until no session is left or the context ends, and returns how many are
// left. After SHUTDOWN NOSAVE it does not wait for scripts that run for too long. It polls, which
// is simpler than a signal at the end of each session.
func (s *Server) waitForSessions(ctx context.Context) (left int) {
	for {
		s.mu.Lock()
		left = len(s.sessions)
		s.mu.Unlock()
		if left == 0 || s.noSave.Load() && left <= s.Scripts.Busy() {
			return left
		}
		select {
		case <-ctx.Done():
			return left
		case <-time.After(5 * time.Millisecond):
		}
	}
}
