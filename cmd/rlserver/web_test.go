package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/clock"
	"rlserver/internal/listen"
)

// startHTTP starts a server with an HTTP port until the test ends.
func startHTTP(t *testing.T, flags ...string) (p *child, address string) {
	t.Helper()
	for range 20 { // another process may take the free port before the server does
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ln.Close()
		_, port, _ := net.SplitHostPort(ln.Addr().String())
		p = start(t, append([]string{"--http-port", port, "--http-bind", "127.0.0.1"}, flags...)...)
		for by := time.Now().Add(patience); time.Now().Before(by); {
			if conn, err := net.Dial("tcp", ln.Addr().String()); err == nil {
				conn.Close()
				return p, ln.Addr().String()
			}
			select {
			case <-p.exited:
			case <-time.After(10 * time.Millisecond):
				continue
			}
			break
		}
	}
	require.FailNow(t, "the server does not serve HTTP", "%s", p.stderr.String())
	return nil, ""
}

// fetch returns the body of a response, which must have the given status.
func fetch(t *testing.T, status int, url string, header ...string) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	return send(t, status, request, header)
}

// send sends a request, and returns the body of the response, which must have the given status.
func send(t *testing.T, status int, request *http.Request, header []string) string {
	t.Helper()
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, status, response.StatusCode, "%s: %s", request.URL, text)
	return string(text)
}

// infoFields returns the fields of INFO.
func (c *client) infoFields() map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(c.do("INFO everything")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	return fields
}

