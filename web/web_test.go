package web

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/logins"
	"rlserver/internal/stats"
)

const maxWait = 2 * time.Minute

// fake is a Source that the test controls.
type fake struct {
	mu     sync.Mutex
	state  State
	denied []DeniedKey
	ready  error
}

func (f *fake) State() *State {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.state
	return &s
}
func (f *fake) Ready() error             { return f.ready }
func (f *fake) ReadyForTraffic() error   { return f.ready }
func (f *fake) Denied(n int) []DeniedKey { return f.denied[:min(n, len(f.denied))] }
func (f *fake) NameOf(_ int, hash uint64) []byte {
	if hash == 7 {
		return []byte("login:ann")
	}
	return nil
}
func (f *fake) set(change func(s *State)) { f.mu.Lock(); defer f.mu.Unlock(); change(&f.state) }
func (f *fake) Limiter(db int, key []byte) (Limiter, bool, error) {
	if string(key) != "login:ann" {
		return Limiter{}, false, nil
	}
	return Limiter{
		Type: "zset", ExpiresIn: time.Minute, Rule: "SLIDE 5 1m", Limit: 5, Remaining: 1,
		RetryIn: 1500 * time.Millisecond, ResetIn: time.Minute,
	}, true, nil
}

func newFake() *fake {
	f := &fake{state: State{
		Version: "1", Time: 1e12,
		Commands: []Command{{Name: "rl.slide", CommandCounts: stats.CommandCounts{
			Calls: 10, Decisions: stats.DecisionCounts{Admitted: 7, Denied: 3},
		}}, {Name: "get", CommandCounts: stats.CommandCounts{Calls: 4, Failed: 1}}},
		Policies: []Policy{
			{Name: "login", Definition: "SLIDE 5 1m", Decisions: stats.DecisionCounts{Admitted: 2, Denied: 1}},
		},
		Keys: Keys{Types: []TypeKeys{{"zset", 2}}, Databases: []Database{{0, 2, 1}}},
		Disk: Disk{AppendOnly: true, Syncs: true, State: "ok"}, Clock: Clock{State: "synced"},
	}}
	counters := stats.New(1)
	meter := stats.Meter{Counters: counters}
	for i := range 10 {
		meter.Add(0, 1, time.Duration(i)*time.Millisecond)
	}
	meter.Flush()
	f.state.Commands[0].Latency = counters.Command(0).Latency
	return f
}

func allowAll(...string) bool { return true }

// open allows everything to clients on this machine.
var open = Access{
	WithoutLogin: func() Permission { return allowAll },
	Protected:    func() bool { return true },
	Login:        func(string, string, string) (Permission, bool) { return nil, false },
	Limit:        unlimited,
}

func unlimited(_ string, check func() logins.Result) time.Duration { check(); return 0 }

func options(source Source) Options {
	return Options{
		Source: source, Access: open, Log: slog.New(slog.DiscardHandler), MaxConnections: 50, Health: 8, MaxStreams: 4,
		RESPPort: func() string { return "6379" }, KeepAlive: func() (off net.KeepAliveConfig) { return off },
		Timeouts: Timeouts{Header: maxWait, Request: maxWait, Event: maxWait},
	}
}

// serving starts a server, which runs until the test ends, and returns its address.
func serving(t *testing.T, o Options) (s *Server, address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serve(t, o, ln), ln.Addr().String()
}

// serve serves a listener's connections until the test ends.
func serve(t *testing.T, o Options, ln net.Listener) *Server {
	t.Helper()
	s := New(o)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), maxWait)
		defer cancel()
		s.Close(ctx)
		assert.NoError(t, <-ended)
	})
	return s
}

// send sends bytes and returns the server's response up to the end of the connection.
func send(t *testing.T, address, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(maxWait))
	_, _ = io.WriteString(c, text) // the server may have closed the connection
	reply, _ := io.ReadAll(c)
	return string(reply)
}

func get(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
}

