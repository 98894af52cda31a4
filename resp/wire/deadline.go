package wire

import (
	"errors"
	"io"
	"os"
	"time"
)

// ErrLoginTimeout is the error of Wait that ends the stream of a client that has not authenticated
// in time.
var ErrLoginTimeout = errors.New("not authenticated within preauth-timeout")

// Pause waits until Wake is called. It keeps the input that arrives while it waits, up to the size
// limit of a command. It returns an error if the client is gone or the server shuts down. The words
// that Next has returned become invalid. A client that waits is not idle.
func (g *Guard) Pause() error {
	if len(g.scratch) == 0 {
		g.scratch = make([]byte, 512)
	}
	g.timed, g.deep = true, false
	for {
		if err := g.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		// Each flag is set before its deadline: either it is seen here, or its deadline ends the
		// read.
		switch {
		case g.wasWoken():
			return nil
		case g.draining.Load():
			return io.EOF
		case int64(g.in.waiting()) > g.in.limits.MaxQuery.Load():
			return errBigQuery
		}
		g.Queued.Store(int64(g.in.unparsed()))
		n, err := g.receive(g.scratch)
		g.BytesIn.Add(int64(n))
		if n == 0 && err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
}

// PauseFor is Pause for at most d.
func (g *Guard) PauseFor(d time.Duration) error {
	timer := time.AfterFunc(d, g.Wake)
	defer timer.Stop()
	return g.Pause()
}

// Wake ends the current Pause, or the next one if there is none.
func (g *Guard) Wake() {
	g.waking.Lock()
	defer g.waking.Unlock()
	g.woken.Store(true)
	g.SetReadDeadline(past)
}

// wasWoken reports whether Wake was called since it was last asked. If so, Wake has returned: its
// deadline does not end a later read, for which limitWait sets another one.
func (g *Guard) wasWoken() bool {
	if !g.woken.Swap(false) {
		return false
	}
	g.waking.Lock()
	defer g.waking.Unlock()
	return true
}

// limitWait sets the deadline of the read that follows.
func (g *Guard) limitWait() error {
	for {
		limit, login := g.idleLimit(), g.loginBy()
		if limit == 0 && login.IsZero() && !g.timed {
			return nil
		}
		g.timed = limit > 0 || !login.IsZero()
		if err := g.SetReadDeadline(sooner(deadline(limit), login)); err != nil {
			return err
		}
		// otherwise Retime was called, and may have set its deadline before this one
		if g.idleLimit() == limit && g.loginBy().Equal(login) {
			return nil
		}
	}
}

func (g *Guard) idleLimit() time.Duration {
	if g.idle == nil || g.Listens.Load() || g.Subscribed() {
		return 0
	}
	return g.idle()
}

// loginBy returns when the client must have completed the TLS handshake and authenticated; zero: it
// has done so, or there is no limit.
func (g *Guard) loginBy() time.Time {
	if g.tls != nil && !g.tls.ready.Load() {
		return sooner(g.authenticateBy(), g.tls.by)
	}
	return g.authenticateBy()
}

// authenticateBy returns when the client must have authenticated; zero: it has done so, or there is
// no limit.
func (g *Guard) authenticateBy() time.Time {
	since := g.loginSince.Load()
	if since == nil || g.LoginTime == nil {
		return time.Time{}
	}
	limit := g.LoginTime()
	if limit == 0 {
		return time.Time{}
	}
	return since.Add(limit)
}

func (g *Guard) loginIsOver() bool {
	by := g.loginBy()
	return !by.IsZero() && !time.Now().Before(by)
}

// sooner returns the earlier of two deadlines; zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// deadline returns the end of a wait that begins now; a limit of 0 means never.
func deadline(limit time.Duration) time.Time {
	if limit == 0 {
		return time.Time{}
	}
	return time.Now().Add(limit)
}

// Retime applies the current timeouts to a Wait that is running. Call it after they have changed.
func (g *Guard) Retime() {
	g.SetReadDeadline(sooner(deadline(g.idleLimit()), g.loginBy()))
	switch { // restore a deadline that this has replaced
	case g.leaving.Load():
		g.SetReadDeadline(time.Now().Add(leaveGrace))
	case g.draining.Load():
		g.Drain()
	case g.woken.Load():
		g.Wake()
	}
}

// past is a deadline that ends a read at once.
var past = time.Unix(1, 0)
