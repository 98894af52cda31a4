package resp

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/internal/certs"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
)

// tlsServer is a testServer that also listens with TLS.
type tlsServer struct {
	*testServer
	dir    string // holds the certificates
	secure string // address of the listener with TLS
}

// startTLS starts a server with a listener without TLS and one with it.
func startTLS(t *testing.T, auth certs.ClientAuth, d config.Defaults, with ...func(*Options)) *tlsServer {
	t.Helper()
	s := &tlsServer{dir: t.TempDir()}
	require.NoError(t, certs.Generate(s.dir, nil, time.Now()))
	files := config.Defaults{
		"tls-port":      "1", // only shown: the test listens on a free port
		"tls-cert-file": s.dir + "/server.crt", "tls-key-file": s.dir + "/server.key",
		"tls-ca-cert-file": s.dir + "/ca.crt", "tls-auth-clients": string(auth),
	}
	maps.Copy(files, d)
	d = files
	store := certs.New(time.Now, slog.New(slog.DiscardHandler))
	require.NoError(t, store.Use(config.NewSettings(d).TLS().Files()))
	s.testServer = startServer(t, d, append(with, func(o *Options) { o.Certificates = store })...)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.secure = ln.Addr().String()
	go s.ServeTLS(ln, store.Config())
	return s
}

// client returns a TLS configuration that trusts the server and has the client's certificate.
func (s *tlsServer) client() *tls.Config {
	text, err := os.ReadFile(filepath.Join(s.dir, "ca.crt"))
	require.NoError(s.t, err)
	pool := x509.NewCertPool()
	require.True(s.t, pool.AppendCertsFromPEM(text))
	pair, err := tls.LoadX509KeyPair(s.dir+"/client.crt", s.dir+"/client.key")
	require.NoError(s.t, err)
	return &tls.Config{RootCAs: pool, ServerName: "localhost", Certificates: []tls.Certificate{pair}}
}

// raw connects to the TLS listener without speaking TLS.
func (s *tlsServer) raw() *testClient {
	conn, err := net.Dial("tcp", s.secure)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { conn.Close() })
	return s.over(conn)
}

// dialTLS connects with TLS.
func (s *tlsServer) dialTLS(change ...func(*tls.Config)) *testClient {
	c := s.client()
	for _, f := range change {
		f(c)
	}
	return s.over(tls.Client(s.raw().Conn, c))
}

func version(v uint16) func(*tls.Config) {
	return func(c *tls.Config) { c.MinVersion, c.MaxVersion = v, v }
}

func withoutCertificate(c *tls.Config) { c.Certificates = nil }

func TestTLSVersions(t *testing.T) {
	s := startTLS(t, certs.Required, config.Defaults{})
	for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		c := s.dialTLS(version(v))
		require.Equal(t, "+OK", c.send("SET", "k", strings.Repeat("v", 100_000)))
		require.Len(t, c.do("GET k"), len("$100000 ")+100_000)
		require.Contains(t, c.do("CLIENT LIST"), " laddr="+s.secure+" ")
		require.Contains(t, c.do("INFO server"), "\r\ntls_port:1\r\n")
		require.Equal(t, "+OK", c.do("QUIT"))
		_, err := c.r.ReadByte()
		require.Equal(t, io.EOF, err, "the client gets the end of the stream")
	}
	_, err := s.dialTLS(version(tls.VersionTLS11)).Write([]byte("PING\r\n"))
	require.Error(t, err)
}

// A call that waits is woken over TLS, and the connection works afterwards.
func TestTLSWaitingCall(t *testing.T) {
	s := startTLS(t, certs.None, config.Defaults{})
	c, other := s.dialTLS(), s.dialTLS()
	for range 3 {
		_, err := c.Write([]byte("BZPOPMIN z 0\r\nPI"))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return s.queues.Waiting.Load() == 1 }, time.Minute, time.Millisecond)
		require.Equal(t, ":1", other.do("ZADD z 1 m"))
		require.Equal(t, "*3 $1 z $1 m $1 1", strings.TrimSpace(c.read()))
		_, err = c.Write([]byte("NG\r\n"))
		require.NoError(t, err)
		require.Equal(t, "+PONG", strings.TrimSpace(c.read()))
	}
}

func TestTLSClientCertificates(t *testing.T) {
	for auth, accepted := range map[certs.ClientAuth]bool{
		certs.Required: false, certs.Optional: true, certs.None: true,
	} {
		log := new(commandtest.LogBuffer)
		s := startTLS(t, auth, config.Defaults{}, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) })
		require.Equal(t, "+PONG", s.dialTLS().do("PING"))
		c := s.dialTLS(withoutCertificate)
		if accepted {
			require.Equal(t, "+PONG", c.do("PING"))
			continue
		}
		c.Write([]byte("PING\r\n"))
		_, err := c.r.ReadByte()
		require.ErrorContains(t, err, "certificate required")
		require.Eventually(t, func() bool {
			return strings.Contains(log.String(), "client didn't provide a certificate")
		}, time.Minute, time.Millisecond)
		require.Equal(t, 1, s.dial().number("tls_handshake_failures"))
	}
}