func TestMetricsFollowTheConventions(t *testing.T) {
	_, address := serving(t, options(newFake()))
	response, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	problems, err := promlint.New(strings.NewReader(string(text))).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	for _, line := range []string{
		`rlserver_decisions_total{command="rl.slide",outcome="admitted"} 7`,
		`rlserver_decisions_total{command="rl.slide",outcome="denied"} 3`,
		`rlserver_policy_decisions_total{outcome="denied",policy="login"} 1`,
		`rlserver_command_calls_total{command="get"} 4`,
		`rlserver_command_errors_total{command="get",stage="failed"} 1`,
		`rlserver_command_duration_seconds_bucket{command="rl.slide",le="0.001024"} 2`,
		`rlserver_command_duration_seconds_count{command="rl.slide"} 10`,
		`rlserver_keys{type="zset"} 2`,
		`rlserver_disk_state{state="ok"} 1`,
		`rlserver_ready 1`,
		`go_goroutines `,
		`process_resident_memory_bytes `,
	} {
		assert.Contains(t, string(text), "\n"+line)
	}
}

func TestMetricsOfPoliciesAreLimited(t *testing.T) {
	f := newFake()
	for i := range 20_000 {
		f.state.Policies = append(f.state.Policies, Policy{Name: fmt.Sprint("p", i)})
	}
	s := New(options(f))
	defer s.Close(t.Context())
	text := request(s, local, "http://localhost/metrics").Body.String()
	assert.Contains(t, text, "\nrlserver_policies 20001\n")
	assert.Contains(t, text, "\nrlserver_policies_omitted 20000\n")
	assert.Contains(t, text, `rlserver_policy_decisions_total{outcome="denied",policy="login"} 1`)
	assert.Less(t, len(text), 1<<20)
}

func TestCheckHealth(t *testing.T) {
	f := newFake()
	_, address := serving(t, options(f))
	check := func(path string) error { return CheckHealth(t.Context(), "http://"+address+path) }
	assert.NoError(t, check(""))
	assert.NoError(t, check("/readyz"))
	f.ready = errors.New("the data is being loaded")
	assert.NoError(t, check("/healthz"), "it is healthy although it is not ready")
	assert.ErrorContains(t, check("/readyz"), "503 Service Unavailable: not ready: the data is being loaded")
	for _, bad := range []string{"localhost:9121", "ftp://localhost/", "http://", ":"} {
		assert.ErrorContains(t, CheckHealth(t.Context(), bad), "is not an address such as")
	}
	assert.ErrorContains(t, CheckHealth(t.Context(), "http://127.0.0.1:1/healthz"), "connection refused")
}

// request serves a request from a client address, without a socket.
func request(s *Server, from, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.RemoteAddr = from
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, r)
	return w
}

const local, remote = "127.0.0.1:5", "192.0.2.1:5"

func TestWithoutPasswordOnlyThisMachineIsServed(t *testing.T) {
	o := options(newFake())
	protected := true
	o.Access.Protected = func() bool { return protected }
	s := New(o)
	defer s.Close(t.Context())
	assert.Equal(t, 200, request(s, local, "http://localhost:9121/metrics").Code)
	assert.Equal(t, 200, request(s, local, "http://127.0.0.1:9121/").Code)
	assert.Equal(t, 200, request(s, "[::1]:5", "http://[::1]:9121/").Code)

	w := request(s, local, "http://rebound.example:9121/metrics")
	assert.Equal(t, 403, w.Code)
	assert.Contains(t, w.Body.String(), "not as rebound.example")
	w = request(s, remote, "http://10.0.0.1:9121/metrics")
	assert.Equal(t, 403, w.Code)
	assert.Contains(t, w.Body.String(), "protected mode")
	assert.Equal(t, 200, request(s, remote, "http://10.0.0.1:9121/readyz").Code, "probes need no login")
	protected = false
	assert.Equal(t, 200, request(s, remote, "http://rlserver:9121/metrics").Code)
}

// If client certificates are required, clients without one must log in, except for health checks.
func TestClientsWithoutACertificateMustLogIn(t *testing.T) {
	o := options(newFake())
	o.Access.NeedsCertificate = func() bool { return true }
	o.Access.Login = func(user, _, _ string) (Permission, bool) { return allowAll, user == "ann" }
	s := New(o)
	defer s.Close(t.Context())
	send := func(path, user string, presented ...*x509.Certificate) int {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.RemoteAddr, r.Host, r.TLS = local, "localhost:9121", &tls.ConnectionState{PeerCertificates: presented}
		if presented != nil {
			r.TLS.VerifiedChains = [][]*x509.Certificate{presented}
		}
		if user != "" {
			r.SetBasicAuth(user, "sesame")
		}
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, r)
		return w.Code
	}
	assert.Equal(t, 401, send("/metrics", ""))
	assert.Equal(t, 401, send("/metrics", "default"), "a user without a password does not replace the certificate")
	assert.Equal(t, 200, send("/metrics", "ann"))
	assert.Equal(t, 200, send("/metrics", "", new(x509.Certificate)))
	assert.Equal(t, 200, send("/metrics", "default", new(x509.Certificate)))
	assert.Equal(t, 200, send("/healthz", ""))
}

