package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// startWithHTTP starts a server with an HTTP port, and returns that port's address.
func startWithHTTP(t *testing.T, flags ...string) (s *server, address string) {
	t.Helper()
	port := ""
	s = startOnFreePort(t, func(free string) *exec.Cmd {
		port = freePort(t)
		return rlserver(t, append([]string{
			"--bind", "127.0.0.1", "--port", free, "--http-port", port, "--http-bind", "127.0.0.1",
		}, flags...)...)
	})
	return s, net.JoinHostPort("127.0.0.1", port)
}

// exchangeHTTP sends bytes and returns all that the server sends until it closes the connection.
func exchangeHTTP(t *testing.T, address, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, text) // the server may have closed it already
	reply, _ := io.ReadAll(conn)
	return string(reply)
}

// A client on the wrong port gets an error or is disconnected, and others are served.
func TestWrongPortIsRefused(t *testing.T) {
	t.Parallel()
	s, address := startWithHTTP(t)
	_, port, _ := net.SplitHostPort(s.addr)
	want := "-ERR this port speaks HTTP, not the Redis protocol: use port " + port + "\r\n"
	assert.Equal(t, want, exchangeHTTP(t, address, "*1\r\n$4\r\nPING\r\n"))
	assert.Equal(t, want, exchangeHTTP(t, address, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"))
	for _, request := range []string{"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\n\r\n"} {
		// returns only when the server has closed the connection
		assert.NotContains(t, exchangeHTTP(t, s.addr, request), "200 OK")
	}
	await(t, func() bool { return strings.Contains(s.output(), "are at --http-port") })
	require.NoError(t, s.connect(t).Ping(t.Context()).Err())
}

// A thousand event streams, headers of 1 MB and clients that read nothing do not affect others: the
// metrics and the Redis protocol are served.
func TestHTTPUnderAttack(t *testing.T) {
	t.Parallel()
	s, address := startWithHTTP(t, "--http-max-streams", "8", "--http-max-clients", "64")
	rdb := s.connect(t)
	var all sync.WaitGroup
	streams := make(chan bool, 1000)
	for i := range 1000 {
		all.Go(func() {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() }) // most of them read nothing until then
			conn.SetDeadline(time.Now().Add(patience))
			fmt.Fprint(conn, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if status, _ := bufio.NewReader(conn).ReadString('\n'); strings.Contains(status, "200 OK") {
				streams <- true
			}
			if i%100 == 0 {
				exchangeHTTP(t, address, "GET / HTTP/1.1\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
			}
		})
	}
	for range 100 {
		require.NoError(t, rdb.Do(t.Context(), "RL.SLIDE", "key", 1000, "1h").Err())
	}
	all.Wait()
	assert.LessOrEqual(t, len(streams), 8)
	await(t, func() bool {
		response, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(text), `outcome="admitted"} 100`)
	})
}

// While the server stops, /readyz returns 503 until the calls in progress are answered.
func TestNotReadyWhileStopping(t *testing.T) {
	t.Parallel()
	s, address := startWithHTTP(t, "--enable-debug-command", "local")
	conn, err := dial(s.addr)
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "DEBUG SLEEP 60\r\n") // longer than the server waits for it
	observer := s.connect(t)
	await(t, func() bool {
		return strings.Contains(observer.ClientList(t.Context()).Val(), "cmd=debug|sleep")
	})
	s.terminate()
	await(t, func() bool {
		reply := exchangeHTTP(t, address, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		return strings.Contains(reply, "503") && strings.Contains(reply, "not ready: the server is stopping")
	})
	assert.Contains(
		t,
		exchangeHTTP(t, address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
		"200 OK",
	)
	assert.Equal(t, 0, s.exitCode(t))
}
