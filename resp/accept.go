package resp

import (
	"errors"
	"net"
	"rlserver/resp/wire"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"
)

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
		ss.guard.Memory.Close()
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

// places is how many clients there may be for one from an address to be let in. Operators connect by loopback and the Unix socket: some of
// maxclients are not for other machines, and the Unix socket has as many beyond it.
func (s *Server) places(from net.Addr) int64 {
	most := s.Settings.MaxClients.Load()
	kept := min(s.Settings.ReservedClients.Load(), most/2)
	tcp, ok := from.(*net.TCPAddr)
	switch {
	case !ok:
		return most + kept
	case tcp.IP.IsLoopback():
		return most
	}
	return most - kept
}