func TestAccessByPasswordAndToken(t *testing.T) {
	o := options(newFake())
	o.Access = Access{
		Limit: unlimited, Token: "0123456789abcdef", WithoutLogin: func() Permission { return nil },
		Login: func(user, password, _ string) (Permission, bool) {
			switch user + " " + password {
			case "default sesame":
				return allowAll, true
			case "prometheus scrape":
				return func(words ...string) bool { return words[0] == "INFO" }, true
			case "support help":
				return func(words ...string) bool { return words[0] != "PTTL" || words[1] == "login:ann" }, true
			}
			return nil, false
		},
	}
	s := New(o)
	defer s.Close(t.Context())
	for _, path := range []string{"/metrics", "/", "/page.js", "/api/history", "/api/events", "/api/limiter"} {
		w := request(s, local, path)
		assert.Equal(t, 401, w.Code, path)
		assert.Contains(t, w.Header().Get("WWW-Authenticate"), "Basic")
	}
	for credentials, code := range map[string]int{
		basic("default", "sesame"): 200, basic("", "sesame"): 200, "Bearer 0123456789abcdef": 200,
		"bearer 0123456789abcdef": 200, basic("default", "wrong"): 401, basic("ann", "sesame"): 401,
		"Bearer wrong": 401, "Bearer ": 401, "Basic !": 401, "0123456789abcdef": 401,
	} {
		assert.Equal(t, code, request(s, remote, "/metrics", "Authorization", credentials).Code, credentials)
	}
	assert.EqualValues(t, 6, s.failedLogins.Load())

	as := func(credentials, path string) int {
		return request(s, remote, path, "Authorization", credentials).Code
	}
	assert.Equal(t, 200, as(basic("prometheus", "scrape"), "/metrics"))
	assert.Equal(t, 403, as(basic("prometheus", "scrape"), "/"), "the page would show keys")
	assert.Equal(t, 200, as(basic("support", "help"), "/"))
	assert.Equal(t, 200, as(basic("support", "help"), "/api/limiter?db=0&key=bG9naW46YW5u"))
	assert.Equal(t, 403, as(basic("support", "help"), "/api/limiter?db=0&key=YQ"), "the user may not read this key")
	assert.Equal(t, 200, request(s, remote, "/healthz").Code)
}

// Clients without a login have the permissions of the default user.
func TestDefaultUserMayBeRestricted(t *testing.T) {
	o := options(newFake())
	o.Access.WithoutLogin = func() Permission { return func(words ...string) bool { return words[0] == "INFO" } }
	s := New(o)
	defer s.Close(t.Context())
	assert.Equal(t, 200, request(s, local, "http://localhost/metrics").Code)
	assert.Equal(t, 401, request(s, local, "http://localhost/").Code)
}

func TestOnlyGetAndHeadAreServed(t *testing.T) {
	s := New(options(newFake()))
	defer s.Close(t.Context())
	for _, method := range []string{"POST", "PUT", "DELETE", "CONNECT"} {
		r := httptest.NewRequest(method, "/metrics", strings.NewReader("SHUTDOWN"))
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, r)
		assert.Equal(t, 405, w.Code)
	}
	assert.Equal(t, 404, request(s, local, "http://localhost/nowhere").Code)
	assert.Equal(t, 404, request(s, local, "http://localhost/debug/pprof/").Code, "only with --debug-http")
	o := options(newFake())
	o.Debug = true
	debug := New(o)
	defer debug.Close(t.Context())
	assert.Equal(t, 200, request(debug, local, "http://localhost/debug/pprof/").Code)
}

