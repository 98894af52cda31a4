package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Permission reports whether a user may make a call of the Redis protocol. HTTP shows a user only
// what such calls would show.
type Permission func(words ...string) bool

// Access decides what clients may see.
type Access struct {
	// Token is a bearer token that allows everything, or "".
	Token string
	// WithoutLogin returns the permission of clients without a login, or nil if they must log in.
	WithoutLogin func() Permission
	// Login returns the permission of a user, or nil if the user or the password is wrong. It takes
	// the same time for both, and counts failures. proven is false for users without a password:
	// any password is right for them.
	Login func(user, password, address string) (may Permission, proven bool)
	// NeedsCertificate reports whether TLS clients without a certificate must log in, even if
	// WithoutLogin would allow something.
	NeedsCertificate func() bool
	// Protected reports whether clients on other machines are rejected while no login is needed.
	Protected func() bool
}

// callsFor returns calls that would show the content of a response.
func callsFor(r *http.Request) [][]string {
	calls := [][]string{{"INFO"}}
	if r.URL.Path != "/metrics" {
		calls = append(calls, []string{"RL.TOP"})
	}
	if key, err := keyOf(r); err == nil && r.URL.Path == "/api/limiter" {
		calls = append(calls, []string{"PTTL", string(key)})
	}
	return calls
}

// loginDelay delays the response to a wrong password or token, so that a connection has few
// attempts. The number of connections is limited.
const loginDelay = 500 * time.Millisecond

// guard serves requests that are allowed.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["Authorization"]) > 1 {
			fail(w, http.StatusBadRequest, "the request has several Authorization headers: send one")
			return
		}
		may, proven := s.login(r)
		switch {
		case may == nil:
			s.askForLogin(w, r)
			return
		case proven:
		case !isLoopback(r.RemoteAddr):
			if s.access.Protected() {
				fail(w, http.StatusForbidden, "protected mode: without a password or --http-token-file only clients "+
					"on this machine are served; set one, or --protected-mode no")
				return
			}
		case !isLocalName(r.Host):
			// a page of another site may have made a browser resolve the site's name to this
			// machine
			fail(w, http.StatusForbidden, "without a password, this machine is served as localhost or by an IP "+
				"address only, not as "+r.Host)
			return
		}
		denied := deniedCall(may, r)
		switch {
		case denied == "":
			still := func() bool { return s.stillAllowed(may, proven, r) }
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), stillAllowedKey{}, still)))
		case r.Header.Get("Authorization") == "":
			s.askForLogin(w, r)
		default:
			fail(w, http.StatusForbidden, "the user lacks the permission to run "+denied)
		}
	})
}

// deniedCall returns a call of callsFor that the permission denies, or "".
func deniedCall(may Permission, r *http.Request) string {
	for _, call := range callsFor(r) {
		if !may(call...) {
			return call[0]
		}
	}
	return ""
}

// stillAllowedKey is the context key of a func() bool that reports whether the request is still
// allowed.
type stillAllowedKey struct{}

// stillAllowed reports whether a request that was allowed still is: users and their rules may
// change during a stream. As in Redis, a new password does not end a login.
func (s *Server) stillAllowed(may Permission, proven bool, r *http.Request) bool {
	if !proven {
		anyone := s.access.WithoutLogin()
		if anyone == nil || !isLoopback(r.RemoteAddr) && s.access.Protected() {
			return false
		}
		if r.Header.Get("Authorization") == "" {
			may = anyone
		}
	}
	return deniedCall(may, r) == ""
}

// login returns the permission for the credentials of a request, or nil if they are wrong or
// missing, and whether they prove who sends it: a password, the token or a client certificate does,
// the name of a user without a password does not. What is not proven is as good as no login: it is
// allowed only where none is needed, and in the bounds of clients without one.
func (s *Server) login(r *http.Request) (may Permission, proven bool) {
	header, certified := r.Header.Get("Authorization"), hasCertificate(r)
	suffices := s.access.Token == "" && !s.lacksCertificate(r) // what clients have without a login
	if header == "" {
		if !suffices {
			return nil, false
		}
		return s.access.WithoutLogin(), certified
	}
	if scheme, token, _ := strings.Cut(header, " "); strings.EqualFold(scheme, "Bearer") {
		if s.access.Token != "" && equal(strings.TrimSpace(token), s.access.Token) {
			return func(...string) bool { return true }, true
		}
		return nil, false
	}
	user, password, ok := r.BasicAuth()
	if !ok {
		return nil, false
	}
	if user == "" {
		user = "default"
	}
	may, proven = s.access.Login(user, password, r.RemoteAddr)
	switch {
	case proven || may == nil:
		return may, proven
	case suffices && (certified || s.access.WithoutLogin() != nil):
		return may, certified
	}
	return nil, false
}

// hasCertificate reports whether the client of a request has presented a certificate that the
// handshake has verified.
func hasCertificate(r *http.Request) bool { return r.TLS != nil && len(r.TLS.VerifiedChains) > 0 }

// lacksCertificate reports whether the client of a request presented no certificate although one is
// required.
func (s *Server) lacksCertificate(r *http.Request) bool {
	return r.TLS != nil && !hasCertificate(r) && s.access.NeedsCertificate()
}

// equal compares two texts in constant time.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// askForLogin replies that credentials are needed. The reply to wrong ones is delayed.
func (s *Server) askForLogin(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		s.failedLogins.Add(1)
		sleep(r.Context(), s.timeouts.LoginDelay)
	}
	text := "basic authentication with a user and a password is required"
	if s.access.Token != "" {
		text += ", or the bearer token in --http-token-file"
	}
	if s.lacksCertificate(r) {
		text += "; or, if no password is set, a client certificate, because tls-auth-clients is yes"
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="rlserver", charset="UTF-8"`)
	fail(w, http.StatusUnauthorized, text)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func isLoopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// isLocalName reports whether a Host header is a name of this machine that no other site can use.
func isLocalName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "" || strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost")
}
