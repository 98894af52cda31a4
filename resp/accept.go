package resp

import (
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/tidwall/redcon"

	"rlserver/resp/command"
	"rlserver/resp/wire"
)

// Serve accepts and serves the clients of a listener until Shutdown. It owns the listener.
func (s *Server) Serve(ln net.Listener) error { return s.ServeTLS(ln, nil) }

// ServeTLS is Serve for clients with TLS. If with is nil, it is Serve.
func (s *Server) ServeTLS(ln net.Listener, with *tls.Config) error {
	return s.serve(ln, with, ordinary)
}

// ServeProxy is ServeTLS for clients whose calls are forwarded to the nodes of the cluster that
// lead their slots.
func (s *Server) ServeProxy(ln net.Listener, with *tls.Config) error {
	return s.serve(ln, with, proxied)
}

// ServeNodes is Serve for other nodes of the cluster, which forward calls of their clients.
func (s *Server) ServeNodes(ln net.Listener) error {
	return s.serve(ln, nil, forOtherNode)
}

// serve serves the clients of a listener, with TLS or nil.
func (s *Server) serve(ln net.Listener, with *tls.Config, r role) error {
	return s.ports.Serve(ln, s.wrap(with, r))
}

// wrap returns what makes connections as redcon sees them.
func (s *Server) wrap(with *tls.Config, r role) func(net.Conn) net.Conn {
	idle := s.Settings.Timeout
	if r == forOtherNode {
		idle = nil
	}
	return func(conn net.Conn) net.Conn {
		if with != nil {
			return &connection{Guard: wire.NewTLSGuard(conn, with, s.limits, idle), role: r}
		}
		return &connection{Guard: wire.NewGuard(conn, s.limits, idle), role: r}
	}
}

// connection is a client's connection as redcon sees it. redcon accepts it, gives it a goroutine
// and closes it; the goroutine's first Read serves the client until the connection ends, so redcon
// finds no commands to handle.
type connection struct {
	*wire.Guard
	role    role
	session *session // nil: the connection was refused
}

// Read implements net.Conn. It serves the client until the connection ends. A panic outside of a
// call, which session.recovered would have met, ends this connection alone.
func (c *connection) Read(buf []byte) (n int, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			c.session.broken(fault)
			err = errInternal
		}
	}()
	return 0, c.session.serve(buf)
}

var errInternal = errors.New("internal error")

// accept creates the session of a new connection. It reports whether the connection is served.
// Otherwise redcon closes it; a client without TLS gets an error first, as in Redis.
func (s *Server) accept(conn redcon.Conn) bool {
	c := conn.NetConn().(*connection)
	refusal := command.ProtectedModeRefusal
	// with TLS, admit checks it after the handshake
	if c.TLS() || c.role == forOtherNode || s.mayConnect(c.RemoteAddr()) {
		c.session = s.newSession(c.Guard)
		c.session.setRole(c.role)
		refusal = s.register(c.session)
	}
	if refusal != "" {
		s.countRefusal()
		if !c.TLS() {
			conn.WriteRaw([]byte("-" + refusal + "\r\n"))
		}
		return false
	}
	return true
}

// admit is called when the TLS handshake of a session is complete. It returns why the client is
// refused, or "". Protected mode lets clients with a verified certificate pass, as for HTTP.
func (s *Server) admit(ss *session) (refusal string) {
	if !ss.guard.Verified() && !s.mayConnect(ss.guard.RemoteAddr()) {
		s.countRefusal()
		return command.ProtectedModeRefusal
	}
	ss.loginIfNotNeeded()
	return ""
}

// mayConnect reports whether protected mode lets a client connect from an address.
func (s *Server) mayConnect(from net.Addr) bool {
	return s.Settings.ProtectedMode.Load() == 0 || isLocal(from) || !s.Users.Default().User().NoPassword()
}

// Local implements the connection of command.Call.
func (s *session) Local() bool { return isLocal(s.guard.RemoteAddr()) }

// TLS implements command.Call.Conn.
func (s *session) TLS() bool { return s.guard.TLS() }