// A pipeline may be sent completely before the first reply is read, and all its replies arrive.
func TestTLSPipelineIsReadWhileRepliesAreUnread(t *testing.T) {
	for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		s := startTLS(t, certs.None, config.Defaults{})
		c := s.dialTLS(version(v))
		value := strings.Repeat("v", 4000)
		require.Equal(t, "+OK", c.send("SET", "k", value))
		// 12 MB of replies: more than a socket holds, less than the client may leave unread
		const calls = 3000
		_, err := c.Write(bytes.Repeat([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), calls))
		require.NoError(t, err)
		_, err = c.Write([]byte("QUIT\r\n"))
		require.NoError(t, err)
		require.Eventually(
			t,
			func() bool { return s.memory.Normal.Bytes.Load() > 1<<20 },
			time.Minute,
			time.Millisecond,
		)
		all, err := io.ReadAll(c.r)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("$4000\r\n"+value+"\r\n", calls)+"+OK\r\n", string(all))
	}
}

// A client that sends and never reads is closed at its limit, and delays no other client.
func TestTLSClientThatDoesNotRead(t *testing.T) {
	s := startTLS(t, certs.None, config.Defaults{"client-output-buffer-limit": "normal 2mb 1mb 1"})
	c, other := s.dialTLS(), s.dialTLS()
	require.Equal(t, "+OK", c.send("SET", "k", strings.Repeat("v", 1<<20)))
	closed := make(chan bool)
	go func() {
		defer close(closed)
		for {
			if _, err := c.Write(bytes.Repeat([]byte("GET k\r\n"), 100)); err != nil {
				return
			}
		}
	}()
	for closing := true; closing; {
		require.Equal(t, "+PONG", other.do("PING"))
		select {
		case <-closed:
			closing = false
		default:
		}
	}
	require.Eventually(t, func() bool { return s.clients() == 1 }, time.Minute, time.Millisecond)
	require.Zero(t, s.memory.Bytes.Load())
	require.NotZero(t, s.memory.Unread.Load())
}

// Stalled handshakes delay no other client. They count as clients that have not logged in, and
// shutdown does not wait for them.
func TestTLSStalledHandshakes(t *testing.T) {
	s := startTLS(t, certs.Required, config.Defaults{"maxclients": "20"})
	var stalled []*testClient
	for i := range 9 {
		c := s.raw()
		if i > 0 { // the first sends nothing
			hello := append([]byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc}, make([]byte, 40*i)...)
			_, err := c.Write(hello)
			require.NoError(t, err)
		}
		stalled = append(stalled, c)
	}
	require.Eventually(t, func() bool { return s.clients() == len(stalled) }, time.Minute, time.Millisecond)
	c := s.dialTLS()
	require.Equal(t, "+PONG", c.do("PING"))
	require.Contains(t, c.do("INFO clients"), "connected_clients:10")
	for range 10 + len(stalled) { // they take the places of those that are stalled
		require.Equal(t, "+PONG", s.dial().do("PING"))
	}
	for _, c := range stalled {
		c.requireClosed()
	}
	require.Contains(t, s.dial().read(), "-ERR max number of clients reached")
	_, err := s.raw().r.ReadByte()
	require.Equal(t, io.EOF, err, "refused without a handshake")
	require.Equal(t, "+PONG", c.do("PING"))
	c.Close()
	require.Eventually(t, func() bool { return s.clients() == 19 }, time.Minute, time.Millisecond)
	last := s.raw()
	require.Eventually(t, func() bool { return s.clients() == 20 }, time.Minute, time.Millisecond)
	require.Zero(t, s.Shutdown(t.Context()))
	last.requireClosed()
}

// The memory of a handshake counts towards preauth-memory.
func TestTLSHandshakeMemory(t *testing.T) {
	s := startTLS(t, certs.None, config.Defaults{"preauth-memory": "262144"})
	c := s.dialTLS()
	require.Equal(t, "+PONG", c.do("PING"))
	require.Zero(t, s.memory.Bytes.Load(), "a normal handshake holds no memory that is counted")
	record := append([]byte{0x16, 0x03, 0x01, 0x40, 0x00}, make([]byte, 1<<14)...)
	// 16 KB of a ClientHello of 64 KB arrive
	copy(record[5:], []byte{0x01, 0x00, 0xff, 0x00})
	for i := 0; s.memory.Evicted.Load() == 0; i++ {
		require.Less(t, i, 100)
		before := s.memory.Unauthenticated.Bytes.Load()
		_, err := s.raw().Write(record)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			return s.memory.Unauthenticated.Bytes.Load() >= before+(3<<14) || s.memory.Evicted.Load() > 0
		}, time.Minute, time.Millisecond)
	}
	require.Equal(t, "+PONG", c.do("PING"))
}

