package resp

import (
	"slices"

	"rlserver/internal/acl"
	"rlserver/resp/clientfilter"
	"rlserver/resp/command"
)

// clientKill handles CLIENT KILL ip:port, and CLIENT KILL with options, all of which must match.
func clientKill(c *command.Call) error {
	if c.Args.Left() == 1 {
		wanted := clientfilter.Filter{Address: string(c.Args.Next())}
		if kill(c, wanted) == 0 {
			return errNoSuchClient
		}
		return c.ReplyOK(nil)
	}
	wanted := clientfilter.Parse(c, clientfilter.ErrIDRange, 1)
	if wanted.SkipMe != clientfilter.No {
		wanted.Skip = c.Client
	}
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

// filtered is a session as a filter sees it.
type filtered struct{ *session }

// These implement clientfilter.Client.

func (f filtered) ID() int64             { return f.Client }
func (f filtered) Account() *acl.Account { return f.profile.account.Load() }
func (f filtered) Age() int64            { return (f.server.elapsed() - f.created) / 1000 }
func (f filtered) LocalAddress() string  { return f.localAddress() }
func (f filtered) Subscribed() bool      { return f.guard.Subscribed() }