func TestLimiterReturnsTheStateOfAKey(t *testing.T) {
	s := New(options(newFake()))
	defer s.Close(t.Context())
	w := request(s, local, "http://localhost/api/limiter?db=0&key=bG9naW46YW5u")
	assert.JSONEq(t, `{"found":true,"name":"login:ann","db":0,"type":"zset","rule":"SLIDE 5 1m","unusable":"",
		"limit":5,"used":4,"remaining":1,"retryIn":1500,"resetIn":60000,"expiresIn":60000}`, w.Body.String())
	assert.Contains(t, request(s, local, "http://localhost/api/limiter?db=0&key=YQ").Body.String(), `"found":false`)
	long := base64.RawURLEncoding.EncodeToString(make([]byte, 20<<10))
	assert.Contains(t, request(s, local, "http://localhost/api/limiter?db=0&key="+long).Body.String(), `"found":false`)
	assert.Contains(t, request(s, local, "http://localhost/api/limiter?db=0&key=~7").Body.String(), `"name":"login:ann"`)
	assert.Contains(t, request(s, local, "http://localhost/api/limiter?db=0&key=~8").Body.String(), `"found":false`)
	for _, bad := range []string{
		"", "?db=0&key=~", "?db=0&key=~x", "?db=-1&key=~7", "?db=0&key=!", "?db=x&key=YQ", "?db=-1&key=YQ",
	} {
		assert.Equal(t, 400, request(s, local, "http://localhost/api/limiter"+bad).Code)
	}
}

func TestLargeHeadersAreRejected(t *testing.T) {
	_, address := serving(t, options(newFake()))
	reply := send(t, address, "GET / HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
	if reply != "" { // the unread rest of the header may reset the connection
		assert.Contains(t, reply, "431 Request Header Fields Too Large")
	}
	assert.Contains(t, send(t, address, get("/healthz")), "200 OK")
}

func TestRedisClientsGetTheRightPort(t *testing.T) {
	_, address := serving(t, options(newFake()))
	for _, text := range []string{"*1\r\n$4\r\nPING\r\n", "PING\r\n", "AUTH secret\r\n", "*3\r\n$8\r\nRL.SLIDE"} {
		assert.Equal(t, "-ERR this port speaks HTTP, not the Redis protocol: use port 6379\r\n", send(t, address, text))
	}
	assert.Contains(t, send(t, address, "\x16\x03\x01\x02\x00\r\n\r\n"), "400 Bad Request")
}

func TestIncompleteRequestsTimeOut(t *testing.T) {
	o := options(newFake())
	o.Timeouts.Header = 50 * time.Millisecond
	_, address := serving(t, o)
	for _, text := range []string{"", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n"} {
		// send returns because the server closes the connection
		assert.NotContains(t, send(t, address, text), "200 OK")
	}
}

func TestSlowReaderOfMetricsIsDisconnected(t *testing.T) {
	f := newFake()
	for i := range 100_000 { // more than fits in the socket buffers
		f.state.Keys.Types = append(f.state.Keys.Types, TypeKeys{Type: fmt.Sprintf("type-%080d", i)})
	}
	o := options(f)
	o.Timeouts.Request = 2 * time.Second
	s, address := serving(t, o)
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, get("/metrics"))
	require.NoError(t, err)
	// connections are accepted in their order: the slow reader is among them now
	require.Eventually(t, func() bool { return strings.Contains(send(t, address, get("/healthz")), "200 OK") },
		maxWait, time.Millisecond, "other clients are served")
	require.Eventually(t, func() bool { return s.Connections().Open == 0 }, maxWait, time.Millisecond)
	rest, _ := io.ReadAll(c)
	assert.Less(t, len(rest), 80*len(f.state.Keys.Types), "the response is incomplete")
}

func TestSlowReaderOfEventsIsDisconnected(t *testing.T) {
	f := newFake()
	for range maxDenied {
		f.denied = append(f.denied, DeniedKey{Name: []byte(strings.Repeat("x", 1<<20))})
	}
	o := options(f)
	o.Timeouts.Event = 100 * time.Millisecond
	s, address := serving(t, o)
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, get("/api/events"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.cutOff.Load() == 1 }, maxWait, time.Millisecond)
	require.Eventually(t, func() bool { return s.streams.Load() == 0 }, maxWait, time.Millisecond)
}

