package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"rlserver/internal/logins"
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
	// Limit calls a function that checks the credentials of a client. If too many logins have
	// failed, it returns how long the client has to wait instead.
	Limit func(address string, check func() logins.Result) (wait time.Duration)
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
func (s *Server) callsFor(r *http.Request) [][]string {
	calls := [][]string{{"INFO"}}
	if r.URL.Path != "/metrics" {
		calls = append(calls, []string{"RL.TOP"})
	}
	if r.URL.Path == "/api/limiter" {
		if _, key, err := s.keyOf(r); err == nil {
			calls = append(calls, []string{"PTTL", string(key)})
		}
	}
	return calls
}

// guard serves requests that are allowed.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["Authorization"]) > 1 {
			fail(w, http.StatusBadRequest, "the request has several Authorization headers: send one")
			return
		}
		may, proven, wait := s.login(r)
		switch {
		case wait > 0:
			w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
			fail(w, http.StatusTooManyRequests, logins.Refusal(wait))
			return
		case may == nil:
			s.askForLogin(w, r)
			return
		case proven:
		case r.Method == http.MethodPost && !isLocalName(r.Host):
			// as below, and for clients of other machines too, as calls may change something
			fail(w, http.StatusForbidden, "without a password, calls are made at localhost or an IP address only, "+
				"not at "+r.Host)
			return
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
		denied := s.deniedCall(may, r)
		switch {
		case denied == "":
			client := &client{may: may, still: func() bool { return s.stillAllowed(may, proven, r) }}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), clientKey{}, client)))
		case r.Header.Get("Authorization") == "":
			s.askForLogin(w, r)
		default:
			fail(w, http.StatusForbidden, "the user lacks the permission to run "+denied)
		}
	})
}

// deniedCall returns a call of callsFor that the permission denies, or "".
func (s *Server) deniedCall(may Permission, r *http.Request) string {
	for _, call := range s.callsFor(r) {
		if !may(call...) {
			return call[0]
		}
	}
	return ""
}

// client is who has sent a request that is allowed.
type client struct {
	may   Permission
	still func() bool // reports whether the request is still allowed
}

// clientKey is the context key of a *client.
type clientKey struct{}

func clientOf(r *http.Request) *client { return r.Context().Value(clientKey{}).(*client) }

// hasToken reports whether a request that is allowed has sent the token.
func hasToken(r *http.Request) bool {
	_, _, user := r.BasicAuth()
	return r.Header.Get("Authorization") != "" && !user
}

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
	return s.deniedCall(may, r) == ""
}

// login returns the permission for the credentials of a request, or nil if they are wrong or
// missing, and whether they prove who sends it: a password, the token or a client certificate does,
// the name of a user without a password does not. What is not proven is as good as no login: it is
// allowed only where none is needed, and in the bounds of clients without one.
func (s *Server) login(r *http.Request) (may Permission, proven bool, wait time.Duration) {
	certified := hasCertificate(r)
	suffices := s.access.Token == "" && !s.lacksCertificate(r) // what clients have without a login
	check := s.checkOf(r)
	switch {
	case r.Header.Get("Authorization") == "" && suffices:
		return s.access.WithoutLogin(), certified, 0
	case check == nil:
		return nil, false, 0
	}
	wait = s.access.Limit(r.RemoteAddr, func() logins.Result {
		may, proven = check()
		return logins.ResultOf(may != nil, proven)
	})
	if may != nil && !proven {
		if !suffices || !certified && s.access.WithoutLogin() == nil {
			return nil, false, wait
		}
		proven = certified
	}
	return may, proven, wait
}

// checkOf returns the check of the credentials of a request, or nil if there are none that could be
// right.
func (s *Server) checkOf(r *http.Request) func() (may Permission, proven bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && s.access.Token != "" {
		return func() (Permission, bool) {
			if equal(strings.TrimSpace(token), s.access.Token) {
				return func(...string) bool { return true }, true
			}
			return nil, false
		}
	}
	user, password, ok := r.BasicAuth()
	if !ok {
		return nil
	}
	return func() (Permission, bool) {
		return s.access.Login(cmp.Or(user, "default"), password, r.RemoteAddr)
	}
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

// askForLogin replies that credentials are needed.
func (s *Server) askForLogin(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		s.failedLogins.Add(1)
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
