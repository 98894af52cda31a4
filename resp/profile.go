package resp

import (
	"fmt"
	"net"
	"rlserver/resp/clientmem"
	"rlserver/resp/command"
	"rlserver/resp/config"
	"sync/atomic"
	"syscall"
	"time"
)

// profile is the part of a session that CLIENT LIST shows to others. Only its own session writes to it.
type profile struct {
	database atomic.Int32
	resp     atomic.Int32
	active   atomic.Int64 // elapsed ms at the last call
	calls    atomic.Int64 // commands executed, as of the last reply
	errors   atomic.Int64 // error replies, likewise
	batches  atomic.Int64 // in how many batches the commands came
	largest  atomic.Int64 // bytes of the largest reply, if it is one that counts
	queued   atomic.Int32 // commands in a transaction, and one more; 0 outside of one; likewise
	command  atomic.Pointer[command.Command]
	name     atomic.Pointer[string]
	library  atomic.Pointer[string]
	version  atomic.Pointer[string]
	noEvict  atomic.Bool
	tracking atomic.Bool
	killed   atomic.Bool // its end has begun: others see it no more
}

// show lets others see what the session does, be it refused; c is nil for no command. Loading is free, storing is not: in a batch little changes.
func (s *session) show(c *command.Command, elapsed time.Duration) {
	if now := elapsed.Milliseconds(); s.profile.active.Load() != now {
		s.profile.active.Store(now)
	}
	if s.profile.command.Load() != c {
		s.profile.command.Store(c)
	}
}

// use selects a database.
func (s *session) use(db int) {
	s.Db = db
	s.profile.database.Store(int32(db))
}

// describe is the session's line of CLIENT LIST, in the fields of Redis that mean something here. Any goroutine may ask.
func (s *session) describe() string {
	p, now := &s.profile, s.server.elapsed()
	last := "NULL"
	if c := p.command.Load(); c != nil {
		last = c.FullName()
	}
	h, qbuf, events := &s.guard.Held, s.guard.Queued.Load(), "r"
	part := func(part clientmem.HeldPart) int64 { return h.Parts[part].Load() }
	if part(clientmem.HeldOutput) > 0 {
		events = "rw"
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=%d name=%s age=%d idle=%d flags=%s db=%d sub=0 psub=0 ssub=0 multi=%d "+
		"qbuf=%d qbuf-free=%d argv-mem=%d multi-mem=%d rbs=%d rbp=%d obl=%d oll=%d omem=%d tot-mem=%d events=%s cmd=%s user=%s redir=%d resp=%d lib-name=%s lib-ver=%s",
		s.Client, s.peer(), s.here(), s.descriptor(), textOf(&p.name), (now-s.created)/1000, (now-p.active.Load())/1000, s.flagLetters(), p.database.Load(), p.queued.Load()-1,
		qbuf, max(0, part(clientmem.HeldInput)-qbuf), part(clientmem.HeldArgs), part(clientmem.HeldMulti), part(clientmem.HeldReply), p.largest.Load(), 0, h.Output.Load(), part(clientmem.HeldOutput), clientmem.ConnectionSize+h.Total(),
		events, last, defaultUser, s.redirection(), p.resp.Load(), textOf(&p.library), textOf(&p.version))
}

// flagLetters are those of Redis: x within MULTI, b blocked, t tracking, U on a Unix socket, e not to be evicted, N nothing of all this.
func (s *session) flagLetters() (letters string) {
	if s.profile.queued.Load() > 0 {
		letters += "x"
	}
	if s.waiter.Load() != nil {
		letters += "b"
	}
	if s.profile.tracking.Load() {
		letters += "t"
	}
	if _, unix := s.guard.LocalAddr().(*net.UnixAddr); unix {
		letters += "U"
	}
	if s.profile.noEvict.Load() {
		letters += "e"
	}
	return config.Or(letters, "N")
}

func textOf(p *atomic.Pointer[string]) string {
	if text := p.Load(); text != nil {
		return *text
	}
	return ""
}

// peer is the client's address as Redis writes it. Behind a Unix socket it is the socket's path and a port 0, on both sides.
func (s *session) peer() string { return addressText(s.guard.RemoteAddr(), s.guard.LocalAddr()) }

// here is the address that the client has connected to.
func (s *session) here() string { return addressText(s.guard.LocalAddr(), s.guard.LocalAddr()) }

func addressText(of, local net.Addr) string {
	if unix, ok := local.(*net.UnixAddr); ok {
		return unix.Name + ":0"
	}
	return of.String()
}

// descriptor is the number of the connection's socket; -1 if it is closed, or none.
func (s *session) descriptor() (fd int) {
	fd = -1
	if socket, ok := s.guard.Conn.(syscall.Conn); ok {
		if raw, err := socket.SyscallConn(); err == nil {
			raw.Control(func(n uintptr) { fd = int(n) })
		}
	}
	return fd
}
