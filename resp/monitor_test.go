package resp

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/clientmem"
	"rlserver/resp/config"
	"rlserver/resp/executor"
	"rlserver/resp/wire"
)

func TestMonitor(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	m, c := ts.dial(), ts.dial()
	assert.Equal(t, "+OK", m.do("MONITOR"))
	c.do("SET a b")
	c.send("set", "x y", "\r\n\xff\"")
	c.do("GET")
	c.do("CONFIG GET port")
	c.do("AUTH secret")
	c.do("HELLO 2 AUTH ann secret")
	c.pipe("MULTI", "SET a 1", "CONFIG GET port", "HGET a b", "EXEC", "PING")
	c.do("SELECT 3")
	c.do("PING")
	assert.Equal(t, []string{
		`"SET" "a" "b"`, `"set" "x y" "\r\n\xff\""`, `"AUTH" "(redacted)"`,
		`"HELLO" "2" "AUTH" "(redacted)" "(redacted)"`,
		`"MULTI"`, `"SET" "a" "1"`, `"HGET" "a" "b"`, `"EXEC"`, `"PING"`, `"SELECT" "3"`, `"PING"`,
	}, m.monitored(11))
	assert.Contains(t, c.do("CLIENT LIST"), " flags=O ")
	assert.Contains(t, c.do("INFO clients"), "monitor_clients:1\r\n")
	m.monitored(1)

	assert.Equal(t, "+PONG", m.do("PING"), "other commands still work")
	m.monitored(1)
	assert.Equal(t, "+RESET", m.do("RESET"))
	c.do("PING")
	assert.Equal(t, "+PONG", m.do("PING"))
	assert.Zero(t, ts.executor.Monitors())

	m.do("MONITOR")
	m.Close()
	require.Eventually(t, func() bool { return ts.executor.Monitors() == 0 }, time.Minute, time.Millisecond)
	assert.Equal(t, "*1 -ERR MONITOR isn't allowed for DENY BLOCKING client",
		c.pipe("MULTI", "MONITOR", "EXEC")[2])
}

func TestMonitorShowsWaitingCallsAndUnixSockets(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	go ts.Serve(ln)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	m, c := ts.dial(), ts.over(conn)
	m.do("MONITOR")
	c.do("RL.LEASE k 1 1h a")
	io.WriteString(c, frame("RL.LEASE", "k", "1", "1h", "b", "WAIT", "60000"))
	assert.Equal(
		t,
		[]string{`"RL.LEASE" "k" "1" "1h" "a"`, `"RL.LEASE" "k" "1" "1h" "b" "WAIT" "60000"`},
		m.monitored(2),
		"a call is shown before it is admitted",
	)
}

// A client in MONITOR is not paused, so it must not access keys.
func TestMonitorCannotAccessKeys(t *testing.T) {
	const refused = "-ERR Replica can't interact with the keyspace"
	ts := startServer(t, config.Defaults{})
	m, c := ts.dial(), ts.dial()
	m.check([]answer{{"MONITOR", "+OK"}})
	c.check([]answer{{"CLIENT PAUSE 100000", "+OK"}})
	m.check([]answer{{"DEL k", refused}, {"GET k", refused}, {"RL.SLIDE l 5 1m", refused},
		{"RL.TOP", refused}, {"RESET", "+RESET"}})
}

// A monitor that does not read is closed, and delays no other client.
func TestMonitorThatDoesNotRead(t *testing.T) {
	ts := startServer(t, config.Defaults{"client-output-buffer-limit": "normal 1mb 0 0"})
	m, c := ts.dial(), ts.dial()
	m.do("MONITOR")
	value := strings.Repeat("v", 50_000)
	for range 2000 {
		if ts.executor.Monitors() == 0 {
			break
		}
		c.send("SET", "k", value)
	}
	require.Eventually(t, func() bool { return ts.executor.Monitors() == 0 }, time.Minute, time.Millisecond)
	assert.Contains(t, c.do("INFO stats"), "client_output_buffer_limit_disconnections:1\r\n")
	assert.Equal(t, 1, ts.clients())
}

