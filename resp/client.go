package resp

import (
	"rlserver/engine"
	"rlserver/internal/grammar"
	"rlserver/resp/clientfilter"
	"rlserver/resp/command"
	"rlserver/resp/commands/caching"
	"rlserver/resp/waitqueue"
)

func init() {
	const own = command.NoScript | command.Loading | command.Stale
	command.Register("connection",
		&command.Command{Name: "client", Arity: -2, Subs: append(caching.Commands(), []*command.Command{
			{Name: "getname", Arity: 2, Flags: own, Run: clientGetName},
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
			{Name: "unblock", Arity: -3, Flags: command.Admin | own, Run: clientUnblock},
			{Name: "unpause", Arity: 2, Flags: command.Admin | own, Run: clientUnpause},
		}...)},
	)
}

const (
	errNoSuchClient  = engine.Error("ERR No such client")
	errUnblockReason = engine.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
)

func clientID(c *command.Call) error {
	return c.ReplyInteger(c.Client, nil)
}

func clientGetName(c *command.Call) error {
	if name := sessionOf(c).profile.name.Load(); name != nil {
		c.Reply.BulkString(*name)
	} else {
		c.Reply.Null()
	}
	return nil
}

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
		return engine.Errorf("ERR Unrecognized option '%.128s'", option)
	}
	if len(value) > command.MaxWordLen {
		return engine.Errorf("ERR %s must not be longer than %d bytes.", option, command.MaxWordLen)
	}
	if !printable(value) {
		return engine.Errorf("ERR %s cannot contain spaces, newlines or special characters.", option)
	}
	place.Store(nonEmpty(value))
	return c.ReplyOK(nil)
}

// clientNoEvict handles CLIENT NO-EVICT, which exempts the connection from maxmemory-clients.
func clientNoEvict(c *command.Call) error {
	s := sessionOf(c)
	on := c.Args.Either("ON", "OFF")
	if err := c.Args.End(); err != nil {
		return err
	}
	s.profile.noEvict.Store(on)
	s.choosePool()
	return c.ReplyOK(nil)
}

// clientNoTouch handles CLIENT NO-TOUCH: lookups of the connection do not update access times.
func clientNoTouch(c *command.Call) error {
	on := c.Args.Either("ON", "OFF")
	if err := c.Args.End(); err != nil {
		return err
	}
	c.NoTouch = on
	return c.ReplyOK(nil)
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

	return c.ReplyFlag(unblocked, nil)
}