// Shutdown replies to the commands that have arrived in full, and then sends the end of the stream.
func TestTLSShutdownRepliesToReceivedCalls(t *testing.T) {
	for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		s := startTLS(t, certs.None, config.Defaults{})
		c, idle := s.dialTLS(version(v)), s.dialTLS(version(v))
		require.Equal(t, "+PONG", idle.do("PING"))
		value := strings.Repeat("v", 1000)
		require.Equal(t, "+OK", c.send("SET", "k", value))
		const calls = 10_000 // more than the socket takes
		_, err := c.Write([]byte(strings.Repeat("GET k\r\n", calls) + "INCR done\r\nINC"))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return idle.do("GET done") == "$1 1" }, time.Minute, time.Millisecond)
		left := make(chan int)
		go func() { left <- s.Shutdown(t.Context()) }()
		all, err := io.ReadAll(c.r)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("$1000\r\n"+value+"\r\n", calls)+":1\r\n", string(all))
		_, err = idle.r.ReadByte()
		require.Equal(t, io.EOF, err)
		require.Zero(t, <-left)
	}
}

// CONFIG SET applies new certificates to new connections, and closes none.
func TestTLSConfigSet(t *testing.T) {
	s := startTLS(t, certs.Required, config.Defaults{})
	c := s.dialTLS()
	require.Equal(t, "+PONG", c.do("PING"))
	other := t.TempDir()
	require.NoError(t, certs.Generate(other, nil, time.Now()))
	require.Equal(t, "+OK", c.do(fmt.Sprintf("CONFIG SET tls-cert-file %[1]s/server.crt tls-key-file %[1]s/server.key "+
		"tls-ca-cert-file %[1]s/ca.crt", other)))
	require.Equal(t, "+PONG", c.do("PING"), "the connection stays open")
	_, err := s.dialTLS().Write([]byte("PING\r\n"))
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	s.dir = other
	require.Equal(t, "+PONG", s.dialTLS().do("PING"))

	require.Equal(t, "+OK", c.do("CONFIG SET tls-auth-clients NO tls-protocols TLSv1.2"))
	c.check([]answer{
		{"CONFIG GET tls-auth-clients", "*2 $16 tls-auth-clients $2 no"},
		{"CONFIG GET tls-cert-file", fmt.Sprintf("*2 $13 tls-cert-file $%d %s", len(other+"/server.crt"),
			other+"/server.crt")},
	})
	require.Equal(t, "+PONG", s.dialTLS(withoutCertificate).do("PING"))
	_, err = s.dialTLS(version(tls.VersionTLS13)).Write([]byte("PING\r\n"))
	require.Error(t, err)
}

// A new certificate that is not valid is refused with the name of its parameter, together with all
// other changes of the call.
func TestTLSConfigSetRefusals(t *testing.T) {
	s := startTLS(t, certs.Required, config.Defaults{})
	c := s.dialTLS()
	other := t.TempDir()
	require.NoError(t, certs.Generate(other, nil, time.Now().AddDate(-2, 0, 0)))
	before := c.do("CONFIG GET *")
	for call, want := range map[string]string{
		"timeout 77 tls-cert-file /missing": "tls-cert-file') - Unable to update TLS configuration: open " +
			"/missing: no",
		"tls-key-file " + s.dir + "/ca.crt":     "tls-key-file') - Unable to update TLS configuration: " + s.dir,
		"tls-auth-clients maybe":                "argument(s) must be one of the following: no, yes, optional",
		"tls-protocols TLSv1.1":                 "argument must be TLSv1.2, TLSv1.3 or both",
		"tls-ca-cert-file " + s.dir:             s.dir + " must be a regular file, but is a directory",
		"tls-ca-cert-file " + s.dir + "/no.crt": "no such file",
		fmt.Sprintf("tls-cert-file %[1]s/server.crt tls-key-file %[1]s/server.key", other): "expired on",
	} {
		got := c.do("CONFIG SET " + call)
		require.Contains(t, got, "-ERR CONFIG SET failed (possibly related to argument 'tls-", call)
		require.Contains(t, got, want, call)
	}
	require.Contains(t, c.send("CONFIG", "SET", "tls-ca-cert-file", ""), "set tls-ca-cert-file")
	require.Equal(t, before, c.do("CONFIG GET *"))
	require.Equal(t, "+PONG", s.dialTLS().do("PING"))
}

