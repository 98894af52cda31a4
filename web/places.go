package web

import (
	"container/list"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/internal/logins"
)

// places are the connections of all listeners: at most max with a request that is answered, and
// in total at most health more. So there are always places for connections that wait for a request,
// among them those of health checks, which need no place of the first kind.
//
// What a connection asks for is not known before its request has arrived. So a new connection is
// not refused: it replaces the one that has waited longest, of the source that has most of them.
// A connection without a request, or with half of one, can keep no other out.
type places struct {
	max, health int

	mu      sync.Mutex
	open    int
	busy    int                   // connections with a request that is answered, not a health check
	waiting list.List             // of *conn without a complete request, in order
	from    map[logins.Source]int // number of these by source
	freed   chan struct{}         // receives a value after a connection has ended

	refused atomic.Int64 // connections, or requests, above the limits
	cut     atomic.Int64 // waiting connections that were closed for new ones
}

// grace is how long a connection can stay at least after the first read from it, however fast
// others connect, so that its request can arrive. One that is there already is read at once.
const grace = 10 * time.Millisecond

// looks is how many of the connections that have waited longest are considered for replacement.
const looks = 256

func newPlaces(max, health int) *places {
	return &places{max: max, health: health, from: make(map[logins.Source]int), freed: make(chan struct{}, 1)}
}

// conn is a connection that has a place.
type conn struct {
	net.Conn
	listener *listener
	places   *places
	source   logins.Source
	read     bool // it was read
	started  bool // its first bytes have been read

	// guarded by places.mu
	seat   *list.Element // in places.waiting; nil: it does not wait
	since  time.Time     // when it was first read or became idle; zero: not read yet
	busy   bool
	closed bool
}

// full is the reason of a refusal.
func (p *places) full() string {
	return fmt.Sprintf("too many connections: --http-max-clients is %d", p.max)
}

// admit gives a connection a place. It returns nil if none is free within refusalTime.
func (p *places) admit(c net.Conn) *conn {
	admitted := &conn{Conn: c, places: p, source: logins.SourceOf(c.RemoteAddr().String())}
	for by := time.Now().Add(refusalTime); ; {
		now := time.Now()
		victim, wait := p.take(admitted, now)
		if victim != nil {
			victim.Close()
			continue
		}
		if wait == 0 {
			return admitted
		}
		if now.After(by) {
			return nil
		}
		select {
		case <-p.freed:
		case <-time.After(wait):
		}
	}
}

// take gives a connection a place if there is one. Otherwise it returns the connection to close
// first, or how long to wait for one.
func (p *places) take(c *conn, now time.Time) (victim *conn, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open < p.max+p.health {
		p.open++
		p.wait(c, time.Time{})
		return nil, 0
	}
	if victim = p.victim(); victim == nil {
		return nil, grace
	}
	switch age := now.Sub(victim.since); {
	case victim.since.IsZero():
		return nil, grace
	case age < grace:
		return nil, grace - age
	}
	p.cut.Add(1)
	return victim, 0
}

// victim returns the connection to close for a new one: of the source with the most connections
// that wait, and of a client on another machine rather than of one on this.
func (p *places) victim() (victim *conn) {
	most := 0
	n := 0
	for e := p.waiting.Front(); e != nil && n < looks; e = e.Next() {
		n++
		c := e.Value.(*conn)
		weight := 2 * p.from[c.source]
		if !c.source.Local() {
			weight++
		}
		if weight > most {
			victim, most = c, weight
		}
	}
	return victim
}

// wait adds a connection to those that wait.
func (p *places) wait(c *conn, since time.Time) {
	c.since, c.seat = since, p.waiting.PushBack(c)
	p.from[c.source]++
}

// leave removes a connection from those that wait.
func (p *places) leave(c *conn) {
	if c.seat == nil {
		return
	}
	p.waiting.Remove(c.seat)
	c.seat = nil
	if p.from[c.source]--; p.from[c.source] == 0 {
		delete(p.from, c.source)
	}
}

// firstRead is called when the connection is read for the first time.
func (c *conn) firstRead() {
	c.places.mu.Lock()
	defer c.places.mu.Unlock()
	c.since = time.Now()
}

// begin is called when a request has arrived. It reports whether it can be answered.
func (c *conn) begin(health bool) bool {
	p := c.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if !health {
		if p.busy >= p.max || c.closed {
			return false
		}
		p.busy, c.busy = p.busy+1, true
	}
	p.leave(c)
	return true
}

// idle is called when the response to a request has been sent.
func (c *conn) idle() {
	p := c.places
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest(c)
	if p.leave(c); !c.closed {
		p.wait(c, time.Now())
	}
}

func (p *places) rest(c *conn) {
	if c.busy {
		p.busy, c.busy = p.busy-1, false
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	p := c.places
	p.mu.Lock()
	if !c.closed {
		c.closed = true
		p.open--
		p.rest(c)
		p.leave(c)
		select {
		case p.freed <- struct{}{}:
		default:
		}
	}
	p.mu.Unlock()
	return c.Conn.Close()
}

// connKey is the context key of the *conn of a request.
type connKey struct{}

// connOf returns the connection below TLS.
func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	known, _ := c.(*conn)
	return known
}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(c))
}

// isHealthCheck reports whether a request needs no place of --http-max-clients. One with a body
// does, as it takes time to read.
func isHealthCheck(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.ContentLength == 0 &&
		(r.URL.Path == "/healthz" || r.URL.Path == "/readyz" || r.URL.Path == "/readyz/traffic")
}

// seated serves requests that have a place.
func seated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connKey{}).(*conn)
		switch {
		case c == nil: // a test without a connection
		case isHealthCheck(r):
			c.begin(true)
			w.Header().Set("Connection", "close") // it gives its place back at once
			http.NewResponseController(w).SetWriteDeadline(time.Now().Add(refusalTime))
		case !c.begin(false):
			w.Header().Set("Retry-After", "1")
			c.places.refused.Add(1)
			fail(w, http.StatusServiceUnavailable, c.places.full())
			return
		}
		next.ServeHTTP(w, r)
	})
}
