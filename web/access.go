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

// Permission reports whether a call of the Redis protocol is allowed. What HTTP shows is allowed to
// users who could see it by such calls.
type Permission func(words ...string) bool

// Access decides which users may see what the server shows.
type Access struct {
	// Token is what clients may give as a bearer token, which allows everything; "": there is none.
	Token string
	// Anyone returns what is allowed without a login; nil: a login is needed.
	Anyone func() Permission
	// Login returns what a user is allowed; nil: the user or the password is wrong. It takes the
	// same time for both, and counts failures. noPassword says whether users who need no password
	// can log in.
	Login func(user, password, address string, noPassword bool) Permission
	// NeedsCertificate reports whether clients of TLS that give no certificate have to log in, also
	// where Anyone would allow them to see something.
	NeedsCertificate func() bool
	// Protected reports whether clients of other machines are refused while no login is needed.
	Protected func() bool
}

// callsFor returns calls that show what a request asks for.
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

// loginDelay is how long the reply to a wrong password or token takes, so that a connection can try
// few. Connections are limited.
const loginDelay = 500 * time.Millisecond

// guard serves a request if it may be served.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get("Authorization") != ""
		may := s.permission(r)
		switch {
		case may == nil:
			s.askForLogin(w, r)
			return
		case given || s.access.Token != "":
		case !isLoopback(r.RemoteAddr):
			if s.access.Protected() {
				fail(w, http.StatusForbidden, "protected mode: without a password or --http-token-file only clients "+
					"on this machine are served; set one, or --protected-mode no")
				return
			}
		case !isLocalName(r.Host):
			// a page of another site may have made a browser believe that its name is of this
			// machine
			fail(w, http.StatusForbidden, "without a password, this machine is served as localhost or by an IP "+
				"address only, not as "+r.Host)
			return
		}
		denied := deniedCall(may, r)
		switch {
		case denied == "":
			still := func() bool { return s.stillAllowed(may, r) }
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), stillAllowedKey{}, still)))
		case !given:
			s.askForLogin(w, r)
		default:
			fail(w, http.StatusForbidden, "the user may not run what shows this: "+denied)
		}
	})
}

// deniedCall returns the name of a call that shows what a request asks for and is not allowed; "":
// all are.
func deniedCall(may Permission, r *http.Request) string {
	for _, call := range callsFor(r) {
		if !may(call...) {
			return call[0]
		}
	}
	return ""
}

// stillAllowedKey is the key in the context of a request of a func() bool, which reports whether
// the request would still be served.
type stillAllowedKey struct{}

// stillAllowed reports whether a request that was served with a permission still would be: users
// and their rules change while a stream goes on. As in Redis, a new password ends no login.
func (s *Server) stillAllowed(may Permission, r *http.Request) bool {
	if r.Header.Get("Authorization") == "" {
		may = s.access.Anyone()
		if may == nil || !isLoopback(r.RemoteAddr) && s.access.Protected() {
			return false
		}
	}
	return deniedCall(may, r) == ""
}

// permission returns what the credentials of a request allow; nil: they are wrong or missing.
func (s *Server) permission(r *http.Request) Permission {
	header := r.Header.Get("Authorization")
	trusted := s.access.Token == "" && !s.lacksCertificate(r)
	if header == "" && trusted {
		return s.access.Anyone()
	}
	if scheme, token, _ := strings.Cut(header, " "); strings.EqualFold(scheme, "Bearer") {
		if s.access.Token != "" && equal(strings.TrimSpace(token), s.access.Token) {
			return func(...string) bool { return true }
		}
		return nil
	}
	user, password, ok := r.BasicAuth()
	if !ok {
		return nil
	}
	if user == "" {
		user = "default"
	}
	// without a password it is no way around the token or the certificate
	return s.access.Login(user, password, r.RemoteAddr, trusted)
}

// lacksCertificate reports whether the client of a request has given no certificate although the
// server asks for one. A certificate that was given is valid: the handshake has checked it.
func (s *Server) lacksCertificate(r *http.Request) bool {
	return r.TLS != nil && len(r.TLS.PeerCertificates) == 0 && s.access.NeedsCertificate()
}

// equal compares in a time that depends on neither text.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// askForLogin replies that credentials are needed. Wrong ones get the reply later.
func (s *Server) askForLogin(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		s.failedLogins.Add(1)
		sleep(r.Context(), s.timeouts.LoginDelay)
	}
	text := "a user and a password are needed, by basic authentication"
	if s.access.Token != "" {
		text += ", or the bearer token in --http-token-file"
	}
	if s.lacksCertificate(r) {
		text += "; or a client certificate, as tls-auth-clients is yes, if no password is set"
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

// isLocalName reports whether a Host header names this machine in a way that no other site can make
// its own.
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
