package resp

import (
	"crypto/subtle"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"

	"rlserver/engine"
)

// Server answers Redis' protocol on any number of listeners from one engine.
type Server struct {
	engine   *engine.Engine
	journal  engine.Journal
	clock    func() int64
	log      *slog.Logger
	settings *Settings
	limits   *guardLimits
	version  string
	started  time.Time

	nextID       atomic.Int64
	shutdown     chan struct{} // closed when a client has sent SHUTDOWN
	shutdownOnce sync.Once
	drained      chan struct{} // closed when no session is left and none will come
	serving      sync.WaitGroup

	mu        sync.Mutex
	sessions  map[int64]*session
	listeners []net.Listener
	draining  bool
}

// Options are what a server is made of.
type Options struct {
	Engine   *engine.Engine
	Journal  engine.Journal // the engine's; nil if it has none
	Clock    func() int64   // Unix ms, never running backward
	Log      *slog.Logger
	Settings *Settings
	Version  string // of this server, as INFO and HELLO tell it
}

// NewServer returns a server that does not listen yet.
func NewServer(o Options) *Server {
	return &Server{
		engine: o.Engine, journal: o.Journal, clock: o.Clock, log: o.Log, settings: o.Settings,
		version: o.Version, limits: o.Settings.limits, started: time.Now(),
		sessions: make(map[int64]*session), shutdown: make(chan struct{}), drained: make(chan struct{}),
	}
}

// Serve answers the clients of a listener until Shutdown. The listener is the server's from then on.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	s.listeners = append(s.listeners, ln)
	s.serving.Add(1)
	s.mu.Unlock()
	defer s.serving.Done()
	return redcon.Serve(&gate{Listener: ln, server: s}, s.handle, s.accept, s.closed)
}

func (s *Server) handle(conn redcon.Conn, cmd redcon.Command) {
	conn.Context().(*session).serve(conn, cmd.Args)
}

// accept takes a new connection in, or tells it why not.
func (s *Server) accept(conn redcon.Conn) bool {
	g := conn.NetConn().(*guard)
	if refusal := s.refusal(g); refusal != "" {
		conn.WriteRaw([]byte("-" + refusal + "\r\n"))
		return false
	}
	ss := &session{
		server: s, guard: g, id: s.nextID.Add(1), created: s.clock(),
		tx: s.engine.NewTx(), random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
	ss.call.session = ss
	ss.profile.resp.Store(2)
	ss.profile.active.Store(s.clock())
	ss.authenticate(s.settings.Password() == "")
	conn.SetContext(ss)

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.sessions[ss.id] = ss
	return true
}

// closed forgets a connection.
func (s *Server) closed(conn redcon.Conn, err error) {
	ss, ok := conn.Context().(*session)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, ss.id)
}

func (s *session) authenticate(yes bool) {
	s.authenticated = yes
	s.guard.setAuthenticated(yes)
}

// passwordIs compares in a time that does not tell how much was right.
func (s *Server) passwordIs(given []byte) bool {
	return subtle.ConstantTimeCompare(given, []byte(s.settings.Password())) == 1
}

// gate is a listener that wraps connections in guards.
type gate struct {
	net.Listener
	server *Server
}

func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err == nil {
			return newGuard(conn, g.server.limits, g.server.settings.Timeout), nil
		}
		if errors.Is(err, net.ErrClosed) {
			<-g.server.drained // redcon closes all connections when Accept fails: not before they are through
			return nil, err
		}
		g.server.log.Warn("a connection could not be accepted", "error", err)
		time.Sleep(50 * time.Millisecond) // out of file descriptors: trying again at once would only burn the processor
	}
}

// refusal is what a connection is told that may not stay; empty: it may.
func (s *Server) refusal(g *guard) string {
	if s.settings.protectedMode.Load() != 0 && s.settings.Password() == "" && !local(g.RemoteAddr()) {
		return protectedModeRefusal
	}
	if int64(s.clients()) >= s.settings.maxClients.Load() {
		return "ERR max number of clients reached"
	}
	return ""
}

// local tells whether an address is of this machine alone: loopback or a Unix socket.
func local(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
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
