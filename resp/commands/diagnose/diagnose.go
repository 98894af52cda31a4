package diagnose

import (
	"rlserver/engine"
	"rlserver/internal/stats"
	"rlserver/resp/command"
	"rlserver/resp/diagnostics"
	"rlserver/resp/wire"
)

func init() {
	const open = command.Loading | command.Stale
	const operator = command.Admin | command.NoScript | open
	command.Register("server",
		&command.Command{Name: "latency", Arity: -2, Subs: []*command.Command{
			{Name: "doctor", Arity: 2, Flags: operator, Run: latencyDoctor},
			{Name: "graph", Arity: 3, Flags: operator, Run: latencyGraph},
			{Name: "help", Arity: 2, Flags: open, Run: command.Help},
			{Name: "histogram", Arity: -2, Flags: operator, Run: latencyHistogram},
			{Name: "history", Arity: 3, Flags: operator, Run: latencyHistory},
			{Name: "latest", Arity: 2, Flags: operator, Run: latencyLatest},
			{Name: "reset", Arity: -2, Flags: operator, Run: latencyReset},
		}},
		&command.Command{Name: "slowlog", Arity: -2, Subs: []*command.Command{
			{Name: "get", Arity: -2, Flags: command.Admin | open,
				Tips: "request_policy:all_nodes nondeterministic_output", Run: slowlogGet},
			command.HelpSince("6.2.0"),
			{Name: "len", Arity: 2, Flags: command.Admin | open,
				Tips: "request_policy:all_nodes response_policy:agg_sum nondeterministic_output", Run: slowlogLen},
			{Name: "reset", Arity: 2, Flags: command.Admin | open, Run: slowlogReset},
		}},
	)
}

func latencyDoctor(c *command.Call) error {
	c.Reply.Verbatim(c.Env.Latency.Doctor(c.Env.Clock()/1000, diagnostics.Advice{
		Threshold: c.Env.Settings.LatencyThreshold.Load(), Slowlog: c.Env.Settings.SlowlogSlowerThan.Load(),
	}))
	return nil
}

func latencyGraph(c *command.Call) error {
	name := c.Args.Next()
	e := c.Env.Latency.Event(string(name))
	if e == nil {
		return engine.Errorf("ERR No samples available for event '%.128s'", name)
	}
	c.Reply.Verbatim(e.Graph(c.Env.Clock() / 1000))
	return nil
}

func latencyHistory(c *command.Call) error {
	e := c.Env.Latency.Event(string(c.Args.Next()))
	if e == nil {
		c.Reply.Array(0)
		return nil
	}
	c.Reply.Array(len(e.Samples))
	for _, s := range e.Samples {
		c.Reply.Array(2)
		c.Reply.Integer(s.Time)
		c.Reply.Integer(s.Latency)
	}
	return nil
}

func latencyLatest(c *command.Call) error {
	events := c.Env.Latency.Events()
	c.Reply.Array(len(events))
	for _, e := range events {
		c.Reply.Array(4)
		c.Reply.BulkString(e.Name)
		c.Reply.Integer(e.Last().Time)
		c.Reply.Integer(e.Last().Latency)
		c.Reply.Integer(e.Max)
	}
	return nil
}

func latencyReset(c *command.Call) error {
	return c.ReplyCount(c.Env.Latency.Reset(c.Args.Strings()...), nil)
}

// latencyHistogram handles LATENCY HISTOGRAM [COMMAND [COMMAND ...]]. Unknown names are skipped; a
// command with subcommands has those listed.
func latencyHistogram(c *command.Call) error {
	list := c.Args.Commands()
	c.Conn.FlushStats()
	var names []string
	var latencies []stats.Distribution
	for _, each := range list {
		for _, one := range append([]*command.Command{each}, each.Subs...) {
			if counts := c.Env.Stats.Command(one.Index); counts != nil && counts.Latency.Count > 0 {
				names, latencies = append(names, one.FullName()), append(latencies, counts.Latency)
			}
		}
	}

	c.Reply.Mapping(len(names))
	for i := range names {
		c.Reply.BulkString(names[i])
		writeHistogram(&c.Reply, &latencies[i])
	}
	return nil
}

// longestPower is the power of two of the largest bucket of LATENCY HISTOGRAM: 2^20 µs is about a
// second.
const longestPower = 20

// writeHistogram writes, for each power of two in µs, how many latencies did not exceed it. Powers
// without additional latencies are left out.
func writeHistogram(r *wire.Reply, d *stats.Distribution) {
	var powers, counts []int64
	before := int64(0)
	for power := range longestPower + 1 {
		n := d.AtMost(power)
		if power == longestPower {
			n = d.Count
		}
		if n > before {
			powers, counts = append(powers, 1<<power), append(counts, n)
		}
		before = n
	}
	command.Fields(r, "calls", d.Count, "histogram_usec", func() {
		r.Mapping(len(powers))
		for i := range powers {
			r.Integer(powers[i])
			r.Integer(counts[i])
		}
	})
}

const errSlowlogCount = engine.Error("ERR count should be greater than or equal to -1")

func slowlogGet(c *command.Call) error {
	count := int64(10)
	if c.Args.More() {
		count = c.Args.IntegerOr(errSlowlogCount)
		if count < -1 {
			c.Args.Fail(errSlowlogCount)
		}
	}
	if c.Args.Left() > 0 {
		return c.WrongSubcommandArity()
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	calls := c.Env.Slowlog.Last(count)
	c.Reply.Array(len(calls))
	for i := range calls {
		call := &calls[i]
		c.Reply.Array(6)
		c.Reply.Integer(call.ID)
		c.Reply.Integer(call.Time)
		c.Reply.Integer(call.Took.Microseconds())
		c.ReplyStrings(call.Args)
		c.Reply.BulkString(call.Address)
		c.Reply.BulkString(call.Name)
	}
	return nil
}

func slowlogLen(c *command.Call) error {
	return c.ReplyCount(c.Env.Slowlog.Len(), nil)
}

func slowlogReset(c *command.Call) error {
	c.Env.Slowlog.Reset()
	return c.ReplyOK(nil)
}
