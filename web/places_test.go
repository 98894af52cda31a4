package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dial connects, and sends a text.
func dial(t *testing.T, address, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(maxWait))
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	return c, bufio.NewReader(c)
}

func eventually(t *testing.T, s *Server, condition func(n Connections) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return condition(s.Connections()) }, maxWait, time.Millisecond)
}

// Requests above the limit are refused, but health checks are not among them.
func TestConnectionsAreLimited(t *testing.T) {
	o := options(newFake())
	o.MaxConnections, o.Health = 3, 2
	s, address := serving(t, o)
	var held []net.Conn
	for range 3 {
		c, r := dial(t, address, get("/api/events"))
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "200 OK")
		held = append(held, c)
	}
	for range 10 {
		assert.Contains(t, send(t, address, get("/metrics")), "too many connections: --http-max-clients is 3")
		assert.Contains(t, send(t, address, get("/healthz")), "200 OK")
		assert.Contains(t, send(t, address, get("/readyz")), "200 OK")
		assert.Contains(t, send(t, address, get("/readyz/traffic")), "200 OK")
	}
	n := s.Connections()
	assert.EqualValues(t, 3, n.Busy)
	assert.EqualValues(t, 10, n.Refused)
	held[0].Close()
	eventually(t, s, func(n Connections) bool { return n.Busy == 2 })
	assert.Contains(t, send(t, address, get("/metrics")), "200 OK")
}

// pipes is a listener of connections within the process, so that time can be handed in.
type pipes struct {
	waiting chan net.Conn
	closed  chan struct{}
	close   sync.Once
}

