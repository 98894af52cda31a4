package resp

import (
	"fmt"

	"rlserver/engine"
	"rlserver/internal/grammar"
	"rlserver/resp/clientfilter"
	"rlserver/resp/command"
	"rlserver/resp/waitqueue"
)

func init() {
	const own = command.NoScript | command.Loading | command.Stale
	command.Register("connection",
		&command.Command{Name: "client", Arity: -2, Subs: []*command.Command{
			{Name: "caching", Arity: 3, Flags: own, Run: clientCaching},
			{Name: "getname", Arity: 2, Flags: own, Run: clientGetName},
			{Name: "getredir", Arity: 2, Flags: own, Run: clientGetRedir},
			command.HelpSince("5.0.0"),
			{Name: "id", Arity: 2, Flags: own, Run: clientID},
			{Name: "info", Arity: 2, Flags: own, Run: clientInfo},
			{Name: "kill", Arity: -3, Flags: command.Admin | own,
				Syntax: "<ip:port | [ID client-id [client-id ...]] " +
					"[TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] " + clientfilter.Syntax + ">",
				Run: clientKill},
			{Name: "list", Arity: -2, Flags: command.Admin | own,
				Syntax: "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]] " +
					clientfilter.Syntax, Run: clientList},
			{Name: "no-evict", Arity: 3, Flags: command.Admin | own, Run: clientNoEvict},
			{Name: "no-touch", Arity: 3, Flags: own, Since: "7.2.0", Complexity: "O(1)", Syntax: "<ON | OFF>",
				Summary: "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.",
				Run:     clientNoTouch},
			{Name: "pause", Arity: -3, Flags: command.Admin | own, Run: clientPause},
			{Name: "reply", Arity: 3, Flags: own, Run: clientReply},
			{Name: "setinfo", Arity: 4, Flags: own, Since: "7.2.0", Complexity: "O(1)",
				Syntax:  "<LIB-NAME libname | LIB-VER libver>",
				Summary: "Sets information specific to the client or connection.", Run: clientSetInfo},
			{Name: "setname", Arity: 3, Flags: own, Run: clientSetName},
			{Name: "tracking", Arity: -3, Flags: own, Syntax: "<ON | OFF> [OPTIN] [NOLOOP]", Run: clientTracking},
			{Name: "trackinginfo", Arity: 2, Flags: own, Run: clientTrackingInfo},
			{Name: "unblock", Arity: -3, Flags: command.Admin | own, Run: clientUnblock},
			{Name: "unpause", Arity: 2, Flags: command.Admin | own, Run: clientUnpause},
		}},
	)
}

const (
	errNoSuchClient = engine.Error("ERR No such client")
	errNotTracking  = engine.Error("ERR CLIENT CACHING can be called only when the client is in tracking mode with " +
		"OPTIN or OPTOUT mode enabled")
	errNotOptOut     = engine.Error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	errNoCaching     = engine.Error("ERR this server does not track keys: replies must not be cached by the client")
	errNoRedirect    = engine.Error("ERR The client ID you want redirect to does not exist")
	errUnblockReason = engine.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	errOnlyOptIn     = engine.Error("ERR this server does not track keys: CLIENT TRACKING ON is accepted only " +
		"with OPTIN, and CLIENT CACHING YES is refused")
)

// clientID handles CLIENT ID.
func clientID(c *command.Call) error {
	c.Reply.Integer(c.Client)
	return nil
}

// clientGetName handles CLIENT GETNAME.
func clientGetName(c *command.Call) error {
	if name := sessionOf(c).profile.name.Load(); name != nil {
		c.Reply.BulkString(*name)
	} else {
		c.Reply.Null()
	}
	return nil
}

// clientSetName handles CLIENT SETNAME connection-name.
func clientSetName(c *command.Call) error {
	return c.ReplyOK(sessionOf(c).setName(c.Args.Next()))
}

