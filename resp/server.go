package resp

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"rlserver/clock"
	"rlserver/engine"
	"rlserver/resp/clientmem"
	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/waitqueue"
	"sync"
	"sync/atomic"
	"time"
)

// Server answers Redis' protocol on any number of listeners from one engine.
type Server struct {
	command.Env
	journal engine.Journal
	store   Store // nil: none
	limits  *config.ConnectionLimits
	version string
	started time.Time
	runID   string // 40 hex digits, new with every start

	room waitqueue.Room // where calls wait

	loading     atomic.Int64 // Unix ms since when the data is being loaded; 0: it is there
	configuring sync.Mutex   // held while the store is configured

	memory    clientmem.Pools
	evictions logTurn
	overruns  logTurn

	overhead   atomic.Int64 // bytes that the process takes beside keys and clients, as last measured
	doubted    atomic.Int64 // Unix ms of the last time the overhead was measured as it seemed wrong
	crowdedOut atomic.Int64 // calls that were refused as there was no room, since the start or CONFIG RESETSTAT

	deniedLogins atomic.Int64 // since the start or CONFIG RESETSTAT
	lateLogins   atomic.Int64 // likewise: clients that were closed as they had not authenticated in time
	loginLog     logTurn

	shunned atomic.Int64 // as by seldom: when the log told last of an HTTP request
	unkept  atomic.Int64 // and of replies that the journal did not stand for
	purged  atomic.Int64 // and when memory was given back for MEMORY PURGE

	unsaved      atomic.Bool   // that was SHUTDOWN NOSAVE
	shutdown     chan struct{} // closed when a client has sent SHUTDOWN
	shutdownOnce sync.Once
	drained      chan struct{} // closed when no session is left and none will come
	drainedOnce  sync.Once
	serving      sync.WaitGroup

	mu              sync.Mutex
	sessions        map[int64]*session
	connectionsPeak int64 // the most sessions since takeConnectionsPeak
	listeners       []net.Listener
	draining        bool
	gone            totals // of the sessions that are no more, and all connections: the last one's id
	reset           totals // what had been counted when the counting began anew
}

// Options are what a server is made of.
type Options struct {
	Engine   *engine.Engine
	Journal  engine.Journal // the engine's; nil if it has none
	Store    Store          // nil: the data is in memory alone
	Clock    *clock.Clock
	Log      *slog.Logger
	Settings *config.Settings
	Version  string // of this server, as INFO and HELLO tell it

	// ReloadPolicies reads the file of policies again. It changes all of them or, with an error that
	// clients may see, none; nil: there is no such file. No lock of the engine may be held.
	ReloadPolicies func() error
}

// NewServer returns a server that does not listen yet.
func NewServer(o Options) *Server {
	o.Settings.Stored = o.Store != nil
	s := &Server{
		Env:     command.Env{Engine: o.Engine, Time: o.Clock, Settings: o.Settings, Log: o.Log, Tallies: make(command.Tallies, command.Declared), ReloadPolicies: o.ReloadPolicies},
		journal: o.Journal, store: o.Store,
		version: o.Version, limits: o.Settings.Limits, started: time.Now(), runID: fmt.Sprintf("%016x%016x%08x", rand.Uint64(), rand.Uint64(), rand.Uint32()),
		sessions: make(map[int64]*session), shutdown: make(chan struct{}), drained: make(chan struct{}),
	}
	s.Waiting, s.RetryWaiting = &s.room, s.PoliciesChanged
	o.Clock.OnStep(s.room.Stir)
	s.room.Init(o.Engine, o.Clock, s.unavailable)
	s.memory.Init()
	s.fitMemory()
	s.warnOfMaxMemory()
	return s
}

// retime makes connections that are idle go by the timeout of now.
func (s *Server) retime() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ss := range s.sessions {
		ss.guard.Retime()
	}
}
