package web

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"rlserver/internal/logins"
)

// accessCase is a server, and a client that asks for the metrics.
type accessCase struct {
	loginNeeded bool     // the default user has a password, or is off
	unprotected bool     // protected mode is off
	token       bool     // the server has a token
	certificate string   // "checked", "unchecked", or "" for none
	required    bool     // tls-auth-clients is yes
	header      []string // Authorization
	from, host  string
	want        int
}

const secretToken = "0123456789abcdef"

// users of the server: ann has a password, guest and, if no login is needed, default have none.
func (c accessCase) access() Access {
	a := Access{
		WithoutLogin: func() Permission {
			if c.loginNeeded {
				return nil
			}
			return allowAll
		},
		Protected:        func() bool { return !c.unprotected && !c.loginNeeded },
		NeedsCertificate: func() bool { return c.required },
		Limit:            unlimited,
		Login: func(user, password, _ string) (Permission, bool) {
			switch {
			case user == "ann" && password == "sesame":
				return allowAll, true
			case user == "guest" || user == "default" && !c.loginNeeded:
				return allowAll, false
			}
			return nil, false
		},
	}
	if c.token {
		a.Token = secretToken
	}
	return a
}

// ask returns the statuses of requests.
func (c accessCase) ask(t *testing.T, paths ...string) (statuses []int) {
	o := options(newFake())
	o.Access = c.access()
	s := New(o)
	defer s.Close(t.Context())
	for _, path := range paths {
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, c.request(path))
		statuses = append(statuses, w.Code)
	}
	return statuses
}

func (c accessCase) request(path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr, r.Host = c.from, c.host
	r.Header["Authorization"] = c.header
	if c.certificate != "" || c.required {
		r.TLS = new(tls.ConnectionState)
	}
	if c.certificate != "" {
		r.TLS.PeerCertificates = []*x509.Certificate{{}}
	}
	if c.certificate == "checked" {
		r.TLS.VerifiedChains = [][]*x509.Certificate{r.TLS.PeerCertificates}
	}
	return r
}

// A login that proves nothing gives no access that the client would not have without it.
func TestOnlyAProvenLoginReplacesProtectedModeAndTheHostCheck(t *testing.T) {
	const here, there, mapped, here6 = "127.0.0.1:5", "192.0.2.1:5", "[::ffff:127.0.0.1]:5", "[::1]:5"
	const foreign, byName = "rebound.example:9121", "localhost:9121"
	unproven := [][]string{
		nil, {""}, {basic("default", "x")}, {basic("default", "")}, {"Basic Og=="}, {basic("", "x")},
		{basic("guest", "x")}, {basic("guest", "")}, {"basic ZGVmYXVsdDp4"},
	}
	for _, header := range unproven {
		for _, c := range []accessCase{
			{from: here, host: byName, want: 200},
			{from: here, host: "LOCALHOST", want: 200},
			{from: here, host: "127.0.0.1:9121", want: 200},
			{from: here6, host: "[::1]:9121", want: 200},
			{from: mapped, host: "[::ffff:127.0.0.1]:9121", want: 200},
			{from: here, host: foreign, want: 403},
			{from: here, host: "rebound.example", want: 403},
			{from: here, host: "localhost.rebound.example:9121", want: 403},
			{from: here, host: "127.0.0.1.rebound.example", want: 403},
			{from: here6, host: foreign, want: 403},
			{from: mapped, host: foreign, want: 403},
			{from: there, host: byName, want: 403},
			{from: there, host: "192.0.2.9:9121", want: 403},
			{from: "[2001:db8::1]:5", host: "[2001:db8::9]:9121", want: 403},
			{from: there, host: foreign, unprotected: true, want: 200},
			{from: here, host: foreign, unprotected: true, want: 403},
			{from: here, host: byName, loginNeeded: true, want: 401},
			{from: there, host: foreign, loginNeeded: true, want: 401},
			{from: here, host: byName, token: true, want: 401},
			{from: here, host: byName, required: true, want: 401},
			{from: here, host: byName, required: true, certificate: "unchecked", want: 401},
			{from: here, host: foreign, certificate: "unchecked", want: 403},
			{from: there, host: foreign, certificate: "unchecked", want: 403},
			{from: there, host: foreign, certificate: "checked", want: 200},
			{from: there, host: foreign, certificate: "checked", required: true, want: 200},
			{from: here, host: byName, certificate: "checked", token: true, want: 401},
		} {
			c.header = header
			assert.Equal(t, []int{c.want, c.want, c.want, 200, 200},
				c.ask(t, "/metrics", "/api/history", "/", "/healthz", "/readyz"), "%+v", c)
		}
	}
	// who has no login can use a certificate instead, but it does not name the default user
	for header, want := range map[string]int{"": 401, basic("guest", "x"): 200, basic("default", "x"): 401} {
		c := accessCase{from: there, host: foreign, loginNeeded: true, certificate: "checked", header: []string{header}}
		assert.Equal(t, []int{want}, c.ask(t, "/metrics"), header)
	}
}

