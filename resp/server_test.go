package resp

import (
	"bufio"
	"net"
	"sync/atomic"
	"testing"

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
const testStart = commandtest.Start

// startServer starts a server without persistence, unless an option adds it. At the end of the
// test, its journal must tell what its memory holds.
func startServer(t *testing.T, d config.Defaults, with ...func(*Options)) *testServer {
	t.Helper()
	p := commandtest.NewParts(t, d)
	o := Options{
		Engine: p.Engine, Journal: p.Journal, Clock: p.Clock, Log: p.Log, Settings: p.Settings, Version: "test",
	}
	for _, change := range with {
		change(&o)
	}
	s := NewServer(o)
	return &testServer{Server: s, t: t, addr: p.Serve(t, s), now: p.Now}
}

// advance advances the clock.
func (ts *testServer) advance(ms int64) { ts.now.Add(ms) }

func (ts *testServer) dial() *testClient {
	ts.t.Helper()
	c := commandtest.Dial(ts.t, ts.addr)
	return &testClient{c, ts.t, c.In}
}

// over returns a client that uses a connection.
func (ts *testServer) over(conn net.Conn) *testClient {
	c := commandtest.NewClient(ts.t, conn)
	return &testClient{c, ts.t, c.In}
}

// testClient is a commandtest.Client. Its methods with small letters are short names of those.
type testClient struct {
	*commandtest.Client
	t *testing.T
	r *bufio.Reader
}

// answer is a call and its reply.
type answer = commandtest.Answer

func (c *testClient) do(line string) string                  { c.t.Helper(); return c.Do(line) }
func (c *testClient) send(words ...string) string            { c.t.Helper(); return c.Send(words...) }
func (c *testClient) pipe(lines ...string) []string          { c.t.Helper(); return c.Pipe(lines...) }
func (c *testClient) read() string                           { c.t.Helper(); return c.Read() }
func (c *testClient) check(steps []answer)                   { c.t.Helper(); c.Check(steps) }
func (c *testClient) field(name string) string               { c.t.Helper(); return c.Info(name) }
func (c *testClient) number(name string) int                 { c.t.Helper(); return c.InfoNumber(name) }
func (c *testClient) monitored(n int) []string               { c.t.Helper(); return c.Monitored(n) }
func (c *testClient) requireClosed()                         { c.t.Helper(); c.RequireClosed() }
func (c *testClient) eventually(what string, is func() bool) { c.t.Helper(); c.Eventually(what, is) }

// frame encodes a command as clients send it, pipeline several, given one per line.
var frame, pipeline = commandtest.Frame, commandtest.Pipeline
