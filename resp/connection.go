package resp

import (
	"rlserver/engine"
	"rlserver/internal/acl"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

func init() {
	const handshake = command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth |
		command.AllowBusy
	command.Register("connection",
		&command.Command{Name: "auth", Arity: -2, Flags: handshake, Run: auth},
		&command.Command{Name: "echo", Arity: 2, Flags: command.Loading | command.Stale | command.Fast, Run: echo},
		&command.Command{Name: "hello", Arity: -1, Flags: handshake, Run: hello},
		&command.Command{Name: "ping", Arity: -1, Flags: command.Fast | command.Health | command.WhileSubscribed,
			Run: ping},
		&command.Command{Name: "quit", Arity: -1, Flags: handshake | command.Immediate | command.WhileSubscribed,
			Run: quit},
		&command.Command{Name: "reset", Arity: 1, Flags: handshake | command.Immediate | command.WhileSubscribed,
			Run: reset},
		&command.Command{Name: "select", Arity: 2, Flags: command.Loading | command.Stale | command.Fast,
			Refused: selectRefused, Run: selectDatabase},
	)
}

const (
	errSelect     = engine.Error("ERR SELECT is not allowed in cluster mode")
	errNoPassword = engine.Error("ERR AUTH <password> called without any password configured for the default user. " +
		"Are you sure your configuration is correct?")
	errWrongPass      = engine.Error("WRONGPASS invalid username-password pair or user is disabled.")
	errNoProto        = engine.Error("NOPROTO unsupported protocol version")
	errProtoNumber    = engine.Error("ERR Protocol version is not an integer or out of range")
	errClientName     = engine.Error("ERR Client names cannot contain spaces, newlines or special characters.")
	errLongClientName = engine.Error("ERR Client names must not be longer than 65536 bytes.")
	errHelloNoAuth    = engine.Error("NOAUTH HELLO must be called with the client already authenticated, otherwise " +
		"the HELLO AUTH <user> <pass> " +
		"option can be used to authenticate the client and select the RESP protocol version at the same time")
)

func auth(c *command.Call) error {
	s := sessionOf(c)
	user := []byte(acl.Default)
	switch given := c.Args.Left(); {
	case given == 2:
		user = c.Args.Next()
	case given == 1 && s.server.Users.Default().User().NoPassword():
		c.Args.Fail(errNoPassword)
	}
	password := c.Args.Next()
	if err := c.Args.End(); err != nil {
		return err
	}

	return c.ReplyOK(s.login(user, password))
}

func echo(c *command.Call) error {
	c.Reply.Bulk(c.Args.Next())
	return nil
}

func ping(c *command.Call) error {
	switch c.Args.Left() {
	case 0:
		if inSubscriberMode(c) {
			c.Reply.BulkString("")
		} else {
			c.Reply.Status("PONG")
		}
	case 1:
		inSubscriberMode(c)
		c.Reply.Bulk(c.Args.Next())
	default:
		return c.WrongArity()
	}
	return nil
}

// inSubscriberMode reports whether the client has subscribed to something, in RESP2. If so, it
// begins the reply that PING then has. Scripts get replies of RESP2 also for a client with RESP3.
func inSubscriberMode(c *command.Call) bool {
	if c.Reply.RESP3 || c.InScript || !sessionOf(c).messages.Subscribed() {
		return false
	}
	c.Reply.Array(2)
	c.Reply.BulkString("pong")
	return true
}

// quit has the connection close after the reply.
func quit(c *command.Call) error {
	sessionOf(c).closing = true
	return c.ReplyOK(nil)
}

// reset handles RESET: it returns the session to the state of a new connection.
func reset(c *command.Call) error {
	s := sessionOf(c)
	s.messages.Reset()
	s.selectDatabase(0)
	s.setProtocol(2)
	s.logout()
	s.profile.name.Store(nil)
	s.Tracked.Off()
	s.setMonitoring(false)
	c.NoTouch = false
	if s.replyMode != replySkipThis { // as in Redis, SKIP drops the reply of RESET too
		s.replyMode = replyOn
	}
	s.transaction = transaction{}
	s.unwatch()

	c.Reply.Status("RESET")
	return nil
}

// selectRefused refuses databases other than 0 in a cluster, as Redis does.
func selectRefused(words [][]byte) error {
	if n, ok := grammar.ParseInt(words[1]); ok && n != 0 {
		return errSelect
	}
	return nil
}

func selectDatabase(c *command.Call) error {
	index := c.Database()
	if err := c.Args.End(); err != nil {
		return err
	}

	if c.InScript { // it is the database of the script, until its end
		c.DB = int(index)
	} else {
		sessionOf(c).selectDatabase(int(index))
	}

	return c.ReplyOK(nil)
}

// hello handles HELLO [protover [AUTH username password] [SETNAME clientname]]. As in Redis the
// options take effect one by one: an error does not undo those before it.
func hello(c *command.Call) error {
	s := sessionOf(c)
	version, err := parseProtocolVersion(&c.Args)
	if err != nil {
		return err
	}
	for c.Args.More() {
		switch {
		case c.Args.Left() > 2 && c.Args.Word("AUTH"):
			err = s.login(c.Args.Next(), c.Args.Next())
		case c.Args.Left() > 1 && c.Args.Word("SETNAME"):
			err = s.setName(c.Args.Next())
		default:
			err = engine.Errorf("ERR Syntax error in HELLO option '%.128s'", c.Args.Next())
		}
		if err != nil {
			return err
		}
	}

	if s.loginIfNotNeeded(); !s.authenticated {
		return errHelloNoAuth
	}
	if version != 0 {
		s.setProtocol(version)
	}

	writeHello(&c.Reply, s)
	return nil
}

// parseProtocolVersion parses the first argument of HELLO. 0: it is missing, and the protocol does
// not change.
func parseProtocolVersion(a *command.Args) (version int32, err error) {
	if !a.More() {
		return 0, nil
	}
	n := a.IntegerOr(errProtoNumber)
	if a.Err == nil && n != 2 && n != 3 {
		a.Fail(errNoProto)
	}
	return int32(n), a.Err
}

// setProtocol changes the protocol, beginning with the reply to this call.
func (s *session) setProtocol(version int32) {
	s.profile.resp.Store(version)
	s.Reply.RESP3 = version == 3
	s.messages.SetProtocol(version == 3)
}

func writeHello(r *wire.Reply, s *session) {
	command.Fields(r, "server", "redis", "version", command.RedisVersion, "proto", int64(s.profile.resp.Load()),
		"id", s.Client, "mode", s.Env.Mode, "role", "master", "modules", []string{})
}

// setName sets the name of the connection; an empty one removes it.
func (s *session) setName(name []byte) error {
	switch {
	case len(name) > command.MaxWordLen:
		return errLongClientName
	case !printable(name):
		return errClientName
	}
	s.profile.name.Store(nonEmpty(name))
	return nil
}

// printable reports whether text may be a field of CLIENT LIST, which is separated by spaces.
func printable(text []byte) bool {
	for _, b := range text {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}

func nonEmpty(text []byte) *string {
	if len(text) == 0 {
		return nil
	}
	s := string(text)
	return &s
}
