package resp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/internal/clock"
	"rlserver/resp/command"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
)

// testServer is a server in this process, on a loopback port, with a clock that the test controls.
type testServer struct {
	*Server
	t    *testing.T
	addr string
	now  *atomic.Int64 // Unix ms
}

// testStart is the time at which tests start, in Unix ms: 2026-01-01 00:00:00 UTC.
const testStart = 1767225600000

// startServer starts a server without persistence, unless an option adds it. At the end of the
// test, its journal must tell what its memory holds.
func startServer(t *testing.T, d config.Defaults, with ...func(*Options)) *testServer {
	t.Helper()
	if d.Databases == 0 {
		d.Databases = 16
	}
	if d.MaxClients == 0 {
		d.MaxClients = 1000
	}
	ts := &testServer{t: t, now: frozenTime()}
	mirror := commandtest.NewMirror(t, d.Databases)
	mirrored := engine.New(engine.Options{Databases: d.Databases, Seed: [2]uint64{1, 2}, Journal: mirror})
	o := Options{
		Engine: mirrored, Journal: mirror,
		Clock: clockBy(ts.now.Load),
		Log:   slog.New(slog.DiscardHandler), Settings: config.NewSettings(d), Version: "test",
	}
	for _, change := range with {
		change(&o)
	}
	ts.Server = NewServer(o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ts.addr = ln.Addr().String()
	go ts.Serve(ln)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		ts.Shutdown(ctx)
		if ts.Engine == mirrored {
			mirror.Compare(mirrored, ts.now.Load())
		}
	})
	return ts
}

// clockBy returns a clock that reads the time from now, in Unix ms.
func clockBy(now func() int64) *clock.Clock {
	elapsed := func(ms int64) time.Duration { return time.Duration(ms-testStart) * time.Millisecond }
	return clock.New(clock.Source{
		Read:    func() (int64, time.Duration) { ms := now(); return ms * 1000, elapsed(ms) },
		Elapsed: func() time.Duration { return elapsed(now()) },
	}, slog.New(slog.DiscardHandler))
}

// frozenTime returns testStart, as a time that only the test advances.
func frozenTime() *atomic.Int64 {
	now := new(atomic.Int64)
	now.Store(testStart)
	return now
}

// advance advances the clock.
func (ts *testServer) advance(ms int64) { ts.now.Add(ms) }

// testClient is a connection that sends commands and returns raw replies.
type testClient struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func (ts *testServer) dial() *testClient {
	ts.t.Helper()
	conn, err := net.Dial("tcp", ts.addr)
	require.NoError(ts.t, err)
	ts.t.Cleanup(func() { conn.Close() })
	return ts.over(conn)
}

// over returns a client that uses a connection.
func (ts *testServer) over(conn net.Conn) *testClient {
	return &testClient{Conn: conn, t: ts.t, r: bufio.NewReader(conn)}
}

// do sends one command, its words separated by spaces, and returns the raw reply with each \r\n as
// a space: "*2 :1 :2".
func (c *testClient) do(line string) string {
	c.t.Helper()
	return c.send(strings.Fields(line)...)
}

// frame encodes a command as clients send it.
func frame(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

// send is do for words that contain spaces or are empty.
func (c *testClient) send(words ...string) string {
	c.t.Helper()
	_, err := c.Write([]byte(frame(words...)))
	require.NoError(c.t, err)
	return strings.TrimSuffix(c.read(), " ")
}

// read reads one reply in full.
func (c *testClient) read() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	require.NoError(c.t, err)
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	text := line + " "
	switch line[0] {
	case '$', '=':
		if n >= 0 {
			body := make([]byte, n+2)
			_, err := io.ReadFull(c.r, body)
			require.NoError(c.t, err)
			text += string(body[:n]) + " "
		}
	case '*', '~', '>', '%':
		if line[0] == '%' {
			n *= 2
		}
		for range max(n, 0) {
			text += c.read()
		}
	}
	return text
}

// exhaustedListener fails to accept for want of a file descriptor, as often as times says, and then
// is closed.
type exhaustedListener struct {
	net.Listener
	times int
	wait  func()
}

func (e *exhaustedListener) Accept() (net.Conn, error) {
	if e.times--; e.times < 0 {
		return nil, net.ErrClosed
	}
	e.wait()
	return nil, syscall.EMFILE
}

func TestAcceptFailuresAreLoggedOnceASecond(t *testing.T) {
	var log strings.Builder
	now := int64(testStart)
	drained := make(chan struct{})
	close(drained)
	g := &gate{
		Listener: &exhaustedListener{times: 5, wait: func() { now += 400 }},
		server: &Server{
			Env: command.Env{
				Time: clockBy(func() int64 { return now }),
				Log:  slog.New(slog.NewTextHandler(&log, nil)),
			},
			drained: drained,
		},
	}
	_, err := g.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.Equal(t, 2, strings.Count(log.String(), "a connection could not be accepted"), log.String())
}
