package resp

import (
	"net"
	"time"
)

// After a failed login the reply waits, for twice as long each time, so that one connection can try few passwords.
const (
	firstLoginDelay = 250 * time.Millisecond
	mostLoginDelay  = time.Second // clients that time out do not see why
)

// loginFailed counts a failed login, logs it, and has the reply wait when no lock is held.
func (s *session) loginFailed() {
	s.server.deniedLogins.Add(1)
	if missed, due := s.server.loginLog.due(s.server.Clock()); due {
		s.server.Log.Warn("a login failed", "client", s.Client, "address", s.peer(), "others_since_the_last_line", missed)
	}
	delay := min(firstLoginDelay<<s.failedLogins, mostLoginDelay)
	s.failedLogins = min(s.failedLogins+1, 16)
	s.afterwards = append(s.afterwards, func() { s.guard.PauseFor(delay) })
}

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
