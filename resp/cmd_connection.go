package resp

import (
	"fmt"

	"rlserver/engine"
)

func init() {
	register(
		&command{name: "auth", arity: -2, flags: noScript | loading | stale | fast | noAuth | allowBusy,
			syntax: "[username] password", group: "connection", since: "1.0.0",
			complexity: "O(N) where N is the number of passwords defined for the user",
			summary:    "Authenticate to the server",
			run:        auth},
		&command{name: "echo", arity: 2, flags: loading | stale | fast,
			syntax: "message", group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Echo the given string",
			run:     echo},
		&command{name: "hello", arity: -1, flags: noScript | loading | stale | fast | noAuth | allowBusy,
			syntax: "[protover [AUTH username password] [SETNAME clientname]]", group: "connection", since: "6.0.0", complexity: "O(1)",
			summary: "Handshake with Redis",
			run:     hello},
		&command{name: "ping", arity: -1, flags: fast | health, tips: "request_policy:all_shards response_policy:all_succeeded",
			syntax: "[message]", group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Ping the server",
			run:     ping},
		&command{name: "quit", arity: -1, flags: allowBusy | noScript | loading | stale | fast | noAuth | immediate,
			group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Close the connection",
			run:     quit},
		&command{name: "reset", arity: 1, flags: noScript | loading | stale | fast | noAuth | allowBusy | immediate,
			group: "connection", since: "6.2.0", complexity: "O(1)",
			summary: "Reset the connection",
			run:     reset},
		&command{name: "select", arity: 2, flags: loading | stale | fast,
			syntax: "index", group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Change the selected database for the current connection",
			run:     selectDatabase},
	)
}

// redisVersion is the version of Redis whose commands are spoken here, as HELLO and INFO tell it: clients choose by it what they send.
const redisVersion = "7.0.15"

// defaultUser is the only user there is.
const defaultUser = "default"

const (
	errNoPassword = engine.Error("ERR AUTH <password> called without any password configured for the default user. " +
		"Are you sure your configuration is correct?")
	errWrongPass      = engine.Error("WRONGPASS invalid username-password pair or user is disabled.")
	errNoProto        = engine.Error("NOPROTO unsupported protocol version")
	errProtoNumber    = engine.Error("ERR Protocol version is not an integer or out of range")
	errClientName     = engine.Error("ERR Client names cannot contain spaces, newlines or special characters.")
	errLongClientName = engine.Error("ERR Client names must not be longer than 65536 bytes.")
	errHelloNoAuth    = engine.Error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> " +
		"option can be used to authenticate the client and select the RESP protocol version at the same time")
)

// auth handles AUTH [username] password.
func auth(c *call) error {
	s := sessionOf(c)
	user := []byte(defaultUser)
	switch given := c.args.left(); {
	case given == 2:
		user = c.args.next()
	case given == 1 && s.server.settings.Password() == "":
		c.args.fail(errNoPassword)
	}
	password := c.args.next()
	if err := c.args.end(); err != nil {
		return err
	}

	if err := s.login(user, password); err != nil {
		return err
	}

	c.reply.ok()
	return nil
}

// login authenticates the session. Without a password configured any will do, as in Redis.
func (s *session) login(user, password []byte) error {
	if string(user) != defaultUser || s.server.settings.Password() != "" && !s.server.passwordIs(password) {
		s.loginFailed()
		return errWrongPass
	}
	s.failedLogins = 0
	s.authenticate(true)
	return nil
}

func echo(c *call) error {
	c.reply.bulk(c.args.next())
	return nil
}

// ping handles PING [message].
func ping(c *call) error {
	switch c.args.left() {
	case 0:
		c.reply.status("PONG")
	case 1:
		c.reply.bulk(c.args.next())
	default:
		return c.wrongArity()
	}
	return nil
}

func quit(c *call) error {
	sessionOf(c).closing = true
	c.reply.ok()
	return nil
}

// reset makes the session as it was when the client connected.
func reset(c *call) error {
	s := sessionOf(c)
	s.use(0)
	s.speak(2)
	s.profile.noEvict.Store(false)
	s.authenticate(s.server.settings.Password() == "")
	s.profile.name.Store(nil)
	s.profile.tracking.Store(false)
	c.tx.Aloof = false
	s.silence = speak
	s.transaction = transaction{}
	s.unwatch()

	c.reply.status("RESET")
	return nil
}

// selectDatabase handles SELECT index.
func selectDatabase(c *call) error {
	index := c.database()
	if err := c.args.end(); err != nil {
		return err
	}

	sessionOf(c).use(int(index))

	c.reply.ok()
	return nil
}

// hello handles HELLO [protover [AUTH username password] [SETNAME clientname]]. As in Redis the options take effect one by one:
// a wrong one leaves what those before it did.
func hello(c *call) error {
	s := sessionOf(c)
	version, err := c.args.protocolVersion()
	if err != nil {
		return err
	}
	for c.args.more() {
		switch {
		case c.args.left() > 2 && c.args.word("AUTH"):
			err = s.login(c.args.next(), c.args.next())
		case c.args.left() > 1 && c.args.word("SETNAME"):
			err = s.setName(c.args.next())
		default:
			err = engine.Error(fmt.Sprintf("ERR Syntax error in HELLO option '%.128s'", c.args.next()))
		}
		if err != nil {
			return err
		}
	}

	if !s.authenticated && !s.free() {
		return errHelloNoAuth
	}
	if version != 0 {
		s.speak(version)
	}

	c.reply.greeting(s)
	return nil
}

// protocolVersion takes the first argument of HELLO; 0 means that there is none, and the protocol stays.
func (a *args) protocolVersion() (version int32, err error) {
	if !a.more() {
		return 0, nil
	}
	n := a.integerOr(errProtoNumber)
	if a.err == nil && n != 2 && n != 3 {
		a.fail(errNoProto)
	}
	return int32(n), a.err
}

// speak changes the protocol, beginning with the reply to this call.
func (s *session) speak(version int32) {
	s.profile.resp.Store(version)
	s.reply.resp3 = version == 3
}

func (r *reply) greeting(s *session) {
	r.mapping(7)
	r.bulkString("server")
	r.bulkString("redis")
	r.bulkString("version")
	r.bulkString(redisVersion)
	r.bulkString("proto")
	r.integer(int64(s.profile.resp.Load()))
	r.bulkString("id")
	r.integer(s.client)
	r.bulkString("mode")
	r.bulkString("standalone")
	r.bulkString("role")
	r.bulkString("master")
	r.bulkString("modules")
	r.array(0)
}

// setName gives the connection a name; an empty one takes it away.
func (s *session) setName(name []byte) error {
	switch {
	case len(name) > longestWord:
		return errLongClientName
	case !printable(name):
		return errClientName
	}
	s.profile.name.Store(nonEmpty(name))
	return nil
}

// printable tells whether text may stand in a line of CLIENT LIST, whose fields are told apart by spaces.
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