// Each port returns an error that says what is wrong to a client that speaks the other protocol.
func TestTLSOnTheWrongPort(t *testing.T) {
	s := startTLS(t, certs.None, config.Defaults{})
	for _, command := range []string{"PING\r\n", "*1\r\n$4\r\nPING\r\n", "HELLO 3\r\n"} {
		c := s.raw()
		_, err := c.Write([]byte(command))
		require.NoError(t, err)
		require.Contains(t, c.read(), "-ERR this port expects TLS", "%q", command)
		c.requireClosed()
	}
	for _, request := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 0\r\n" +
		"\r\n"} {
		c := s.raw()
		_, err := c.Write([]byte(request))
		require.NoError(t, err)
		line, err := c.r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "HTTP/1.0 400 Bad Request\r\n", line)
	}
	s.raw().Close() // a connection that only checks the port is not a failure
	require.Eventually(t, func() bool { return s.handshakeFailures.Load() == 5 }, time.Minute, time.Millisecond)

	plain := s.dial()
	conn := tls.Client(plain.Conn, s.client())
	require.ErrorContains(t, conn.Handshake(), "first record does not look like a TLS handshake")
	hello := s.dial()
	_, err := hello.Write([]byte{0x16, 0x03, 0x01, 0x02, 0x00})
	require.NoError(t, err)
	require.Contains(t, hello.read(), "-ERR Protocol error: TLS on a port without it")
	hello.requireClosed()
}

func TestTLSProtectedMode(t *testing.T) {
	s := startTLS(t, certs.None, config.Defaults{"protected-mode": "yes"})
	require.Equal(t, "+PONG", s.dialTLS().do("PING"))
	remote := startTLS(t, certs.None, config.Defaults{"protected-mode": "yes"})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go remote.ServeTLS(remoteTCPListener{ln}, remote.certificates.Config())
	remote.secure = ln.Addr().String()
	c := remote.dialTLS()
	require.NoError(t, c.Conn.(*tls.Conn).Handshake())
	require.Contains(t, c.read(), "-DENIED Redis is running in protected mode because")
	_, err = c.r.ReadByte()
	require.Equal(t, io.EOF, err)
	require.Contains(t, remote.dial().do("INFO stats"), "rejected_connections:1")

	// A client with a certificate that the server checks has proven who it is, as for HTTP.
	require.Equal(t, "+OK", remote.dial().do("CONFIG SET tls-auth-clients optional"))
	require.Equal(t, "+PONG", remote.dialTLS().do("PING"))
	require.Contains(t, remote.dialTLS(withoutCertificate).read(), "-DENIED Redis is running in protected mode because")
}

// remoteTCPListener is a listener whose clients seem to come from another machine.
type remoteTCPListener struct{ net.Listener }

func (l remoteTCPListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return remoteTCPConn{conn.(*net.TCPConn)}, nil
}

type remoteTCPConn struct{ *net.TCPConn }

func (remoteTCPConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// A password is required after the handshake, and the limits before login apply with TLS as well.
func TestTLSPassword(t *testing.T) {
	s := startTLS(t, certs.None, config.Defaults{"requirepass": "sesame"})
	c := s.dialTLS()
	c.check([]answer{
		{"PING", "-NOAUTH Authentication required."}, {"AUTH sesame", "+OK"}, {"PING", "+PONG"},
	})
	open := s.dialTLS()
	_, err := open.Write([]byte("*100\r\n"))
	require.NoError(t, err)
	require.Contains(t, open.read(), "unauthenticated multibulk length")
}

// Lines pushed to a client are encrypted too, in the order of its replies.
func TestTLSMonitor(t *testing.T) {
	s := startTLS(t, certs.None, config.Defaults{"client-output-buffer-limit": "normal 1mb 0 0"})
	m, c := s.dialTLS(), s.dialTLS()
	require.Equal(t, "+OK", m.do("MONITOR"))
	var pushing sync.WaitGroup
	for range 4 {
		pushing.Go(func() {
			other := s.dialTLS()
			for range 50 {
				other.do("SET a b")
			}
		})
	}
	pushing.Wait()
	for _, line := range m.monitored(200) {
		require.Equal(t, `"SET" "a" "b"`, line)
	}
	// now the monitor does not read: it is closed, and delays no other client
	value := strings.Repeat("v", 50_000)
	for s.executor.Monitors() > 0 {
		require.Equal(t, "+OK", c.send("SET", "k", value))
	}
	require.Equal(t, "+PONG", c.do("PING"))
}

// CLIENT KILL ends a TLS connection.
func TestTLSClientKill(t *testing.T) {
	s := startTLS(t, certs.None, config.Defaults{})
	c, other := s.dialTLS(), s.dialTLS()
	require.Equal(t, ":1", c.do("CLIENT ID"))
	require.Equal(t, ":1", other.do("CLIENT KILL ID 1"))
	_, err := c.r.ReadByte()
	require.Error(t, err)
	require.Equal(t, "+PONG", other.do("PING"))
}
