package resp

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/clock"
	"rlserver/engine"
	"rlserver/resp/clientmem"
	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/waitqueue"
	"rlserver/stats"
)

// Server serves the Redis protocol on any number of listeners from one engine.
type Server struct {
	command.Env
	journal engine.Journal
	store   Store // nil: the data is in memory alone
	limits  *config.ConnectionLimits
	version string
	started time.Time
	// see Options.LongCall
	longCall func() (end func())
	runID    string // 40 hex digits, new with every start

	queues waitqueue.Queues // the queues of calls that wait

	loading     atomic.Int64 // Unix ms when loading began; 0: the data is loaded
	configuring sync.Mutex   // held while the store is configured

	memory        clientmem.Pools
	overhead      atomic.Int64 // bytes of the process beside keys and clients, as last measured
	oomRefusals   atomic.Int64 // calls refused with OOM since the start or CONFIG RESETSTAT
	failedLogins  atomic.Int64 // since the start or CONFIG RESETSTAT
	loginTimeouts atomic.Int64 // clients closed because they did not log in in time, likewise

	// How often log lines are written, and memory is collected, on behalf of clients.
	loginLog, httpLog, journalLog, evictionLog, outputLog throttle
	remeasure, purge                                      throttle

	noSave       atomic.Bool   // the server ends by SHUTDOWN NOSAVE
	shutdown     chan struct{} // closed when a client has sent SHUTDOWN
	shutdownOnce sync.Once
	drained      chan struct{} // closed when no session is left and none will come
	drainedOnce  sync.Once
	serving      sync.WaitGroup

	mu              sync.Mutex // of what follows
	sessions        map[int64]*session
	connectionsPeak int64 // the most sessions since takeConnectionsPeak
	listeners       []net.Listener
	draining        bool
	ended           totals // of sessions that have ended; connections: of all, the last id
	baseline        totals // as of the last CONFIG RESETSTAT
}

// Options are what a server is made of.
type Options struct {
	Engine   *engine.Engine
	Journal  engine.Journal // the engine's; nil if it has none
	Store    Store          // nil: the data is in memory alone
	Clock    *clock.Clock
	Log      *slog.Logger
	Settings *config.Settings
	Version  string // of this server, for INFO

	// LongCall is called when a call begins that takes many milliseconds, and end when it has run.
	// nil: nobody needs to know.
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
			Engine: o.Engine, Time: o.Clock, Settings: o.Settings, Log: o.Log,
			Stats: stats.New(command.Declared), ReloadPolicies: o.ReloadPolicies,
		},
		journal: o.Journal, store: o.Store, version: o.Version, longCall: o.LongCall,
		limits: o.Settings.Limits, started: time.Now(),
		runID:    fmt.Sprintf("%016x%016x%08x", rand.Uint64(), rand.Uint64(), rand.Uint32()),
		sessions: make(map[int64]*session),
		shutdown: make(chan struct{}), drained: make(chan struct{}),
	}
	s.Waiting, s.RetryWaiting = &s.queues, s.PoliciesChanged
	o.Clock.OnStep(s.queues.RetryAll)
	s.queues.Init(o.Engine, o.Clock, s.unavailable)
	s.memory.Init()
	s.applyMemoryLimits()
	s.warnAboutMaxMemory()
	return s
}
