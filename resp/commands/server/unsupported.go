package server

import (
	"rlserver/engine"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
)

func init() {
	replicaOf := func(name string) *command.Command {
		return &command.Command{Name: name, Arity: 3,
			Flags:   command.Admin | command.NoScript | command.Stale | command.NoAsyncLoading,
			Refused: command.NotInCluster(errReplicaOf), Run: replicateNothing}
	}
	command.Register("server", replicaOf("replicaof"), replicaOf("slaveof"),
		&command.Command{Name: "lolwut", Arity: -1, Flags: command.Readonly | command.Fast, Run: lolwut},
		&command.Command{Name: "function", Arity: -2, Group: "scripting", Subs: []*command.Command{
			{Name: "flush", Arity: -2, Flags: command.NoScript | command.Write, Run: functionFlush},
			command.HelpSince("7.0.0"),
		}},
		&command.Command{Name: "module", Arity: -2, Subs: []*command.Command{
			command.HelpSince("5.0.0"),
			{Name: "list", Arity: 2, Flags: command.Admin | command.NoScript, Run: moduleList},
		}},
		&command.Command{Name: "role", Arity: 1,
			Flags: command.NoScript | command.Loading | command.Stale | command.Fast, Categories: "admin dangerous",
			Run: role},
		&command.Command{Name: "wait", Arity: 3, Flags: command.NoScript, Group: "generic", Categories: "connection",
			Run: waitForReplicas},
	)
}

const (
	errFunctionFlush = engine.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
	errWaitTimeout   = engine.Error("ERR timeout is not an integer or out of range")
	errWaitNegative  = engine.Error("ERR timeout is negative")
	// as in Redis, of SLAVEOF too
	errReplicaOf  = engine.Error("ERR REPLICAOF not allowed in cluster mode.")
	errMasterPort = engine.Error("ERR Invalid master port")
	errNoReplicas = engine.Error("ERR this server is not a replica of another one: several servers replicate each " +
		"other as a cluster, which starts with --cluster-enabled yes. REPLICAOF NO ONE changes nothing")
)

// functionFlush handles FUNCTION FLUSH [ASYNC | SYNC]. It replies OK: clients flush at their start,
// and there are no functions.
func functionFlush(c *command.Call) error {
	switch {
	case c.Args.Left() > 1:
		return c.WrongSubcommandArity()
	case c.Args.More() && !c.Args.Word("ASYNC") && !c.Args.Word("SYNC"):
		return errFunctionFlush
	}
	return c.ReplyOK(nil)
}

// moduleList replies that there are no modules.
func moduleList(c *command.Call) error {
	c.Reply.Array(0)
	return nil
}

// role handles ROLE: a primary without replicas, at offset 0.
func role(c *command.Call) error {
	c.Reply.Array(3)
	c.Reply.BulkString("master")
	c.Reply.Integer(0)
	c.Reply.Array(0)
	return nil
}

// waitForReplicas handles WAIT numreplicas timeout. It replies at once: replies to the calls before
// it have waited for a majority in a cluster, and a server alone has no replicas.
func waitForReplicas(c *command.Call) error {
	c.Args.Integer()
	if c.Args.IntegerOr(errWaitTimeout) < 0 {
		c.Args.Fail(errWaitNegative)
	}
	if err := c.Args.End(); err != nil {
		return err
	}
	return c.ReplyCount(c.Env.Cluster.View().Acknowledged(), nil)
}

// replicateNothing handles REPLICAOF and SLAVEOF <host port | NO ONE>: a server is no replica.
func replicateNothing(c *command.Call) error {
	host, port := c.Args.Next(), c.Args.Next()
	if grammar.EqualFold(host, "NO") && grammar.EqualFold(port, "ONE") {
		return c.ReplyOK(nil)
	}
	if n, ok := grammar.ParseInt(port); !ok || n < 0 || n > 65535 {
		return errMasterPort
	}
	return errNoReplicas
}

// lolwut handles LOLWUT [VERSION version] as the versions of Redis without art do.
func lolwut(c *command.Call) error {
	if c.Args.Left() > 1 && c.Args.Word("VERSION") {
		c.Args.Integer()
		if c.Args.Err != nil {
			return c.Args.Err
		}
	}
	c.Reply.Verbatim("Redis ver. " + command.RedisVersion + "\n")
	return nil
}
