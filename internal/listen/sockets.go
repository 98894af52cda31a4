package listen

import (
	"context"
	"errors"
	"net"
	"slices"
	"syscall"
)

// Ports are where a server listens for clients by TCP.
type Ports struct {
	Bind    []string // addresses
	Port    int      // 0: none
	TLSPort int      // of clients with TLS; 0: none
}

// MaxAddresses is how many addresses of Bind may be set while a server runs, as in Redis.
const MaxAddresses = 16

// Socket is a listener at one address of Ports.
type Socket struct {
	net.Listener
	TLS bool // its clients speak TLS

	at place
}

// places returns the sockets of p, which are not open.
func (p Ports) places() (list []Socket) {
	for _, port := range []Socket{{at: place{port: p.Port}}, {at: place{port: p.TLSPort}, TLS: true}} {
		if port.at.port == 0 {
			continue
		}
		for _, address := range p.Bind {
			list = append(list, Socket{TLS: port.TLS, at: parse(address, port.at.port)})
		}
	}
	return list
}

// Sockets are the open sockets of Ports. It is not safe for concurrent use.
type Sockets struct{ open []Socket }

// Open opens the sockets of ports. Each port needs at least one address that this machine has.
func Open(p Ports) (*Sockets, error) {
	s := new(Sockets)
	c := s.Change(context.Background(), p)
	if c.Err != nil {
		CloseAll(c.opened)
		return nil, c.Err
	}
	for _, missing := range p.places() { // none if Bind is empty
		if !slices.ContainsFunc(c.after, func(open Socket) bool { return open.TLS == missing.TLS }) {
			CloseAll(c.opened)
			return nil, errNoAddress("--bind")
		}
	}
	c.Commit()
	return s, nil
}

// Change is an exchange of sockets. It ends with Commit or Undo.
type Change struct {
	of     *Sockets
	after  []Socket // those of the new ports
	opened []Socket // of after, those that are new
	closed []Socket // those that had to be closed already
	Err    error    // why the new ports cannot be used
}

// Change opens the sockets of ports that s does not have. The context limits lookups of host names.
func (s *Sockets) Change(ctx context.Context, p Ports) *Change {
	c := &Change{of: s}
	wanted, before := p.places(), slices.Clone(s.open)
	for i := range wanted {
		same := func(old Socket) bool { return old.at.sameAs(wanted[i].at) && old.TLS == wanted[i].TLS }
		if at := slices.IndexFunc(before, same); at >= 0 {
			wanted[i] = before[at]
			before = slices.Delete(before, at, at+1)
		}
	}
	for _, socket := range wanted {
		if socket.Listener == nil {
			ln, err := socket.at.open(ctx)
			if errors.Is(err, syscall.EADDRINUSE) && c.makeRoom(before, socket.at.port) {
				ln, err = socket.at.open(ctx)
			}
			if err != nil {
				c.Err = err
				return c
			}
			if ln == nil {
				continue
			}
			socket.Listener = ln
			c.opened = append(c.opened, socket)
		}
		c.after = append(c.after, socket)
	}
	return c
}

// makeRoom closes old sockets of a port, and reports whether there was one.
func (c *Change) makeRoom(old []Socket, port int) bool {
	before := len(c.closed)
	for _, socket := range old {
		if socket.at.port == port && !slices.Contains(c.closed, socket) {
			socket.Close()
			c.closed = append(c.closed, socket)
		}
	}
	return len(c.closed) > before
}

// Commit closes the sockets that are not needed any more. It returns the new ones, and those that
// were closed.
func (c *Change) Commit() (opened, closed []Socket) {
	for _, socket := range c.of.open {
		if !slices.Contains(c.after, socket) {
			socket.Close()
			closed = append(closed, socket)
		}
	}
	c.of.open = c.after
	return c.opened, closed
}

// Undo closes the new sockets, and opens those again that had to be closed. It returns them as they
// are now, and as they were. The error is that of those that cannot be opened again.
func (c *Change) Undo() (opened, closed []Socket, err error) {
	CloseAll(c.opened)
	for _, socket := range c.closed {
		at := slices.Index(c.of.open, socket)
		again, failed := socket.at.open(context.Background())
		if again == nil {
			err = errors.Join(err, failed)
			c.of.open = slices.Delete(c.of.open, at, at+1)
			continue
		}
		c.of.open[at].Listener = again
		opened = append(opened, c.of.open[at])
	}
	return opened, c.closed, err
}

// All returns the open sockets.
func (s *Sockets) All() []Socket { return slices.Clone(s.open) }
