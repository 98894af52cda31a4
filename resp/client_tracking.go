package resp

import (
	"rlserver/engine"
	"rlserver/resp/command"
)

// clientTracking handles CLIENT TRACKING <ON | OFF> [OPTIN] [NOLOOP]. Some clients send ON OPTIN on
// every connection. OPTIN tracks only keys that are read after CLIENT CACHING YES, which this
// server refuses: so it never has to track a key.
func clientTracking(c *command.Call) error {
	s := sessionOf(c)
	on := takeOnOff(&c.Args)
	optin, declined := false, false
	for c.Args.More() {
		switch {
		case c.Args.Word("OPTIN"):
			optin = true
		case c.Args.Word("NOLOOP"):
		case c.Args.Word("OPTOUT"), c.Args.Word("BCAST"):
			declined = true
		case c.Args.Left() > 1 && c.Args.Word("PREFIX"):
			c.Args.Next()
			declined = true
		case c.Args.Left() > 1 && c.Args.Word("REDIRECT"):
			takeRedirection(&c.Args, s.server)
			declined = true
		default:
			c.Args.Fail(engine.ErrSyntax)
		}
	}
	if on && (declined || !optin) {
		c.Args.Fail(errOnlyOptIn)
	}
	if err := c.Args.End(); err != nil {
		return err
	}
	s.profile.tracking.Store(on)
	c.Reply.OK()
	return nil
}

// takeRedirection takes the id of a client that exists.
func takeRedirection(a *command.Args, s *Server) {
	id := a.Integer()
	if a.Err == nil && len(s.findClients(clientFilter{ids: []int64{id}})) == 0 {
		a.Fail(errNoRedirect)
	}
}

// clientCaching handles CLIENT CACHING <YES | NO>, which is always refused.
func clientCaching(c *command.Call) error {
	switch {
	case !sessionOf(c).profile.tracking.Load():
		return errNotTracking
	case c.Args.Word("YES"):
		return errNoCaching
	case c.Args.Word("NO"):
		return errNotOptOut
	}
	return engine.ErrSyntax
}

// redirection is the reply of CLIENT GETREDIR: -1 without tracking, 0 without redirection.
func (s *session) redirection() int64 {
	if s.profile.tracking.Load() {
		return 0
	}
	return -1
}

// clientGetRedir handles CLIENT GETREDIR.
func clientGetRedir(c *command.Call) error {
	c.Reply.Integer(sessionOf(c).redirection())
	return nil
}

// clientTrackingInfo handles CLIENT TRACKINGINFO.
func clientTrackingInfo(c *command.Call) error {
	s := sessionOf(c)
	c.Reply.Mapping(3)
	c.Reply.BulkString("flags")
	if s.profile.tracking.Load() {
		c.Reply.Set(2)
		c.Reply.BulkString("on")
		c.Reply.BulkString("optin")
	} else {
		c.Reply.Set(1)
		c.Reply.BulkString("off")
	}
	c.Reply.BulkString("redirect")
	c.Reply.Integer(s.redirection())
	c.Reply.BulkString("prefixes")
	c.Reply.Array(0)
	return nil
}