func newPipes() *pipes { return &pipes{waiting: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.waiting:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// pipeEnd is the server's end of a connection of pipes.
type pipeEnd struct{ net.Conn }

func (pipeEnd) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }

// dial connects once the server accepts it, and sends a text. It returns nil once ctx has ended.
func (p *pipes) dial(ctx context.Context, text string) net.Conn {
	client, server := net.Pipe()
	select {
	case p.waiting <- pipeEnd{server}:
	case <-ctx.Done():
		return nil
	}
	_, _ = io.WriteString(client, text) // the server may close the connection
	return client
}

// However many clients send half of a request, or nothing, and connect again, health checks are
// answered, also while all other places are taken.
func TestHalfRequestsDoNotStarveHealthChecks(t *testing.T) {
	synctest.Test(t, halfRequests)
}

func halfRequests(t *testing.T) {
	o := options(newFake())
	o.MaxConnections, o.Health = 4, 32
	ln := newPipes()
	s := serve(t, o, ln)
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 4 {
		c := ln.dial(ctx, get("/api/events"))
		all.Go(func() { _, _ = io.Copy(io.Discard, c) })
	}
	eventually(t, s, func(n Connections) bool { return n.Busy == 4 })
	for i := range 160 {
		half := []string{"G", "GET /healthz HTTP/1.1\r\n", "\x16", "", get("/metrics")[:20]}[i%5]
		all.Go(func() {
			for c := ln.dial(ctx, half); c != nil; c = ln.dial(ctx, half) {
				c.SetReadDeadline(time.Now().Add(time.Second))
				_, _ = c.Read(make([]byte, 1)) // until the server closes
				c.Close()
			}
		})
	}
	eventually(t, s, func(n Connections) bool { return n.Open == 36 && n.Cut > 100 })
	for range 10 {
		for _, path := range []string{"/healthz", "/readyz"} {
			c := ln.dial(ctx, get(path))
			reply, _ := io.ReadAll(c)
			c.Close()
			assert.Contains(t, string(reply), "200 OK")
		}
	}
	assert.LessOrEqual(t, s.Connections().Open, int64(36))
	stop()
	eventually(t, s, func(n Connections) bool { return n.Open == n.Busy })
	s.Close(t.Context())
	all.Wait()
}

// A connection that has been answered and sends nothing more makes place for new ones; one that is
// still answered does not.
func TestIdleConnectionsMakePlace(t *testing.T) {
	o := options(newFake())
	o.MaxConnections, o.Health = 2, 1
	s, address := serving(t, o)
	idle := make([]*bufio.Reader, 3)
	for i := range idle {
		_, idle[i] = dial(t, address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
		line, err := idle[i].ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "200 OK")
		eventually(t, s, func(n Connections) bool { return n.Busy == 0 })
	}
	assert.Contains(t, send(t, address, get("/readyz")), "200 OK")
	_, err := io.Copy(io.Discard, idle[0])
	assert.NoError(t, err)
	assert.EqualValues(t, 1, s.Connections().Cut)
}

// A request with a body that never arrives takes one of the limited places, also at /healthz.
func TestRequestsWithABodyAreNoHealthChecks(t *testing.T) {
	o := options(newFake())
	o.MaxConnections, o.Health = 2, 2
	s, address := serving(t, o)
	for range 2 {
		dial(t, address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
	}
	eventually(t, s, func(n Connections) bool { return n.Busy == 2 })
	for range 5 {
		dial(t, address, "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
		dial(t, address, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
		assert.Contains(t, send(t, address, get("/healthz")), "200 OK")
	}
}

// fromAddress is a connection that comes from an address.
type fromAddress struct {
	net.Conn
	address net.TCPAddr
}

func (c fromAddress) RemoteAddr() net.Addr { return &c.address }
func (c fromAddress) Close() error         { return nil }

func from(address string) net.Conn {
	return fromAddress{nil, *net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))}
}

// A new connection replaces one of the source that has most of them, another machine rather than
// this one, the oldest first, and none in its first milliseconds.
func TestWhichConnectionIsReplaced(t *testing.T) {
	p := newPlaces(4, 2)
	now := time.Now()
	seats := make(map[string]*conn)
	for i, address := range []string{
		"127.0.0.1:1", "192.0.2.1:1", "192.0.2.2:1", "192.0.2.2:2", "127.0.0.1:2", "[2001:db8::1]:1",
	} {
		seats[address] = p.admit(from(address))
		seats[address].since = now.Add(time.Duration(i) * time.Millisecond)
	}
	newcomer := &conn{Conn: from("192.0.2.9:9"), places: p}
	victim, wait := p.take(newcomer, now.Add(10*time.Millisecond))
	require.Nil(t, victim)
	require.Equal(t, 2*time.Millisecond, wait, "until the first of 192.0.2.2 has been there for 10 ms")
	later := now.Add(time.Second)
	for _, want := range []string{"192.0.2.2:1", "127.0.0.1:1", "192.0.2.1:1", "192.0.2.2:2", "[2001:db8::1]:1"} {
		victim, wait = p.take(newcomer, later)
		require.Zero(t, wait)
		require.Same(t, seats[want], victim, want)
		victim.Close()
		require.True(t, seats["127.0.0.1:2"].begin(true))
		p.open++ // something without a seat
		if seats["127.0.0.1:2"].idle(); want == "192.0.2.2:1" {
			seats["127.0.0.1:2"].since = now
		}
	}
	require.Equal(t, seats["127.0.0.1:2"], p.victim())
	require.True(t, seats["127.0.0.1:2"].begin(false))
	victim, wait = p.take(newcomer, later)
	require.Nil(t, victim, "none waits")
	require.Equal(t, grace, wait)
	seats["127.0.0.1:2"].Close()
	seats["127.0.0.1:2"].Close()
	victim, wait = p.take(newcomer, later)
	require.Zero(t, victim)
	require.Zero(t, wait)
	require.Equal(t, 6, p.open)
	require.Zero(t, p.busy)
}

func TestFullPlacesRefuse(t *testing.T) {
	p := newPlaces(1, 1)
	first, second := p.admit(from("192.0.2.1:1")), p.admit(from("192.0.2.1:2"))
	require.True(t, first.begin(false))
	require.False(t, second.begin(false), p.full())
	require.NotNil(t, second.seat, "who is refused can be replaced")
	second.firstRead()
	require.NotNil(t, p.admit(from("192.0.2.1:3")))
	require.True(t, second.closed)
	require.False(t, second.begin(false))
	require.True(t, strings.HasSuffix(p.full(), fmt.Sprint(1)))
}