func TestAProvenLoginIsServedFromEverywhere(t *testing.T) {
	for _, c := range []accessCase{{}, {loginNeeded: true}, {token: true}, {required: true}, {unprotected: true}} {
		for _, from := range []string{local, remote} {
			c.from, c.host = from, "rebound.example"
			c.header = []string{basic("ann", "sesame")}
			assert.Equal(t, []int{200}, c.ask(t, "/metrics"), "%+v", c)
			for _, wrong := range []string{
				basic("ann", "x"), basic("ann", ""), basic("nobody", "x"), "Basic", "Basic !", "Basic YW5u",
				"ann:sesame", "Bearer", "Bearer ", "Bearer x", "Digest ZGVmYXVsdDp4", " ", "Basic YW5uOnNlc2FtZQ== x",
			} {
				c.header = []string{wrong}
				assert.Equal(t, []int{401}, c.ask(t, "/metrics"), "%q %+v", wrong, c)
			}
			c.header = []string{"Bearer " + secretToken}
			assert.Equal(t, []int{map[bool]int{true: 200, false: 401}[c.token]}, c.ask(t, "/metrics"), "%+v", c)
			c.header = []string{basic("ann", "sesame"), basic("guest", "x")}
			assert.Equal(t, []int{400}, c.ask(t, "/metrics"), "only one header is read: two are refused")
		}
	}
}

// Credentials are checked by the limiter of logins. If too many were wrong, they are not checked.
func TestWrongCredentialsAreLimited(t *testing.T) {
	o := options(newFake())
	c := accessCase{token: true, unprotected: true}
	o.Access = c.access()
	failed, checks := 0, 0
	o.Access.Limit = func(address string, check func() logins.Result) time.Duration {
		assert.Equal(t, remote, address)
		if failed == 3 {
			return 1100 * time.Millisecond
		}
		if checks++; check() == logins.Wrong {
			failed++
		}
		return 0
	}
	s := New(o)
	defer s.Close(t.Context())
	ask := func(header ...string) *httptest.ResponseRecorder {
		return request(s, remote, "http://rlserver/metrics", header...)
	}
	for _, wrong := range []string{basic("ann", "x"), "Bearer x", basic("nobody", "")} {
		assert.Equal(t, 200, ask("Authorization", basic("ann", "sesame")).Code)
		assert.Equal(t, 200, ask("Authorization", "Bearer "+secretToken).Code)
		assert.Equal(t, 401, ask().Code, "nothing to check")
		assert.Equal(t, 401, ask("Authorization", "Basic !").Code, "nothing to check")
		assert.Equal(t, 401, ask("Authorization", wrong).Code)
	}
	assert.Equal(t, 9, checks)
	for _, any := range []string{basic("ann", "sesame"), "Bearer " + secretToken, basic("ann", "x")} {
		w := ask("Authorization", any)
		assert.Equal(t, 429, w.Code)
		assert.Equal(t, "2", w.Header().Get("Retry-After"))
		assert.Contains(t, w.Body.String(), "try again in 1.1 s")
	}
	assert.Equal(t, 9, checks)
	assert.Equal(t, 401, ask().Code)
	assert.Equal(t, 200, request(s, remote, "http://rlserver/healthz", "Authorization", basic("ann", "x")).Code)
}