// Many monitors that do not read large calls hold what maxmemory-clients gives to all clients, as
// INFO shows, and are closed then. Other clients are served meanwhile, also monitors that read.
func TestManyMonitorsThatDoNotRead(t *testing.T) {
	const most = 512<<20 + 104*clientmem.ConnectionSize // INFO shows the connections themselves too
	ts := startServer(t, config.Defaults{"client-output-buffer-limit": "normal 0 0 0"})
	reads, c, other := ts.dial(), ts.dial(), ts.dial()
	require.Equal(t, "+OK", c.do("CONFIG SET maxmemory-clients 512mb"))
	for range 100 {
		require.Equal(t, "+OK", ts.dial().do("MONITOR"))
	}
	require.Equal(t, "+OK", reads.do("MONITOR"))
	value, held := strings.Repeat("v", 1<<20), 0
	for closed := 0; closed < 20; closed = 101 - ts.executor.Monitors() {
		require.Equal(t, "+OK", c.send("SET", "k", value))
		require.Contains(t, reads.read(), value)
		require.Equal(t, ":1048576", other.do("STRLEN k"))
		reads.read()
		held = max(held, other.number("mem_clients_normal"))
		require.LessOrEqual(t, held, most)
		assert.Contains(t, reads.read(), `"INFO"`)
	}
	assert.Greater(t, held, most/2)
	other.eventually("they are closed", func() bool { return other.number("evicted_clients") >= 20 })
}

// A monitor sends nothing, and still is not closed as idle.
func TestMonitorsAreNotIdle(t *testing.T) {
	ts := startServer(t, config.Defaults{"timeout": "3600"})
	m := ts.dial()
	m.do("MONITOR")
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, ss := range ts.sessions {
		assert.True(t, ss.guard.Listens.Load())
	}
}

func TestClientPause(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, w, r := ts.dial(), ts.named("writer"), ts.dial()
	assert.Equal(t, "+OK", c.do("CLIENT PAUSE 1000000 WRITE"))
	go io.WriteString(w, pipeline("GET a", "SET a 1", "GET a"))
	assert.Equal(t, "$-1 ", w.read(), "the replies of earlier calls are sent")
	require.Eventually(t, func() bool { return ts.held.Load() == 1 }, time.Minute, time.Millisecond)
	assert.Contains(t, r.do("CLIENT LIST"), "name=writer age=0 idle=0 flags=b ")
	assert.Contains(t, r.do("INFO clients"), "blocked_clients:1\r\n")
	assert.Equal(t, []string{"$-1", "$-1", "+PONG"}, r.pipe("GET a", "GET b", "PING"))
	assert.Equal(t, "+OK", c.do("CLIENT UNPAUSE"))
	assert.Equal(t, "+OK ", w.read())
	assert.Equal(t, "$1 1 ", w.read())
	assert.Zero(t, ts.held.Load())
	assert.Equal(t, "+OK", c.do("SET b 1"))

	// A second pause does not shorten the first.
	c.do("CLIENT PAUSE 5000 WRITE")
	c.do("CLIENT PAUSE 1 WRITE")
	io.WriteString(w, frame("INCR", "a"))
	require.Eventually(t, func() bool { return ts.held.Load() == 1 }, time.Minute, time.Millisecond)
	ts.advance(4999)
	assert.Equal(t, "$1 1", r.do("GET a"))
	ts.advance(1)
	c.do("CLIENT UNPAUSE") // resumes the client
	assert.Equal(t, ":2 ", w.read())

	// Transactions wait as a whole, and a client that is paused may disconnect.
	c.do("CLIENT PAUSE 1000000 WRITE")
	assert.Equal(t, []string{"+OK", "+QUEUED", "*1 $1 2"}, w.pipe("MULTI", "GET a", "EXEC"))
	io.WriteString(w, pipeline("MULTI", "SET a 5"))
	w.read()
	require.Eventually(t, func() bool { return ts.held.Load() == 1 }, time.Minute, time.Millisecond)
	w.Close()
	require.Eventually(t, func() bool { return ts.held.Load() == 0 }, time.Minute, time.Millisecond)
	assert.Equal(t, "$1 2", r.do("GET a"))
	assert.Equal(t, "-ERR timeout is out of range", c.do("CLIENT PAUSE 9223372036854775807"))
}

