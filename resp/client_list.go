package resp

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"rlserver/internal/acl"
	"rlserver/resp/clientfilter"
	"rlserver/resp/clientmem"
	"rlserver/resp/command"
)

func clientInfo(c *command.Call) error {
	c.Reply.Verbatim(sessionOf(c).Describe() + "\n")
	return nil
}

// clientList handles CLIENT LIST. A client is listed if all options match.
func clientList(c *command.Call) error {
	wanted := clientfilter.Parse(c, clientfilter.ErrIDList, math.MinInt64, false)
	if err := c.Args.End(); err != nil {
		return err
	}

	var text strings.Builder
	for _, s := range sessionOf(c).server.findClients(wanted) {
		text.WriteString(s.Describe())
		text.WriteByte('\n')
	}

	c.Reply.Verbatim(text.String())
	return nil
}

// describe returns the session's line of CLIENT LIST, with the fields of Redis that apply here. Any
// goroutine may call it.
func (s *session) Describe() string {
	p, now := &s.profile, s.server.elapsed()
	subs, last := s.messages.Counts(), "NULL"
	if c := p.command.Load(); c != nil {
		last = c.FullName()
	}
	h, qbuf, events := &s.guard.Memory, s.guard.Queued.Load(), "r"
	part := h.Part
	if part(clientmem.Output) > 0 {
		events = "rw"
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=%d name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=%d "+
		"multi=%d ",
		s.Client, s.Address(), s.localAddress(), s.descriptor(), textOf(&p.name), (now-s.created)/1000,
		(now-p.active.Load())/1000, s.flagLetters(), p.database.Load(), subs[0], subs[1], subs[2],
		p.queued.Load()-1) +
		fmt.Sprintf("qbuf=%d qbuf-free=%d argv-mem=%d multi-mem=%d rbs=%d rbp=%d obl=0 oll=%d omem=%d tot-mem=%d ",
			qbuf, max(0, part(clientmem.Input)-qbuf), part(clientmem.Args), part(clientmem.Transaction),
			part(clientmem.Reply), p.largest.Load(), h.Chunks.Load(), part(clientmem.Output),
			s.size()+h.Total()) +
		fmt.Sprintf("events=%s cmd=%s user=%s redir=%d resp=%d lib-name=%s lib-ver=%s", events, last,
			p.account.Load().Name(), p.tracking.Load().Redirection(), p.resp.Load(), textOf(&p.library),
			textOf(&p.version))
}

// flagLetters returns the letters of Redis: O in MONITOR, P subscribed, x within MULTI, b blocked,
// those of tracking, U on a Unix socket, e exempt from eviction, N none of these.
func (s *session) flagLetters() (letters string) {
	if s.profile.monitors.Load() {
		letters += "O"
	}
	if s.guard.Subscribed() {
		letters += "P"
	}
	if s.profile.queued.Load() > 0 {
		letters += "x"
	}
	if s.waiter.Load() != nil || s.profile.paused.Load() {
		letters += "b"
	}
	letters += s.profile.tracking.Load().Letters()
	if _, unix := s.guard.LocalAddr().(*net.UnixAddr); unix {
		letters += "U"
	}
	if s.profile.noEvict.Load() {
		letters += "e"
	}
	return cmp.Or(letters, "N")
}

func textOf(p *atomic.Pointer[string]) string {
	if text := p.Load(); text != nil {
		return *text
	}
	return ""
}

// remoteAddress returns the client's address in the format of Redis. For a Unix socket it is the
// path of the socket and port 0, on both sides.
func (s *session) Address() string {
	return addressText(s.guard.RemoteAddr(), s.guard.LocalAddr())
}

// localAddress returns the address that the client has connected to.
func (s *session) localAddress() string { return addressText(s.guard.LocalAddr(), s.guard.LocalAddr()) }

func addressText(of, local net.Addr) string {
	if unix, ok := local.(*net.UnixAddr); ok {
		return unix.Name + ":0"
	}
	return of.String()
}

// descriptor returns the file descriptor of the socket, or -1.
func (s *session) descriptor() (fd int) {
	fd = -1
	if socket, ok := s.guard.Conn.(syscall.Conn); ok {
		if raw, err := socket.SyscallConn(); err == nil {
			raw.Control(func(n uintptr) { fd = int(n) })
		}
	}
	return fd
}

// clientKill handles CLIENT KILL ip:port, and CLIENT KILL with options, all of which must match.
func clientKill(c *command.Call) error {
	if c.Args.Left() == 1 {
		wanted := clientfilter.Filter{Address: string(c.Args.Next())}
		if kill(c, wanted) == 0 {
			return errNoSuchClient
		}
		return c.ReplyOK(nil)
	}
	wanted := clientfilter.Parse(c, clientfilter.ErrIDRange, 1, true)
	if err := c.Args.End(); err != nil {
		return err
	}

	return c.ReplyCount(kill(c, wanted), nil)
}

// kill closes the connections of the clients that match and returns their number. The caller's own
// connection closes after its reply.
func kill(c *command.Call, wanted clientfilter.Filter) (killed int) {
	for _, s := range sessionOf(c).server.findClients(wanted) {
		killed++
		s.close(sessionOf(c))
	}
	return killed
}

// close closes the connection of a client on behalf of another one. If both are the same, the
// connection closes after the reply.
func (s *session) close(by *session) {
	s.profile.killed.Store(true)
	if s == by {
		s.closing = true
	} else {
		s.messages.Close()
		s.guard.Conn.Close() // ends its Read and its Write
	}
}

// findClients returns the clients that a filter selects, oldest first.
func (s *Server) findClients(f clientfilter.Filter) (found []*session) {
	s.each(func(ss *session) {
		if !ss.profile.killed.Load() && !ss.isForNode() && f.Matches(filtered{ss}) {
			found = append(found, ss)
		}
	})
	slices.SortFunc(found, func(a, b *session) int { return int(a.Client - b.Client) })
	return found
}

type filtered struct{ *session }

// These implement clientfilter.Client.

func (f filtered) ID() int64             { return f.Client }
func (f filtered) Account() *acl.Account { return f.profile.account.Load() }
func (f filtered) Age() int64            { return (f.server.elapsed() - f.created) / 1000 }
func (f filtered) LocalAddress() string  { return f.localAddress() }
func (f filtered) Subscribed() bool      { return f.guard.Subscribed() }