// basic returns the Authorization header of a user.
func basic(user, password string) string {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

// A stream ends when its user is deleted or loses permissions, or when a login becomes required.
func TestStreamEndsWhenPermissionIsRevoked(t *testing.T) {
	for _, credentials := range []string{"", "Authorization: " + basic("ann", "secret") + "\r\n"} {
		var revoked atomic.Bool
		may := func(...string) bool { return !revoked.Load() }
		o := options(newFake())
		o.Access.Login = func(string, string, string) (Permission, bool) { return may, true }
		o.Access.WithoutLogin = func() Permission {
			if revoked.Load() {
				return nil
			}
			return allowAll
		}
		s, address := serving(t, o)
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer c.Close()
		c.SetDeadline(time.Now().Add(maxWait))
		_, err = io.WriteString(c, "GET /api/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+
			credentials+"\r\n")
		require.NoError(t, err)
		r := bufio.NewReader(c)
		for line := ""; !strings.HasPrefix(line, "data: {"); {
			line, err = r.ReadString('\n')
			require.NoError(t, err)
		}
		revoked.Store(true)
		_, err = io.Copy(io.Discard, r)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return s.streams.Load() == 0 }, maxWait, time.Millisecond)
	}
}

// HEAD gets the headers of a stream, and ends.
func TestHeadersOfAStream(t *testing.T) {
	_, address := serving(t, options(newFake()))
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(maxWait))
	_, err = io.WriteString(c, "HEAD /api/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	reply, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Contains(t, string(reply), "HTTP/1.1 200 OK\r\n")
	assert.Contains(t, string(reply), "Content-Type: text/event-stream\r\n")
}

func TestConnectionsHaveKeepAlive(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	l := listener{Listener: ln, places: newPlaces(1, 1), keepAlive: func() net.KeepAliveConfig {
		return net.KeepAliveConfig{Enable: true, Idle: 77 * time.Second, Interval: time.Second, Count: 3}
	}}
	client, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	c, err := l.Accept()
	require.NoError(t, err)
	defer c.Close()
	raw, err := c.(*conn).Conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	var on, idle int
	require.NoError(t, raw.Control(func(fd uintptr) {
		on, _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE)
		idle, _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE)
	}))
	assert.Equal(t, []int{1, 77}, []int{on, idle})
}

func TestNumberOfStreamsIsLimited(t *testing.T) {
	s, address := serving(t, options(newFake()))
	served := make(chan *bufio.Reader, 1000)
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			c, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			c.SetDeadline(time.Now().Add(maxWait))
			_, _ = io.WriteString(c, get("/api/events"))
			r := bufio.NewReader(c)
			if line, _ := r.ReadString('\n'); strings.Contains(line, "200 OK") {
				served <- r
			}
		})
	}
	all.Wait()
	assert.Len(t, served, 4, "--http-max-streams")
	require.Eventually(t, func() bool { return s.Connections().Open <= 4 }, maxWait, time.Millisecond)
	assert.Contains(t, send(t, address, get("/metrics")), "rlserver_http_event_streams 4", "other requests are served")
	assert.Contains(t, send(t, address, get("/api/events")), "too many pages are open: --http-max-streams is 4")
	r := <-served
	for line := ""; !strings.HasPrefix(line, "data: {"); {
		var err error
		line, err = r.ReadString('\n')
		require.NoError(t, err)
	}
}

// The files of the page contain no URLs of other hosts, and the content security policy forbids
// them.
func TestPageLoadsNothingFromOtherHosts(t *testing.T) {
	s := New(options(newFake()))
	defer s.Close(t.Context())
	for _, name := range []string{"/", "/page.css", "/page.js", "/plot.js", "/format.js", "/icon.svg"} {
		w := request(s, local, "http://localhost"+name)
		require.Equal(t, 200, w.Code, name)
		assert.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
		text := strings.ReplaceAll(w.Body.String(), "http://www.w3.org/2000/svg", "")
		assert.NotContains(t, text, "//www.", name)
		assert.NotRegexp(t, `(?i)https?://|@import|url\(\s*['"]?//`, text, name)
		again := request(s, local, "http://localhost"+name, "If-None-Match", w.Header().Get("ETag"))
		assert.Equal(t, 304, again.Code)
	}
}
