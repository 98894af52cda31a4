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
	)
}

const (
	// as in Redis, of SLAVEOF too
	errReplicaOf  = engine.Error("ERR REPLICAOF not allowed in cluster mode.")
	errMasterPort = engine.Error("ERR Invalid master port")
	errNoReplicas = engine.Error("ERR this server is not a replica of another one: several servers replicate each " +
		"other as a cluster, which starts with --cluster-enabled yes. REPLICAOF NO ONE changes nothing")
)

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