// Metrics and INFO have the same values.
func TestMetricsAgreeWithInfo(t *testing.T) {
	p, address := startHTTP(t)
	conn := p.connect()
	c := &client{t, conn, bufio.NewReader(conn)}
	for range 5 {
		c.do("RL.SLIDE login:ann 3 1h")
		c.do("RL.TOKEN api:ann 2 1 1h")
	}
	c.do("RL.POLICY SET free SLIDE 1 1h SHADOW")
	for range 3 {
		c.do("RL.CHECK ann free")
	}
	c.do("SET x y")
	c.do("HGET x f")
	c.do("RL.POLICY SET free SLIDE 2 1h FOR bob")
	c.do("RL.FIXED often 1 1h BAN 1 1h")
	c.do("RL.FIXED often 1 1h BAN 1 1h")
	c.do("SCRIPT LOAD 'return 1'")
	subscribes := p.connect()
	subscriber := &client{t, subscribes, bufio.NewReader(subscribes)}
	id := subscriber.do("CLIENT ID")
	subscriber.do("SUBSCRIBE news")
	subscriber.do("SUBSCRIBE sports")
	c.do("CLIENT TRACKING on REDIRECT " + id + " BCAST PREFIX a:")
	info := c.infoFields()
	metrics := fetch(t, 200, "http://"+address+"/metrics")
	for metric, field := range map[string]string{
		"rlserver_connected_clients":                                             "connected_clients",
		"rlserver_connections_received_total":                                    "total_connections_received",
		"rlserver_expired_keys_total":                                            "expired_keys",
		`rlserver_memory_bytes{use="keys"}`:                                      "used_memory_dataset",
		`rlserver_decisions_total{command="rl.slide",outcome="denied"}`:          "=2",
		`rlserver_decisions_total{command="rl.token",outcome="denied"}`:          "=3",
		`rlserver_policy_decisions_total{outcome="admitted",policy="free"}`:      "=1",
		`rlserver_policy_decisions_total{outcome="shadow_denied",policy="free"}`: "=2",
		`rlserver_policy_shadow{policy="free"}`:                                  "=1",
		`rlserver_command_duration_seconds_count{command="rl.slide"}`:            "=5",
		`rlserver_command_errors_total{command="hget",stage="failed"}`:           "=1",
		`rlserver_keys{type="zset"}`:                                             "=2",
		`rlserver_keys{type="rl.token"}`:                                         "=1",
		`rlserver_keys{type="string"}`:                                           "=1",
		`rlserver_ready`:                                                         "=1",
		`rlserver_disk_state{state="ok"}`:                                        "=1",
		`rlserver_error_replies_total`:                                           "total_error_replies",
		`rlserver_database_keys{db="0"}`:                                         "=5",
		`rlserver_bans_total`:                                                    "=1",
		`rlserver_overrides`:                                                     "=1",
		`rlserver_overrides_bytes`:                                               "used_memory_overrides",
		`rlserver_overrides_max`:                                                 "max_overrides",
		`rlserver_scripts`:                                                       "=1",
		`rlserver_scripts_bytes`:                                                 "used_memory_scripts",
		`rlserver_scripts_evicted_total`:                                         "evicted_scripts",
		`rlserver_scripts_running_bytes`:                                         "used_memory_vm_eval",
		`rlserver_scripts_running_max_bytes`:                                     "lua_memory_total",
		`rlserver_scripts_ended_for_memory_total`:                                "scripts_ended_for_memory",
		`rlserver_pubsub_channels{kind="channel"}`:                               "=2",
		`rlserver_pubsub_channels{kind="pattern"}`:                               "pubsub_patterns",
		`rlserver_pubsub_channels{kind="shard"}`:                                 "pubsubshard_channels",
		`rlserver_pubsub_subscriptions`:                                          "=2",
		`rlserver_notifications_dropped_total`:                                   "notify_dropped",
		`rlserver_tracking_clients`:                                              "=1",
		`rlserver_tracking_keys`:                                                 "tracking_total_keys",
		`rlserver_tracking_items`:                                                "tracking_total_items",
		`rlserver_tracking_key_bytes`:                                            "tracking_total_key_bytes",
		`rlserver_tracking_prefixes`:                                             "=1",
		`rlserver_tracking_forgotten_keys_total`:                                 "tracking_forgotten_keys",
	} {
		want, literal := strings.CutPrefix(field, "=")
		if !literal {
			want = info[field]
			require.NotEmpty(t, want, field)
		}
		n, err := strconv.ParseFloat(want, 64)
		require.NoError(t, err)
		assert.Contains(t, metrics, "\n"+metric+" "+strconv.FormatFloat(n, 'g', -1, 64)+"\n")
	}
	assert.NotRegexp(t, `\bann\b`, metrics, "no label has keys")

	assert.Contains(t, fetch(t, 200, "http://"+address+"/api/limiter?db=0&key=bG9naW46YW5u"),
		`"rule":"SLIDE 3 1h","unusable":"","limit":3,"used":3,"remaining":0`)
	assert.Contains(t, fetch(t, 200, "http://"+address+"/api/limiter?db=0&key=ZnJlZTp7YW5ufQ"), `"rule":"SLIDE 1 1h",`)
	assert.Contains(t, fetch(t, 200, "http://"+address+"/api/limiter?db=99&key=YQ"), `"found":false`)
}

func TestHTTPRequiresThePassword(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600))
	p, address := startHTTP(t, "--requirepass", "sesame", "--http-token-file", token)
	conn := p.connectAfter("AUTH sesame\r\n")
	c := &client{t, conn, bufio.NewReader(conn)}
	fetch(t, 401, "http://"+address+"/metrics")
	fetch(t, 401, "http://default:wrong@"+address+"/")
	fetch(t, 200, "http://default:sesame@"+address+"/")
	fetch(t, 200, "http://"+address+"/metrics", "Authorization", "Bearer 0123456789abcdef")
	fetch(t, 200, "http://"+address+"/healthz")
	assert.Equal(t, "1", c.infoFields()["acl_access_denied_auth"])
	assert.Equal(t, "OK", c.do("CONFIG SET requirepass open"))
	fetch(t, 200, "http://default:open@"+address+"/")
}

