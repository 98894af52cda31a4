package resp

import (
	"crypto/sha256"
	"crypto/subtle"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"
)

// After a failed login the reply is delayed, twice as long each time, so that a client can try few
// passwords. The failed logins of a connection and those of its address count, so that new
// connections are no way around.
const (
	firstLoginDelay = 250 * time.Millisecond
	maxLoginDelay   = time.Second // a client that times out does not see the error
)

const (
	addressMemory = time.Minute // how long the failed logins of an address count after the last
	mostAddresses = 4096        // how many addresses are remembered
)

// loginFailures counts failed logins by the address that they come from. The zero value is ready.
type loginFailures struct {
	mu        sync.Mutex
	addresses map[netip.Prefix]loginFailure
}

type loginFailure struct {
	count int // in a row, at most 16
	last  time.Duration
}

// add counts a failed login at an elapsed time, and returns how many there were in a row before. If
// too many addresses are remembered, it forgets one of them.
func (f *loginFailures) add(from netip.Prefix, now time.Duration) (before int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.addresses == nil {
		f.addresses = make(map[netip.Prefix]loginFailure)
	}
	old, known := f.addresses[from]
	if now-old.last > addressMemory {
		old.count = 0
	}
	if !known && len(f.addresses) >= mostAddresses {
		f.forgetOne(now)
	}
	f.addresses[from] = loginFailure{min(old.count+1, 16), now}
	return old.count
}

// forgetOne removes the address that counts least of a few: of an attacker that has many, others
// remain.
func (f *loginFailures) forgetOne(now time.Duration) {
	const looks = 8
	var least netip.Prefix
	n, count := 0, math.MaxInt
	for address, failure := range f.addresses {
		if now-failure.last > addressMemory {
			failure.count = 0
		}
		if failure.count < count {
			least, count = address, failure.count
		}
		if n++; n == looks {
			break
		}
	}
	delete(f.addresses, least)
}

// forget removes an address after a login.
func (f *loginFailures) forget(from netip.Prefix) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.addresses, from)
}

// sourceOf returns the address that a connection comes from, of IPv6 the network of 64 bits, which
// is what one machine has. ok is false for a Unix socket.
func sourceOf(a net.Addr) (source netip.Prefix, ok bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}, false
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	source, err := address.Prefix(bits)
	return source, err == nil
}

// login checks a user and a password and authenticates the session, or returns errWrongPass.
// Without a configured password any password is right, as in Redis.
func (s *session) login(user, password []byte) error {
	if string(user) != defaultUser || s.server.Settings.Password() != "" && !s.server.passwordMatches(password) {
		s.loginFailed()
		return errWrongPass
	}
	s.failedLogins = 0
	if source, ok := sourceOf(s.guard.RemoteAddr()); ok {
		s.server.loginFailures.forget(source)
	}
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
	before := s.failedLogins
	if source, ok := sourceOf(s.guard.RemoteAddr()); ok {
		before = max(before, s.server.loginFailures.add(source, s.server.Time.Elapsed()))
	}
	delay := min(firstLoginDelay<<before, maxLoginDelay)
	s.failedLogins = min(s.failedLogins+1, 16)
	s.deferUntilUnlocked(func() { s.guard.PauseFor(delay) })
}

// PasswordRequired reports whether clients have to log in.
func (s *Server) PasswordRequired() bool { return s.Settings.Password() != "" }

// Login checks a user and a password for another protocol than that of Redis, from a client at an
// address. It counts and logs failures; the caller delays the reply to them.
func (s *Server) Login(user, password, address string) bool {
	if user == defaultUser && s.passwordMatches([]byte(password)) {
		return true
	}
	s.failedLogins.Add(1)
	if skipped, ok := s.allows(&s.loginLog, time.Second); ok {
		s.Log.Warn("a login by HTTP failed", "address", address, "others_since_the_last_line", skipped)
	}
	return false
}

// Protected reports whether protected mode refuses clients of other machines now.
func (s *Server) Protected() bool {
	return s.Settings.ProtectedMode.Load() != 0 && !s.PasswordRequired()
}
