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

// Access decides who may see what the server shows.
type Access struct {
	// Token is what clients may give as a bearer token; "": none.
	Token string
	// PasswordRequired reports whether a user and a password are needed where no token is given.
	PasswordRequired func() bool
	// Login reports whether a user with this password may see the server's state. Its time depends
	// on neither. It counts failures.
	Login func(user, password, address string) bool
	// Protected reports whether clients of other machines are refused while neither a password nor
	// a token is needed.
	Protected func() bool
}

// loginDelay is how long the reply to a wrong password or token takes, so that a connection can try
// few. Connections are limited.
const loginDelay = 500 * time.Millisecond

// guard serves a request if it may be served.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.access.Token != "" || s.access.PasswordRequired():
			if !s.admits(r) {
				s.refuse(w, r)
				return
			}
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
		next.ServeHTTP(w, r)
	})
}

// admits checks the credentials of a request.
func (s *Server) admits(r *http.Request) bool {
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return s.access.Token != "" && equal(strings.TrimSpace(token), s.access.Token)
	}
	user, password, ok := r.BasicAuth()
	if !ok {
		return false
	}
	if user == "" {
		user = "default"
	}
	return s.access.PasswordRequired() && s.access.Login(user, password, r.RemoteAddr)
}

// equal compares in a time that depends on neither text.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// refuse replies that credentials are needed. Wrong ones get the reply later.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		s.failedLogins.Add(1)
		sleep(r.Context(), s.timeouts.LoginDelay)
	}
	challenge, text := `Bearer realm="rlserver"`, "a bearer token is needed: the one in --http-token-file"
	if s.access.PasswordRequired() {
		challenge, text = `Basic realm="rlserver", charset="UTF-8"`, "a user and a password are needed, by basic "+
			"authentication, of a user who may run INFO"
		if s.access.Token != "" {
			text += "; or the bearer token in --http-token-file"
		}
	}
	w.Header().Set("WWW-Authenticate", challenge)
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
