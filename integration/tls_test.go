package integration

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// startTLSServer starts a server that listens with TLS only, and returns the directory of the
// certificates as well.
func startTLSServer(t *testing.T, flags ...string) (s *server, dir string) {
	t.Helper()
	dir = generateCertificates(t)
	return startOnFreePort(t, func(port string) *exec.Cmd {
		return rlserver(t, append([]string{
			"--bind", "127.0.0.1", "--port", "0", "--tls-port", port, "--tls-cert-file", dir + "/server.crt",
			"--tls-key-file", dir + "/server.key", "--tls-ca-cert-file", dir + "/ca.crt",
		}, flags...)...)
	}), dir
}

func generateCertificates(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	out, err := rlserver(t, "gen-cert", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

// tlsClient returns a configuration with the CA and the client's certificate in dir.
func tlsClient(t *testing.T, dir string) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(dir + "/ca.crt")
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	pair, err := tls.LoadX509KeyPair(dir+"/client.crt", dir+"/client.key")
	require.NoError(t, err)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
}

func TestTLSGoRedis(t *testing.T) {
	t.Parallel()
	s, dir := startTLSServer(t)
	for _, protocol := range []int{2, 3} {
		rdb := s.connect(t, func(o *redis.Options) { o.Protocol, o.TLSConfig = protocol, tlsClient(t, dir) })
		pipe := rdb.Pipeline()
		for i := range 10_000 {
			pipe.Set(t.Context(), fmt.Sprint("k", i), strings.Repeat("v", i%100), 0)
		}
		_, err := pipe.Exec(t.Context())
		require.NoError(t, err)
		size, err := rdb.DBSize(t.Context()).Result()
		require.NoError(t, err)
		assert.EqualValues(t, 10_000, size)
		popped, err := rdb.BZPopMin(t.Context(), 10*time.Millisecond, "none").Result()
		assert.Equal(t, redis.Nil, err, "%v", popped)
	}
	anonymous := s.connect(t, func(o *redis.Options) {
		o.TLSConfig = tlsClient(t, dir)
		o.TLSConfig.Certificates = nil
	})
	assert.ErrorContains(t, anonymous.Ping(t.Context()).Err(), "certificate required")
}

// needsProgram skips the test if a command fails, which means that a program is missing. With
// CLIENTS_LIVE=1 the test fails instead.
func needsProgram(t *testing.T, command ...string) {
	t.Helper()
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		require.Empty(t, os.Getenv("CLIENTS_LIVE"), "%v: %v %s", command, err, out)
		t.Skipf("%v: %v", command, err)
	}
}

func TestTLSRedisCLI(t *testing.T) {
	t.Parallel()
	needsProgram(t, "redis-cli", "--tls", "--version")
	s, dir := startTLSServer(t)
	_, port, _ := strings.Cut(s.addr, ":")
	cli := func(args ...string) string {
		args = append([]string{"-h", "localhost", "-p", port, "--tls", "--cacert", dir + "/ca.crt"}, args...)
		out, _ := exec.Command("redis-cli", args...).CombinedOutput()
		return strings.TrimSpace(string(out))
	}
	identity := []string{"--cert", dir + "/client.crt", "--key", dir + "/client.key"}
	assert.Equal(t, "PONG", cli(append(identity, "PING")...))
	assert.Equal(
		t,
		"1\n10\n9\n0",
		strings.Join(strings.Fields(cli(append(identity, "RL.SLIDE", "k", "10", "1h")...))[:4], "\n"),
	)
	assert.Contains(t, cli(append(identity, "CLIENT", "LIST")...), " laddr="+s.addr+" ")
	assert.Contains(t, cli("PING"), "Server closed the connection")
}

const pythonClient = `
import sys, redis
port, certs = int(sys.argv[1]), sys.argv[2]
def client(**more):
    return redis.Redis(host="localhost", port=port, ssl=True, ssl_ca_certs=certs + "/ca.crt", **more)
r = client(ssl_certfile=certs + "/client.crt", ssl_keyfile=certs + "/client.key")
assert r.ping()
assert r.execute_command("RL.SLIDE", "k", 10, "1h")[:4] == [1, 10, 9, 0]
pipe = r.pipeline(transaction=False)
for i in range(10000):
    pipe.set("key:%d" % i, "v" * (i % 100))
assert all(pipe.execute())
assert r.get("key:99") == b"v" * 99
assert r.bzpopmin("none", timeout=1) is None
try:
    client().ping()
    raise SystemExit("a client without a certificate was admitted")
except redis.exceptions.ConnectionError:
    pass
print("ok")
`

func TestTLSRedisPy(t *testing.T) {
	t.Parallel()
	// the system's Python, which has the distribution's packages
	python := "/usr/bin/python3"
	needsProgram(t, python, "-c", "import redis")
	s, dir := startTLSServer(t)
	_, port, _ := strings.Cut(s.addr, ":")
	out, err := exec.Command(python, "-c", pythonClient, port, dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "ok\n", string(out))
}

// Certificates are reloaded when their files change: new connections get the new one, and open ones
// stay. Invalid files are refused.
func TestTLSFilesAreReloaded(t *testing.T) {
	t.Parallel()
	s, dir := startTLSServer(t, "--tls-auth-clients", "optional")
	open, before := s.dialTLS(t, tlsClient(t, dir))
	ping := func() {
		_, err := open.Write([]byte("PING\r\n"))
		require.NoError(t, err)
		answer := make([]byte, len("+PONG\r\n"))
		_, err = open.Read(answer)
		require.NoError(t, err)
		require.Equal(t, "+PONG\r\n", string(answer))
	}
	ping()

	next := generateCertificates(t)
	for _, name := range []string{"server.crt", "server.key", "ca.crt", "client.crt", "client.key"} {
		require.NoError(t, os.Rename(filepath.Join(next, name), filepath.Join(dir, name)))
	}
	require.Eventually(t, func() bool { return strings.Contains(s.output(), "was read again") }, patience,
		10*time.Millisecond)
	ping()
	_, after := s.dialTLS(t, tlsClient(t, dir))
	require.NotEqual(t, before, after)

	require.NoError(t, os.WriteFile(dir+"/server.crt", []byte("nothing"), 0o644))
	require.Eventually(t, func() bool { return strings.Contains(s.output(), "the old one stays in use") }, patience,
		10*time.Millisecond)
	_, still := s.dialTLS(t, tlsClient(t, dir))
	require.Equal(t, after, still)
	ping()
}

// dialTLS connects, and returns the serial number of the server's certificate.
func (s *server) dialTLS(t *testing.T, with *tls.Config) (conn *tls.Conn, serial *big.Int) {
	t.Helper()
	conn, err := tls.Dial("tcp", s.addr, with)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn, conn.ConnectionState().PeerCertificates[0].SerialNumber
}
