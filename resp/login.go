package resp

import (
	"crypto/sha256"
	"crypto/subtle"
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

// login authenticates the session. Without a password configured any will do, as in Redis.
func (s *session) login(user, password []byte) error {
	if string(user) != defaultUser || s.server.Settings.Password() != "" && !s.server.passwordIs(password) {
		s.loginFailed()
		return errWrongPass
	}
	s.failedLogins = 0
	s.authenticate(true)
	return nil
}
