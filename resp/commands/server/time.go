package server

import "rlserver/resp/command"

func init() {
	command.Register("server",
		&command.Command{Name: "time", Arity: 1, Flags: command.Loading | command.Stale | command.Fast,
			Run: serverTime},
	)
}

// serverTime handles TIME. It uses the clock of the limiters, which counts milliseconds. Within a
// transaction it is the time at which the others of its calls decide.
func serverTime(c *command.Call) error {
	now := c.Env.Clock()
	if c.Executing {
		now = c.Tx.Now()
	}
	c.Reply.Array(2)
	c.Reply.BulkInteger(now / 1000)
	c.Reply.BulkInteger(now % 1000 * 1000)
	return nil
}