func TestNothingChangesAfterAPauseHasBegun(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for range 4 {
		w := ts.dial()
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					w.pipe("INCR a", "INCR b", "GET a", "INCR c")
				}
			}
		})
	}
	for range 300 {
		require.Equal(t, "+OK", c.do("CLIENT PAUSE 1000000 WRITE"))
		before := c.do("MGET a b c")
		for range 5 {
			require.Equal(t, before, c.do("MGET a b c"))
		}
		require.Equal(t, "+OK", c.do("CLIENT UNPAUSE"))
	}
	close(stop)
	writers.Wait()
}

func TestClientPauseOfAllCalls(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, m, r := ts.dial(), ts.dial(), ts.dial()
	m.do("MONITOR")
	c.do("CLIENT PAUSE 100")
	io.WriteString(r, frame("GET", "a"))
	require.Eventually(t, func() bool { return ts.held.Load() == 1 }, time.Minute, time.Millisecond)
	assert.Equal(t, "+PONG", m.do("PING"), "monitors are not paused")
	assert.Equal(
		t,
		"-ERR wrong number of arguments for 'get' command",
		c.do("GET"),
		"calls with errors are not paused either",
	)
	ts.advance(100)
	assert.Equal(t, "$-1 ", r.read(), "the call runs when the pause is over")
	assert.Equal(t, "+PONG", c.do("PING"))
}

func TestInstantaneousRates(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	ts.sample()
	assert.Contains(t, c.do("INFO stats"), "instantaneous_ops_per_sec:0\r\n")
	for range 19 {
		c.do("PING")
	}
	ts.advance(2000)
	ts.sample()
	text := c.do("INFO stats")
	assert.Contains(t, text, "instantaneous_ops_per_sec:10\r\n")
	assert.Regexp(t, `instantaneous_input_kbps:0\.1\d\r\n`, text)
	assert.Regexp(t, `instantaneous_output_kbps:[0-9.]+\r\n`, text)
	for range 5 {
		ts.advance(1000)
		ts.sample()
	}
	assert.Contains(t, c.do("INFO stats"), "instantaneous_ops_per_sec:0\r\n")
}

func TestPeakOfMemory(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	ts.MemoryTaken(100 << 20)
	peak := c.number("used_memory_peak")
	assert.Greater(t, peak, 90<<20)
	ts.MemoryTaken(10 << 20)
	assert.Equal(t, peak, c.number("used_memory_peak"))
	c.do("CLIENT TRACKING ON OPTIN")
	assert.Equal(t, 1, c.number("tracking_clients"))
}

// Within EXEC, each line has the database of the client after the call, as in Redis.
func TestMonitorShowsTheDatabaseOfEachCallOfATransaction(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	m, c := ts.dial(), ts.dial()
	m.do("MONITOR")
	c.pipe("MULTI", "SET a 1", "SELECT 3", "SET b 2", "EXEC", "PING")
	var databases []string
	for range 6 {
		_, line, _ := strings.Cut(m.read(), "[")
		databases = append(databases, line[:1])
	}
	assert.Equal(t, []string{"0", "0", "3", "3", "3", "3"}, databases)
}

// monitorConn is the connection of a monitor. It notes what it is sent.
type monitorConn struct {
	discardConn
	largest, lines int
}

func (m *monitorConn) Write(p []byte) (int, error) {
	m.largest, m.lines = max(m.largest, len(p)), m.lines+bytes.Count(p, []byte("\r\n"))
	return len(p), nil
}

// The lines of a large transaction are not collected: they are sent in pieces.
func TestMonitorGetsATransactionInPieces(t *testing.T) {
	s := newSession()
	conn := new(monitorConn)
	m := s.server.newSession(wire.NewGuard(conn, config.NewConnectionLimits(), nil))
	s.server.executor.SetMonitors([]executor.Monitor{m})
	value := strings.Repeat("\x00", 10_000) // four bytes each in a line
	for _, aborted := range []bool{false, true} {
		s.execute(words("MULTI"))
		for range 100 {
			s.execute(words("SET", "k", value))
		}
		if aborted {
			s.execute(words("GET"))
		}
		before := conn.lines
		s.execute(words("EXEC"))
		assert.Equal(t, map[bool]int{false: 101, true: 1}[aborted], conn.lines-before)
	}
	s.flush()
	assert.LessOrEqual(t, conn.largest, wire.FlushSize+5*len(value))
	assert.Zero(t, s.lines)
}
