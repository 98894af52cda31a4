package resp

import (
	"crypto/sha256"
	"crypto/subtle"
	"time"
)

// After a failed login the reply is delayed, twice as long each time, so that one connection can
// try few passwords.
const (
	firstLoginDelay = 250 * time.Millisecond
	maxLoginDelay   = time.Second // a client that times out does not see the error
)

// login checks a user and a password and authenticates the session, or returns errWrongPass.
// Without a configured password any password is right, as in Redis.
func (s *session) login(user, password []byte) error {
	if string(user) != defaultUser || s.server.Settings.Password() != "" && !s.server.passwordMatches(password) {
		s.loginFailed()
		return errWrongPass
	}
	s.failedLogins = 0
	s.setAuthenticated(true)
	return nil
}

// loginIfPasswordRemoved authenticates a session that needed a password when the client connected,
// if CONFIG SET has removed the password since.
func (s *session) loginIfPasswordRemoved() {
	if !s.authenticated && s.server.Settings.Password() == "" {
		s.setAuthenticated(true)
	}
}

// setAuthenticated changes what the connection may do, and the pool that counts its memory.
func (s *session) setAuthenticated(yes bool) {
	s.authenticated = yes
	s.guard.SetAuthenticated(yes)
	s.choosePool()
}

// passwordMatches compares in a time that depends on neither password.
func (s *Server) passwordMatches(given []byte) bool {
	want, have := sha256.Sum256([]byte(s.Settings.Password())), sha256.Sum256(given)
	return subtle.ConstantTimeCompare(want[:], have[:]) == 1
}

// loginFailed counts and logs a failed login, and delays its reply until no lock is held.
func (s *session) loginFailed() {
	s.server.failedLogins.Add(1)
	if skipped, ok := s.server.allows(&s.server.loginLog, time.Second); ok {
		s.server.Log.Warn("a login failed", "client", s.Client, "address", s.remoteAddress(),
			"others_since_the_last_line", skipped)
	}
	delay := min(firstLoginDelay<<s.failedLogins, maxLoginDelay)
	s.failedLogins = min(s.failedLogins+1, 16)
	s.deferUntilUnlocked(func() { s.guard.PauseFor(delay) })
}
