package resp

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/certs"
	"rlserver/resp/config"
)

// freePort returns a port of 127.0.0.1 that is free.
func freePort(t *testing.T) int {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// at returns a client that connects to a port.
func (ts *testServer) at(port int) *testClient {
	ts.addr = fmt.Sprintf("127.0.0.1:%d", port)
	return ts.dial()
}

// Clients that are connected stay connected when the port changes, and nothing listens on the old
// one. However often it changes, no goroutine is left behind.
func TestPortChanges(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	require.Equal(t, "+OK", c.do("CONFIG SET bind 127.0.0.1"))
	before := runtime.NumGoroutine()
	var last *testClient
	for range 50 {
		port := freePort(t)
		require.Equal(t, "+OK", c.do(fmt.Sprintf("CONFIG SET port %d", port)))
		if last != nil {
			require.Equal(t, "+PONG", last.do("PING"))
			_, err := net.Dial("tcp", ts.addr)
			require.Error(t, err)
			last.Close()
		}
		last = ts.at(port)
		require.Equal(t, "+PONG", last.do("PING"))
		require.Contains(t, last.do("INFO server"), fmt.Sprintf("tcp_port:%d\r\n", port))
	}
	assert.Equal(t, 2, ts.ports.Listeners(), "that of the test and that of the port")
	assert.Less(t, runtime.NumGoroutine(), before+20)
	require.Equal(t, "+OK", c.do("CONFIG SET port 0"))
	_, err := net.Dial("tcp", ts.addr)
	require.Error(t, err)
	require.Equal(t, "+PONG", last.do("PING"))
}

// A port that is taken changes nothing, also not the other settings of the call.
func TestTakenPort(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	c := ts.dial()
	port := freePort(t)
	require.Equal(t, "+OK", c.do(fmt.Sprintf("CONFIG SET bind 127.0.0.1 port %d", port)))
	const refusal = "-ERR CONFIG SET failed (possibly related to argument 'port') - " +
		"Unable to listen on this port. Check server logs."
	other := taken.Addr().(*net.TCPAddr).Port
	require.Equal(t, refusal, c.do(fmt.Sprintf("CONFIG SET port %d maxmemory 100mb", other)))
	require.Equal(t, refusal, c.do(fmt.Sprintf("CONFIG SET maxmemory 100mb port %d", other)))
	require.Equal(t, fmt.Sprintf("*4 $4 port $%d %[2]d $9 maxmemory $1 0", len(fmt.Sprint(port)), port),
		c.do("CONFIG GET port maxmemory"))
	require.Equal(t, "+PONG", ts.at(port).do("PING"))
}

// Changes of the port at once, and at the end of the server, leave no socket open.
func TestPortChangesMeetShutdown(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	require.Equal(t, "+OK", ts.dial().do("CONFIG SET bind 127.0.0.1"))
	ports := []int{freePort(t), freePort(t)}
	var changing sync.WaitGroup
	var changed atomic.Int64
	for i := range 8 {
		c := ts.dial()
		changing.Go(func() {
			for n := i; ; n++ {
				// a reply is not certain any more
				if _, err := fmt.Fprintf(c, "CONFIG SET port %d\r\n", ports[n%2]); err != nil {
					return
				}
				if line, err := c.r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "+OK") {
					return
				}
				changed.Add(1)
			}
		})
	}
	require.Eventually(t, func() bool { return changed.Load() > 200 }, time.Minute, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ts.Shutdown(ctx)
	changing.Wait()
	for _, port := range ports {
		_, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		assert.Error(t, err)
	}
}

// tls-port needs a certificate, which may come with it. Files of TLS are read as at the start, so
// that CONFIG REWRITE writes nothing that the next start refuses.
func TestTLSPortChanges(t *testing.T) {
	ts, dir, port := startServer(t, config.Defaults{}), t.TempDir(), freePort(t)
	require.NoError(t, certs.Generate(dir, nil, time.Now()))
	c := ts.dial()
	require.Equal(t, "+OK", c.do("CONFIG SET bind 127.0.0.1"))
	failed := func(name string) string {
		return "-ERR CONFIG SET failed (possibly related to argument '" + name + "') - " +
			"Unable to update TLS configuration: "
	}
	require.Contains(t, c.do(fmt.Sprintf("CONFIG SET tls-port %d", port)), failed("tls-port"))
	_, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.Error(t, err)
	require.Contains(t, c.do("CONFIG SET tls-cert-file /none"), failed("tls-cert-file"))
	require.Equal(t, "*2 $13 tls-cert-file $0 ", c.do("CONFIG GET tls-cert-file"))
	require.Equal(t, "+OK", c.do("CONFIG SET tls-key-file "+filepath.Join(dir, "server.key")), "nothing reads it yet")
	call := fmt.Sprintf("CONFIG SET tls-cert-file %s/server.crt tls-ca-cert-file %[1]s/ca.crt tls-auth-clients no", dir)
	require.Equal(t, "+OK", c.do(fmt.Sprintf("%s tls-port %d", call, port)))
	with := (&tlsServer{testServer: ts, dir: dir}).client()
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), with)
	require.NoError(t, err)
	defer conn.Close()
	require.Equal(t, "+PONG", ts.over(conn).do("PING"))
	require.Contains(t, c.do("INFO server"), fmt.Sprintf("tls_port:%d\r\n", port))
	require.Equal(t, "+OK", c.do("CONFIG SET tls-port 0"))
	require.Equal(t, "+PONG", ts.over(conn).do("PING"))
	_, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.Error(t, err)
}
