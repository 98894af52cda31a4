package integration

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests check what cmd/rlserver's own tests cannot: how the process treats connected clients.

// A pipeline that is in progress when the server is told to stop is answered to its last command.
// Then the connection closes.
func TestPipelineIsAnsweredBeforeStop(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *server){
		"SIGTERM": func(_ *testing.T, s *server) { s.terminate() },
		"SHUTDOWN": func(t *testing.T, s *server) {
			conn, err := dial(s.addr)
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "SHUTDOWN\r\n")
			require.NoError(t, err)
			nothing, _ := io.ReadAll(conn)
			assert.Empty(t, nothing)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const calls = 100
			s := startServer(t, "--enable-debug-command", "local")
			observer := s.connect(t)
			require.NoError(t, observer.Ping(t.Context()).Err())
			conn, err := dial(s.addr)
			require.NoError(t, err)
			defer conn.Close()
			// The first command ends after the stop has begun, on all but the slowest machines.
			_, err = io.WriteString(conn, "DEBUG SLEEP 0.5\r\n"+strings.Repeat("RL.SLIDE k 50 1h\r\n", calls))
			require.NoError(t, err)
			await(t, func() bool {
				list := observer.ClientList(t.Context()).Val()
				return strings.Contains(list, "cmd=debug|sleep") || strings.Contains(list, "cmd=rl.slide")
			})
			end(t, s)

			in := bufio.NewReader(conn)
			r, err := readReply(in)
			require.NoError(t, err)
			require.Equal(t, "OK", r.text)
			for n := range calls {
				r, err := readReply(in)
				require.NoError(t, err, "reply %d", n)
				require.Equal(t, strconv.Itoa(max(49-n, 0)), r.items[2].text)
			}
			_, err = in.ReadByte()
			assert.Equal(t, io.EOF, err)
			assert.Equal(t, 0, s.exitCode(t))
		})
	}
}

// await waits until a condition is true.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 10*time.Millisecond)
}

// A client above maxclients gets an error, and the others are not affected. When one of them
// disconnects, another client can connect.
func TestMaxClientsRefusesOneMore(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--maxclients", "3")
	var clients []net.Conn
	for range 3 {
		conn, err := dial(s.addr)
		require.NoError(t, err)
		defer conn.Close()
		clients = append(clients, conn)
		require.Equal(t, "+PONG", ping(t, conn))
	}

	refused, err := dial(s.addr)
	require.NoError(t, err)
	defer refused.Close()
	text, err := io.ReadAll(refused)
	require.NoError(t, err)
	assert.Equal(t, "-ERR max number of clients reached\r\n", string(text))

	for _, conn := range clients {
		assert.Equal(t, "+PONG", ping(t, conn))
	}
	require.NoError(t, clients[0].Close())
	await(t, func() bool {
		conn, err := dial(s.addr)
		require.NoError(t, err)
		defer conn.Close()
		return ping(t, conn) == "+PONG"
	})
}

// ping sends PING and returns the reply, or the empty string if there is none.
func ping(t *testing.T, conn net.Conn) string {
	t.Helper()
	if _, err := io.WriteString(conn, frame("PING")); err != nil {
		return ""
	}
	r, err := readReply(bufio.NewReader(conn))
	if err != nil {
		return ""
	}
	return r.String()
}

func TestIdleClientsAreDisconnected(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--timeout", "1")
	conn, err := dial(s.addr)
	require.NoError(t, err)
	defer conn.Close()
	require.Equal(t, "+PONG", ping(t, conn))
	rest, err := io.ReadAll(conn)
	require.NoError(t, err, "the server closes the connection")
	assert.Empty(t, rest)
}

// The environment is enough to configure the server, as in a container.
func TestSettingsFromEnvironment(t *testing.T) {
	t.Parallel()
	s := startOnFreePort(t, func(port string) *exec.Cmd {
		command := rlserver(t)
		command.Env = append(os.Environ(), "RLSERVER_PORT="+port, "RLSERVER_BIND=127.0.0.1",
			"RLSERVER_REQUIREPASS=sesame", "RLSERVER_DATABASES=3")
		return command
	})
	rdb := s.connect(t, func(o *redis.Options) { o.Password, o.DB = "sesame", 2 })
	require.NoError(t, rdb.Ping(t.Context()).Err())
	assert.Equal(t, map[string]string{"databases": "3"}, rdb.ConfigGet(t.Context(), "databases").Val())
	assert.ErrorContains(t, s.connect(t).Ping(t.Context()).Err(), "NOAUTH")
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
