package keys

import (
	"rlserver/engine"
	"rlserver/resp/command"
)

func init() {
	inspect := func(name, since, summary string, run func(*command.Call) error) *command.Command {
		return &command.Command{Name: name, Arity: 3, Flags: command.Readonly,
			Keys: []command.KeySpec{command.Key("RO", 2)}, Tips: "nondeterministic_output", Syntax: "key",
			Since: since, Complexity: "O(1)", Summary: summary, Run: run}
	}
	command.Register("generic",
		&command.Command{Name: "object", Arity: -2, Subs: []*command.Command{
			inspect("encoding", "2.2.3", "Inspect the internal encoding of a Redis object", objectEncoding),
			inspect("freq", "4.0.0", "Get the logarithmic access frequency counter of a Redis object", objectFreq),
			command.HelpSince("6.2.0"),
			inspect("idletime", "2.2.3", "Get the time since a Redis object was last accessed", objectIdleTime),
			inspect("refcount", "2.2.3", "Get the number of references to the value of the key", objectRefCount),
		}},
	)
}

const (
	errNoLFU = engine.Error(
		"ERR An LFU maxmemory policy is not selected, access frequency not tracked. " + policySwitch,
	)
	errNoLRU = engine.Error("ERR An LFU maxmemory policy is selected, idle time not tracked. " + policySwitch)

	policySwitch = "Please note that when switching between policies at runtime LRU and LFU data will take some " +
		"time to adjust."
)

// objectEncoding handles OBJECT ENCODING key.
func objectEncoding(c *command.Call) error {
	encoding, ok := c.Tx.Encoding(c.Args.Key(), c.Env.Settings.Packing())
	if !ok {
		c.Reply.Null()
		return nil
	}
	c.Reply.BulkString(encoding)
	return nil
}

// objectFreq handles OBJECT FREQ key.
func objectFreq(c *command.Call) error {
	count, ok := c.Tx.Frequency(c.Args.Key())
	if !ok {
		c.Reply.Null()
		return nil
	}
	if !c.Env.Settings.Policy().CountsAccesses() {
		return errNoLFU
	}
	c.Reply.Integer(count)
	return nil
}

// objectIdleTime handles OBJECT IDLETIME key.
func objectIdleTime(c *command.Call) error {
	seconds, ok := c.Tx.Idle(c.Args.Key())
	if !ok {
		c.Reply.Null()
		return nil
	}
	if c.Env.Settings.Policy().CountsAccesses() {
		return errNoLRU
	}
	c.Reply.Integer(seconds)
	return nil
}

// objectRefCount handles OBJECT REFCOUNT key.
func objectRefCount(c *command.Call) error {
	references, ok := c.Tx.References(c.Args.Key())
	if !ok {
		c.Reply.Null()
		return nil
	}
	c.Reply.Integer(references)
	return nil
}