// clientSetInfo handles CLIENT SETINFO LIB-NAME libname and CLIENT SETINFO LIB-VER libver.
func clientSetInfo(c *command.Call) error {
	s := sessionOf(c)
	option, value := c.Args.Next(), c.Args.Next()
	place := &s.profile.library
	switch {
	case grammar.EqualFold(option, "LIB-NAME"):
	case grammar.EqualFold(option, "LIB-VER"):
		place = &s.profile.version
	default:
		return engine.Error(fmt.Sprintf("ERR Unrecognized option '%.128s'", option))
	}
	if len(value) > command.MaxWordLen {
		return engine.Error(fmt.Sprintf("ERR %s must not be longer than %d bytes.", option, command.MaxWordLen))
	}
	if !printable(value) {
		return engine.Error(fmt.Sprintf("ERR %s cannot contain spaces, newlines or special characters.", option))
	}
	place.Store(nonEmpty(value))
	c.Reply.OK()
	return nil
}

// clientNoEvict handles CLIENT NO-EVICT, which exempts the connection from maxmemory-clients.
func clientNoEvict(c *command.Call) error {
	s := sessionOf(c)
	on := parseOnOff(&c.Args)
	if err := c.Args.End(); err != nil {
		return err
	}
	s.profile.noEvict.Store(on)
	s.choosePool()
	c.Reply.OK()
	return nil
}

// clientNoTouch handles CLIENT NO-TOUCH: lookups of the connection do not update access times.
func clientNoTouch(c *command.Call) error {
	on := parseOnOff(&c.Args)
	if err := c.Args.End(); err != nil {
		return err
	}
	c.NoTouch = on
	c.Reply.OK()
	return nil
}

// parseOnOff parses ON or OFF.
func parseOnOff(a *command.Args) (on bool) {
	if a.Word("ON") {
		return true
	}
	if !a.Word("OFF") {
		a.Fail(engine.ErrSyntax)
	}
	return false
}

// clientReply handles CLIENT REPLY <ON | OFF | SKIP>. Only ON has a reply itself.
func clientReply(c *command.Call) error {
	s := sessionOf(c)
	switch {
	case c.Args.Word("ON"):
		s.replyMode = replyOn
		c.Reply.OK()
	case c.Args.Word("OFF"):
		s.replyMode = replyOff
	case c.Args.Word("SKIP"):
		if s.replyMode != replyOff {
			s.replyMode = replySkipNext
		}
	default:
		return engine.ErrSyntax
	}
	return nil
}

// clientUnblock handles CLIENT UNBLOCK client-id [TIMEOUT | ERROR].
func clientUnblock(c *command.Call) error {
	text, how := c.Args.Next(), waitqueue.TimedOut
	if c.Args.More() && !c.Args.Word("TIMEOUT") {
		if how = waitqueue.Cancelled; c.Args.Left() > 1 || !c.Args.Word("ERROR") {
			c.Args.Fail(errUnblockReason)
		}
	}
	id, ok := grammar.ParseInt(text)
	if !ok {
		c.Args.Fail(engine.ErrNotInteger)
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	unblocked := false
	for _, s := range sessionOf(c).server.findClients(clientfilter.Filter{IDs: []int64{id}}) {
		w := s.waiter.Load()
		unblocked = w != nil && w.Unblock(how) || w == nil && s.unblockElsewhere(how, sessionOf(c))
	}

	c.Reply.Flag(unblocked)
	return nil
}

// clientTracking handles CLIENT TRACKING <ON | OFF> [OPTIN] [NOLOOP]. Some clients send ON OPTIN on
// every connection. OPTIN tracks only keys that are read after CLIENT CACHING YES, which this
// server refuses: so it never has to track a key.
func clientTracking(c *command.Call) error {
	s := sessionOf(c)
	on := parseOnOff(&c.Args)
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
			parseRedirection(&c.Args, s.server)
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

// parseRedirection parses the id of a client that exists.
func parseRedirection(a *command.Args, s *Server) {
	id := a.Integer()
	if a.Err == nil && len(s.findClients(clientfilter.Filter{IDs: []int64{id}})) == 0 {
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
