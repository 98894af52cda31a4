package resp

import "rlserver/resp/command"

// clientKill handles CLIENT KILL ip:port, and CLIENT KILL with options, all of which must match.
func clientKill(c *command.Call) error {
	if c.Args.Left() == 1 {
		wanted := clientFilter{addr: string(c.Args.Next())}
		if kill(c, wanted) == 0 {
			return errNoSuchClient
		}
		c.Reply.OK()
		return nil
	}
	wanted := parseClientFilter(c, errClientIDRange, 1)
	if wanted.skipMe != no {
		wanted.skip = c.Client
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	killed := kill(c, wanted)

	c.Reply.Count(killed)
	return nil
}

// kill closes the connections of the clients that match and returns their number. The caller's own
// connection closes after its reply.
func kill(c *command.Call, wanted clientFilter) (killed int) {
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