// isLocal reports whether an address can only be reached from this machine: loopback or a Unix
// socket.
func isLocal(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// register adds a session to those that are served and gives it its id, or returns why it is
// refused.
func (s *Server) register(ss *session) (refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return "ERR server is shutting down"
	}
	switch {
	case ss.isForNode():
		s.forNodes++
	case int64(len(s.sessions)-s.forNodes) >= s.maxClientsFor(ss.guard.RemoteAddr()) && !(ss.Local() && s.displace()):
		return "ERR max number of clients reached"
	}
	s.ended.connections++
	ss.Client = s.ended.connections
	ss.Meter.Stripe = int(ss.Client)
	s.sessions[ss.Client] = ss
	s.connectionBytes += ss.size()
	s.connectionPeak = max(s.connectionPeak, s.connectionBytes)
	return ""
}

// displace closes the oldest client that has not logged in or, if all have, that has not called
// anything yet, and reports whether there was one: such clients of the same machine must not keep
// operators out. The caller holds mu.
func (s *Server) displace() bool {
	var oldest *session
	for _, ss := range s.sessions {
		isNew := !ss.guard.LoggedIn() || ss.profile.command.Load() == nil
		if isNew && !ss.isForNode() && (oldest == nil || ss.goesBefore(oldest)) {
			oldest = ss
		}
	}
	if oldest == nil {
		return false
	}
	s.ended.rejected++
	s.remove(oldest)
	oldest.close(nil)
	return true
}

// goesBefore reports whether a client is displaced rather than another one.
func (s *session) goesBefore(other *session) bool {
	if in := s.guard.LoggedIn(); in != other.guard.LoggedIn() {
		return !in
	}
	return s.Client < other.Client
}

// maxClientsFor returns how many clients there may be before one from an address is refused.
// Operators connect by loopback and the Unix socket: reserved-clients of maxclients are not
// available to other machines, and the Unix socket has as many beyond maxclients.
func (s *Server) maxClientsFor(from net.Addr) int64 {
	limit := s.Settings.MaxClients.Load()
	reserved := min(s.Settings.ReservedClients.Load(), limit/2)
	tcp, ok := from.(*net.TCPAddr)
	switch {
	case !ok:
		return limit + reserved
	case tcp.IP.IsLoopback():
		return limit
	}
	return limit - reserved
}

func (s *Server) countRefusal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended.rejected++
}

// closed ends a session. redcon calls it at the end of every connection that was accepted.
func (s *Server) closed(conn redcon.Conn, err error) {
	ss := conn.NetConn().(*connection).session
	if errors.Is(err, wire.ErrLoginTimeout) {
		s.loginTimeouts.Add(1)
	}
	if failed, ok := errors.AsType[*wire.HandshakeError](err); ok {
		s.countHandshakeFailure(ss, failed)
	}
	if err != nil {
		s.Log.Debug("a connection failed", "client", ss.Client, "address", ss.Address(), "error", err)
	}
	s.unregister(ss)
	ss.unwatch()
	ss.away.calls.Close()
}

// countHandshakeFailure counts and logs a TLS handshake that has failed, unless the client has just
// closed the connection.
func (s *Server) countHandshakeFailure(ss *session, why *wire.HandshakeError) {
	if why.Left() {
		return
	}
	s.handshakeFailures.Add(1)
	if more, ok := s.allows(&s.handshakeLog, time.Second); ok {
		s.Log.Warn("a TLS handshake failed", "client", ss.Client, "address", ss.Address(), "error", why.Unwrap(),
			"others_since_the_last_line", more)
	}
}

// unregister removes a session from those that are served, and keeps its counts. A second call does
// nothing.
func (s *Server) unregister(ss *session) {
	ss.messages.Close()
	ss.profile.tracking.Load().Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(ss)
}

// remove is unregister for a caller that holds mu.
func (s *Server) remove(ss *session) {
	if s.sessions[ss.Client] == ss {
		delete(s.sessions, ss.Client)
		if ss.isForNode() {
			s.forNodes--
		}
		s.connectionBytes -= ss.size()
		s.ended.add(ss)
		if ss.profile.monitors.Load() {
			s.listMonitors()
		}
		ss.guard.Memory.Close()
	}
}

// clients returns the number of sessions, without those for other nodes.
func (s *Server) clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions) - s.forNodes
}

// applyTimeouts applies the configured timeouts to idle connections.
func (s *Server) applyTimeouts() { s.each(func(ss *session) { ss.guard.Retime() }) }

// each calls do for all sessions. It holds mu meanwhile.
func (s *Server) each(do func(*session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ss := range s.sessions {
		do(ss)
	}
}
