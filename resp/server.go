package resp

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
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
	"rlserver/resp/wire"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"
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

	memory    clientmem.ClientMemory
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

// Serve answers the clients of a listener until Shutdown. The listener is the server's from then on.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		return ln.Close()
	}
	s.listeners = append(s.listeners, ln)
	s.serving.Add(1)
	s.mu.Unlock()
	defer s.serving.Done()
	return redcon.Serve(&gate{Listener: ln, server: s}, s.handle, s.accept, s.closed)
}

// handle is called by redcon when a connection's guard has told it of a batch.
func (s *Server) handle(conn redcon.Conn, _ redcon.Command) {
	conn.Context().(*session).serve(conn)
}

// accept takes a new connection in, or tells it why not.
func (s *Server) accept(conn redcon.Conn) bool {
	g := conn.NetConn().(*wire.Guard)
	refusal := protectedModeRefusal
	if s.mayConnect(g.RemoteAddr()) {
		ss := s.newSession(g)
		conn.SetContext(ss)
		refusal = s.admit(ss)
	}
	if refusal != "" {
		s.countRefusal()
		conn.WriteRaw([]byte("-" + refusal + "\r\n"))
		return false
	}
	return true
}

// mayConnect tells whether a server without a password may be reached from an address.
func (s *Server) mayConnect(from net.Addr) bool {
	return s.Settings.ProtectedMode.Load() == 0 || s.Settings.Password() != "" || local(from)
}

// local tells whether an address is of this machine alone: loopback or a Unix socket.
func local(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

func (s *Server) newSession(g *wire.Guard) *session {
	ss := &session{
		server: s, guard: g, created: s.elapsed(),
		Call:   command.Call{Env: &s.Env, Tx: s.Engine.NewTx(), Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))},
		hasher: command.Hasher{Engine: s.Engine},
	}
	ss.Conn, ss.Reply.Owner = ss, ss
	g.Unread = func(bytes int64) { s.unread(ss, bytes) }
	g.Relieve = ss.relieve
	g.LoginTime = s.Settings.PreauthTimeout
	ss.profile.resp.Store(2)
	ss.profile.active.Store(ss.created)
	ss.authenticate(s.Settings.Password() == "")
	return ss
}

// admit adds a session to those that are served and gives it its id, or says why not.
func (s *Server) admit(ss *session) (refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return "ERR server is shutting down"
	}
	if int64(len(s.sessions)) >= s.places(ss.guard.RemoteAddr()) {
		return "ERR max number of clients reached"
	}
	s.gone.connections++
	ss.Client = s.gone.connections
	s.sessions[ss.Client] = ss
	s.connectionsPeak = max(s.connectionsPeak, int64(len(s.sessions)))
	return ""
}

func (s *Server) countRefusal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone.rejected++
}

// closed is told of the end of every connection that was accepted.
func (s *Server) closed(conn redcon.Conn, err error) {
	ss := conn.Context().(*session)
	if errors.Is(err, wire.ErrLoginTimeout) {
		s.lateLogins.Add(1)
	}
	if err != nil {
		s.Log.Debug("a connection broke off", "client", ss.Client, "address", ss.peer(), "error", err)
	}
	s.forget(ss)
	ss.unwatch()
}

// forget takes a session from those that are served, and keeps its counts.
func (s *Server) forget(ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[ss.Client] == ss {
		delete(s.sessions, ss.Client)
		s.gone.add(ss)
		ss.guard.Held.Close()
	}
}

// retime makes connections that are idle go by the timeout of now.
func (s *Server) retime() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ss := range s.sessions {
		ss.guard.Retime()
	}
}

func (s *session) authenticate(yes bool) {
	s.authenticated = yes
	s.guard.SetAuthenticated(yes)
	s.choosePool()
}

// free lets a session in that has not authenticated, if the password has been taken away since it was asked for one.
func (s *session) free() bool {
	if s.server.Settings.Password() == "" {
		s.authenticate(true)
	}
	return s.authenticated
}

// passwordIs compares in a time that tells neither how much was right nor how long it should be.
func (s *Server) passwordIs(given []byte) bool {
	want, have := sha256.Sum256([]byte(s.Settings.Password())), sha256.Sum256(given)
	return subtle.ConstantTimeCompare(want[:], have[:]) == 1
}

// gate is a listener that wraps connections in guards.
type gate struct {
	net.Listener
	server *Server
	told   atomic.Int64 // as by seldom: when the log told last that no connection could be accepted
}

func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err == nil {
			if tcp, ok := conn.(*net.TCPConn); ok {
				tcp.SetKeepAliveConfig(g.server.Settings.KeepAlive())
			}
			return wire.NewGuard(conn, g.server.limits, g.server.Settings.Timeout), nil
		}
		if errors.Is(err, net.ErrClosed) {
			<-g.server.drained // redcon closes all connections when Accept fails: not before they are through
			return nil, err
		}
		if g.server.seldom(&g.told, time.Second) {
			g.server.Log.Warn("a connection could not be accepted", "error", err)
		}
		time.Sleep(50 * time.Millisecond) // out of file descriptors: trying again at once would only burn the processor
	}
}

// protectedModeRefusal is Redis' text to the letter: people search for it.
const protectedModeRefusal = "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. " +
	"In this mode connections are only accepted from the loopback interface. " +
	"If you want to connect from external computers to Redis you may adopt one of the following solutions: " +
	"1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the same host the server is running, " +
	"however MAKE SURE Redis is not publicly accessible from internet if you do so. Use CONFIG REWRITE to make this change permanent. " +
	"2) Alternatively you can just disable the protected mode by editing the Redis configuration file, and setting the protected mode option to 'no', and then restarting the server. " +
	"3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. " +
	"4) Setup a an authentication password for the default user. " +
	"NOTE: You only need to do one of the above things in order for the server to start accepting connections from the outside."
