// Package caching has the calls of CLIENT by which clients keep copies of values: CLIENT TRACKING
// and those about it. What clients have read is in package rlserver/resp/tracking.
package caching

import (
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/tracking"
)

const flags = command.NoScript | command.Loading | command.Stale

// Commands returns the declarations, subcommands of CLIENT.
func Commands() []*command.Command {
	return []*command.Command{
		{Name: "caching", Arity: 3, Flags: flags, Run: caching},
		{Name: "getredir", Arity: 2, Flags: flags, Run: redirection},
		{Name: "tracking", Arity: -3, Flags: flags, Run: track},
		{Name: "trackinginfo", Arity: 2, Flags: flags, Run: info},
	}
}

const (
	errNotTracking = engine.Error("ERR CLIENT CACHING can be called only when the client is in tracking mode with " +
		"OPTIN or OPTOUT mode enabled")
	errNotOptIn   = engine.Error("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
	errNotOptOut  = engine.Error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	errNoRedirect = engine.Error("ERR The client ID you want redirect to does not exist")
	errTwoTargets = engine.Error("ERR A client can only redirect to a single other client")
)

func track(c *command.Call) error {
	on, off := c.Args.Word("ON"), false
	if !on {
		off = c.Args.Word("OFF")
	}
	if !on && !off {
		c.Args.Next() // as in Redis, the options are checked first
	}
	m := options(c)
	if !on && !off {
		c.Args.Fail(engine.ErrSyntax)
	}
	if err := c.Args.End(); err != nil {
		return err
	}
	if off {
		c.Tracked.Off()
	} else if err := c.Conn.Track().Set(m); err != nil {
		return err
	}
	return c.ReplyOK(nil)
}

func options(c *command.Call) (m tracking.Mode) {
	a := &c.Args
	for a.More() {
		switch {
		case a.Word("OPTIN"):
			m.OptIn = true
		case a.Word("OPTOUT"):
			m.OptOut = true
		case a.Word("NOLOOP"):
			m.NoLoop = true
		case a.Word("BCAST"):
			m.Broadcast = true
		case a.Left() > 1 && a.Word("PREFIX"):
			m.Prefixes = append(m.Prefixes, string(a.Next()))
		case a.Left() > 1 && a.Word("REDIRECT"):
			if m.Redirect != 0 {
				a.Fail(errTwoTargets)
			}
			m.Redirect = a.Integer()
			if a.Err == nil && c.Env.Tracking.Find(m.Redirect) == nil {
				a.Fail(errNoRedirect)
			}
		default:
			a.Fail(engine.ErrSyntax)
			a.Rest()
		}
	}
	return m
}

func caching(c *command.Call) error {
	m := c.Tracked.Mode()
	switch {
	case m == nil:
		return errNotTracking
	case c.Args.Word("YES"):
		if !m.OptIn {
			return errNotOptIn
		}
	case c.Args.Word("NO"):
		if !m.OptOut {
			return errNotOptOut
		}
	default:
		return engine.ErrSyntax
	}
	c.Tracked.Caching = true
	return c.ReplyOK(nil)
}

func redirection(c *command.Call) error {
	return c.ReplyInteger(c.Tracked.Redirection(), nil)
}

func info(c *command.Call) error {
	flags := c.Tracked.Flags()
	var prefixes []string
	if m := c.Tracked.Mode(); m != nil {
		prefixes = m.Prefixes
	}
	command.Fields(&c.Reply, "flags", func() {
		c.Reply.Set(len(flags))
		for _, flag := range flags {
			c.Reply.BulkString(flag)
		}
	}, "redirect", c.Tracked.Redirection(), "prefixes", prefixes)
	return nil
}