// HTTP shows a user only what the user may read with commands.
func TestHTTPChecksUserPermissions(t *testing.T) {
	p, address := startHTTP(t)
	conn := p.connect()
	c := &client{t, conn, bufio.NewReader(conn)}
	for range 2 {
		c.do("RL.SLIDE login:ann 1 1h")
	}
	assert.Equal(t, "OK", c.do("ACL SETUSER scraper on >secret +info"))
	assert.Equal(t, "OK", c.do("ACL SETUSER support on >help +info +rl.top +pttl %R~login:*"))
	fetch(t, 200, "http://scraper:secret@"+address+"/metrics")
	fetch(t, 403, "http://scraper:secret@"+address+"/api/history")
	fetch(t, 401, "http://scraper:wrong@"+address+"/metrics")
	fetch(t, 200, "http://support:help@"+address+"/api/limiter?db=0&key=bG9naW46YW5u")
	fetch(t, 403, "http://support:help@"+address+"/api/limiter?db=0&key=c2VjcmV0")
	assert.Equal(t, "OK", c.do("ACL SETUSER scraper off"))
	fetch(t, 401, "http://scraper:secret@"+address+"/metrics")
	assert.Equal(t, "OK", c.do("ACL SETUSER default -rl.top"))
	fetch(t, 200, "http://"+address+"/metrics")
	fetch(t, 401, "http://"+address+"/")

	// users without a password prove nothing: they do not replace a login that is needed
	assert.Equal(t, "OK", c.do("ACL SETUSER guest on nopass +info"))
	fetch(t, 200, "http://guest:x@"+address+"/metrics")
	for _, user := range []string{"default", "guest"} {
		request, err := http.NewRequest(http.MethodGet, "http://"+address+"/metrics", nil)
		require.NoError(t, err)
		request.SetBasicAuth(user, "x")
		request.Host = "rebound.example"
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		response.Body.Close()
		assert.Equal(t, 403, response.StatusCode, user)
	}
	assert.Equal(t, "OK", c.do("ACL SETUSER default off"))
	for _, user := range []string{"", "default:x@", "guest:x@", ":@"} {
		fetch(t, 401, "http://"+user+address+"/metrics")
	}
	assert.Equal(t, "OK", c.do("ACL SETUSER scraper on"))
	fetch(t, 200, "http://scraper:secret@"+address+"/metrics")
}

// HTTP uses TLS with the certificate of the server, unless --http-tls is no.
func TestHTTPWithTLS(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run([]string{"gen-cert", dir}, io.Discard))
	file := func(name string) string { return filepath.Join(dir, name) }
	flags := []string{"--tls-cert-file", file("server.crt"), "--tls-key-file", file("server.key"),
		"--tls-ca-cert-file", file("ca.crt")}
	_, address := startHTTP(t, flags...)
	pair, err := tls.LoadX509KeyPair(file("client.crt"), file("client.key"))
	require.NoError(t, err)
	ca, err := os.ReadFile(file("ca.crt"))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(ca))
	get := func(path string, certificates ...tls.Certificate) int {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates}}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Get("https://" + address + path)
		require.NoError(t, err)
		response.Body.Close()
		return response.StatusCode
	}
	assert.Equal(t, 200, get("/metrics", pair))
	assert.Equal(t, 401, get("/metrics"), "without a certificate clients must log in")
	address = "default:x@" + address
	assert.Equal(t, 401, get("/metrics"), "the default user has no password")
	address = strings.TrimPrefix(address, "default:x@")
	assert.Equal(t, 200, get("/healthz"), "health checks need neither")
	assert.Contains(t, fetch(t, 400, "http://"+address+"/"), "HTTPS server")

	_, port, _ := net.SplitHostPort(address)
	check := exec.Command(program, "healthcheck")
	check.Env = []string{"RLSERVER_HTTP_PORT=" + port, "RLSERVER_TLS_CERT_FILE=" + file("server.crt")}
	out, err := check.CombinedOutput()
	assert.NoError(t, err, string(out))

	_, plain := startHTTP(t, append(flags, "--http-tls", "no")...)
	fetch(t, 200, "http://"+plain+"/metrics")
}

