// Package ports accepts the connections of clients, and exchanges the ports and the certificates
// while the server runs.
//
// redcon accepts: each listener is served by a goroutine of redcon, which closes all connections of
// a listener when its Accept fails. So the Accept of a listener that was closed waits, either for
// the next socket, which the goroutine then serves, or until no connection is left.
package ports

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/redcon"

	"rlserver/engine"
	"rlserver/internal/certs"
	"rlserver/internal/clock"
	"rlserver/internal/listen"
	"rlserver/resp/config"
)

// Options are the options of New.
type Options struct {
	Settings     *config.Settings
	Certificates *certs.Store    // of the listeners with TLS
	Sockets      *listen.Sockets // those that Change exchanges
	Clock        *clock.Clock
	Log          *slog.Logger
	// Wrap returns what makes connections as redcon sees them, of a socket with TLS or without.
	Wrap func(tls bool) func(net.Conn) net.Conn
	// Opened is called with what redcon makes of a connection, and reports whether it is served.
	Opened func(redcon.Conn) bool
	Closed func(redcon.Conn, error) // called at the end of each connection that is served
}

// Ports are the listeners of a server.
type Ports struct {
	Options
	parked  chan *gate    // to the gates whose listener was closed
	ended   chan struct{} // closed when no connection is left and none will come
	serving sync.WaitGroup
	endOnce sync.Once

	mu        sync.Mutex // guards the fields below
	listeners []net.Listener
	closed    bool
}

// New returns Ports that nothing is served on yet.
func New(o Options) *Ports {
	return &Ports{Options: o, parked: make(chan *gate), ended: make(chan struct{})}
}

// Serve accepts and serves the clients of a listener until End. It owns the listener.
func (p *Ports) Serve(ln net.Listener, wrap func(net.Conn) net.Conn) error {
	g := &gate{Listener: ln, ports: p, wrap: wrap}
	if !p.begin(g) {
		return nil
	}
	return p.run(g)
}

// begin adds the listener of a gate to those that Close closes, and reports whether it may be
// served.
func (p *Ports) begin(g *gate) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		g.Close()
		return false
	}
	p.listeners = append(p.listeners, g.Listener)
	p.serving.Add(1)
	return true
}

func (p *Ports) run(g *gate) error {
	defer p.serving.Done()
	unused := func(redcon.Conn, redcon.Command) {} // redcon insists on a handler
	return redcon.Serve(g, unused, p.Opened, p.Closed)
}

// Close closes the listeners. No connection comes afterwards.
func (p *Ports) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, ln := range p.listeners {
		ln.Close()
	}
}

// Listeners returns how many listeners are served.
func (p *Ports) Listeners() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.listeners)
}

// End returns when all connections have ended. It is called after Close, when they have been closed
// or will close by themselves.
func (p *Ports) End() {
	p.endOnce.Do(func() { close(p.ended) })
	p.serving.Wait()
}

// exchange serves new sockets instead of closed ones.
func (p *Ports) exchange(opened, closed []listen.Socket) {
	p.mu.Lock()
	p.listeners = slices.DeleteFunc(p.listeners, func(ln net.Listener) bool {
		return slices.ContainsFunc(closed, func(socket listen.Socket) bool { return socket.Listener == ln })
	})
	p.mu.Unlock()
	for _, socket := range opened {
		g := &gate{Listener: socket.Listener, ports: p, wrap: p.Wrap(socket.TLS)}
		if !p.begin(g) {
			continue
		}
		p.Log.Info("listening", "network", "tcp", "address", socket.Addr().String(), "tls", socket.TLS)
		select {
		case p.parked <- g: // a gate whose listener was closed serves it
			p.serving.Done()
		default:
			go p.run(g)
		}
	}
}

// gate is a listener that wraps its connections.
type gate struct {
	net.Listener
	ports  *Ports
	wrap   func(net.Conn) net.Conn
	failed clock.Throttle // of errors of Accept
}

// Accept implements net.Listener. It tries again after errors such as a lack of file descriptors.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err == nil {
			if tcp, ok := conn.(*net.TCPConn); ok {
				tcp.SetKeepAliveConfig(g.ports.Settings.KeepAlive())
			}
			return g.wrap(conn), nil
		}
		if errors.Is(err, net.ErrClosed) {
			select {
			case next := <-g.ports.parked:
				g.Listener, g.wrap = next.Listener, next.wrap
				continue
			case <-g.ports.ended:
				return nil, err
			}
		}
		if _, ok := g.failed.Allow(g.ports.Clock.Elapsed().Milliseconds(), time.Second); ok {
			g.ports.Log.Warn("a connection could not be accepted", "error", err)
		}
		time.Sleep(50 * time.Millisecond) // out of file descriptors: an immediate retry would spin
	}
}

// maxLookup is how long the lookups of host names of bind may take.
const maxLookup = 2 * time.Second

// Change makes the changes of ports and TLS files among changes of settings, which the settings do
// not have yet. commit serves the new sockets; it is nil if there are none. After an error
// everything is as before.
func (p *Ports) Change(changes []config.Change) (commit func(), err error) {
	sockets, err := p.open(changes)
	if err == nil {
		err = p.useCertificates(changes)
	}
	switch {
	case err != nil:
		p.undo(sockets)
		return nil, err
	case sockets == nil:
		return nil, nil
	}
	return func() { p.exchange(sockets.Commit()) }, nil
}

func (p *Ports) after(changes []config.Change) (ports listen.Ports, changed bool) {
	ports = p.Settings.Ports()
	for _, change := range changes {
		if change.Ports != nil {
			change.Ports(&ports, change.Value)
			changed = true
		}
	}
	return ports, changed
}

// open opens the new sockets of changes of bind, port and tls-port. It returns nil if there are no
// such changes.
func (p *Ports) open(changes []config.Change) (*listen.Change, error) {
	ports, changed := p.after(changes)
	if !changed {
		return nil, nil
	}
	if err := p.Settings.CheckPorts(ports); err != nil {
		p.Log.Warn("CONFIG SET cannot change the ports", "error", err)
		return nil, config.RefusePorts(changes)
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxLookup)
	defer cancel()
	sockets := p.Sockets.Change(ctx, ports)
	if sockets.Err != nil {
		p.Log.Warn("CONFIG SET cannot change the ports", "error", sockets.Err)
		return sockets, config.RefusePorts(changes)
	}
	return sockets, nil
}

// undo ends a change of sockets that has failed. It may be nil.
func (p *Ports) undo(sockets *listen.Change) {
	if sockets == nil {
		return
	}
	opened, closed, err := sockets.Undo()
	if err != nil {
		p.Log.Error("a port that was closed to change the ports cannot be opened again", "error", err)
	}
	p.exchange(opened, closed)
}

// useCertificates applies the changes of TLS files, all or none. As at the start, files are read if
// there is a certificate or a TLS port.
func (p *Ports) useCertificates(changes []config.Change) error {
	files, first := p.Settings.TLS(), -1
	ports, _ := p.after(changes)
	for i, change := range changes {
		if change.TLS != nil {
			*change.TLS(&files) = change.Value
		}
		if first < 0 && (change.TLS != nil || change.Name == "tls-port" && ports.TLSPort != 0) {
			first = i
		}
	}
	if first < 0 || !p.Certificates.Loaded() && files.Cert == "" && ports.TLSPort == 0 {
		return nil
	}
	if err := p.Certificates.Use(files.Files()); err != nil {
		return changes[first].Refuse(engine.Error("Unable to update TLS configuration: " + err.Error()))
	}
	return nil
}