func TestHealthcheck(t *testing.T) {
	p, address := startHTTP(t)
	p.connect()
	check := func(environment string, arguments ...string) (string, error) {
		cmd := exec.Command(program, append([]string{"healthcheck"}, arguments...)...)
		cmd.Env = []string{"RLSERVER_HTTP_PORT=" + environment}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	_, port, _ := net.SplitHostPort(address)
	for _, arguments := range [][]string{{}, {"http://" + address}, {"http://" + address + "/readyz"}} {
		out, err := check(port, arguments...)
		assert.NoError(t, err, out)
		assert.Equal(t, "ok\n", out)
	}
	out, err := check(port, "--wait", "1m", "http://"+address+"/readyz/traffic")
	require.NoError(t, err, out)
	for want, arguments := range map[string][]string{
		"--wait takes a duration":   {"--wait", "x", "http://" + address},
		"404 Not Found":             {"http://" + address + "/nowhere"},
		"connection refused":        {"http://127.0.0.1:1/healthz"},
		"is not an address such as": {address},
		"healthcheck takes one":     {"a", "b"},
	} {
		out, err := check(port, arguments...)
		assert.Error(t, err)
		assert.Contains(t, out, want)
	}
	out, err = check("")
	assert.Error(t, err)
	assert.Contains(t, out, "name the address, as RLSERVER_HTTP_PORT is not set")
}

func TestInvalidHTTPSettingsAreRejected(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	dir := t.TempDir()
	short := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(short, []byte("short\n"), 0o600))
	for flags, want := range map[string]string{
		"--http-port " + port:          "cannot listen on 127.0.0.1:" + port + ": address already in use",
		"--http-port 6379 --port 6379": "--http-port 6379 is a port of the Redis protocol: HTTP needs one of its own",
		"--http-port 1 --http-bind ,":  "--http-bind is empty: it needs an address",
		"--http-port 1 --http-token-file " + short: "--http-token-file " + short +
			": its first line must have at least 16 characters",
		"--http-port 1 --http-token-file " + dir: "--http-token-file cannot be read: " + dir +
			" must be a regular file, but is a directory",
		"--debug-http yes": "--http-token-file and --debug-http need --http-port",
		"--http-port 1 --http-max-clients 10 --http-max-streams 10": "--http-max-streams 10 must be below " +
			"--http-max-clients, which is 10",
	} {
		flags = "--unixsocket " + filepath.Join(t.TempDir(), "s") + " --port 0 " + flags
		cmd := exec.Command(program, strings.Fields(flags)...)
		var stderr bytes.Buffer
		cmd.Stderr, cmd.Dir = &stderr, t.TempDir()
		require.Error(t, cmd.Run(), flags)
		assert.Equal(t, "rlserver: "+want+"\n", stderr.String(), flags)
	}
}

// A scrape reads counters and no keys. It takes no lock of the keys, so it is answered while a call
// holds all of them.
func TestScrapeTakesNoKeyLock(t *testing.T) {
	c, _, err := parse([]string{"--port", "0", "--unixsocket", t.TempDir() + "/s", "--dir", t.TempDir()}, io.Discard)
	require.NoError(t, err)
	p, err := open(c, clock.System())
	require.NoError(t, err)
	defer p.data.Close()
	defer listen.CloseAll(p.listeners)
	tx := p.engine.NewTx()
	tx.BeginAll(p.clock.Now(), 0, false)
	defer tx.End()
	done := make(chan struct{})
	go func() {
		assert.NotNil(t, webSource{p}.State())
		assert.ErrorContains(t, webSource{p}.Ready(), "being loaded")
		close(done)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
		assert.Fail(t, "the state waits for a lock of the keys")
	}
}

// A key that a script holds for too long is refused: requests that wait would take all connections.
func TestAKeyOfABusyScriptIsRefused(t *testing.T) {
	p, address := startHTTP(t, "--lua-time-limit", "20")
	busy, other := p.connect(), p.connect()
	c := &client{t, other, bufio.NewReader(other)}
	fmt.Fprint(busy, "EVAL \"while true do end\" 1 held\r\n")
	refused := func() bool { return strings.HasPrefix(c.do("EXISTS held"), "BUSY ") }
	require.Eventually(t, refused, patience, time.Millisecond)

	impatient := http.Client{Timeout: patience}
	response, err := impatient.Get("http://" + address + "/api/limiter?db=0&key=" +
		base64.RawURLEncoding.EncodeToString([]byte("held")))
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	assert.Contains(t, string(text), "BUSY ")
	assert.Equal(t, "OK", c.do("SCRIPT KILL"))
}
