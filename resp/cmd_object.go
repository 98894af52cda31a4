package resp

import "rlserver/engine"

func init() {
	asks := func(name, since, summary string, run func(*call) error) *command {
		return &command{name: name, arity: 3, flags: readonly, keys: []keySpec{key("RO", 2)}, tips: "nondeterministic_output",
			syntax: "key", group: "generic", since: since, complexity: "O(1)", summary: summary, run: run}
	}
	register(&command{name: "object", arity: -2, group: "generic", since: "2.2.3", complexity: "Depends on subcommand.",
		summary: "A container for object introspection commands",
		subs: []*command{
			asks("encoding", "2.2.3", "Inspect the internal encoding of a Redis object", objectEncoding),
			asks("freq", "4.0.0", "Get the logarithmic access frequency counter of a Redis object", objectFreq),
			{name: "help", arity: 2, flags: loading | stale, group: "generic", since: "6.2.0", complexity: "O(1)",
				summary: "Show helpful text about the different subcommands", run: help},
			asks("idletime", "2.2.3", "Get the time since a Redis object was last accessed", objectIdleTime),
			asks("refcount", "2.2.3", "Get the number of references to the value of the key", objectRefCount),
		}})
}

const (
	errNoLFU = engine.Error("ERR An LFU maxmemory policy is not selected, access frequency not tracked. " + policySwitch)
	errNoLRU = engine.Error("ERR An LFU maxmemory policy is selected, idle time not tracked. " + policySwitch)

	policySwitch = "Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
)

// objectEncoding handles OBJECT ENCODING key.
func objectEncoding(c *call) error {
	encoding, ok := c.tx.Encoding(c.args.key(), c.env.settings.packing())
	if !ok {
		c.reply.null()
		return nil
	}
	c.reply.bulkString(encoding)
	return nil
}

// objectFreq handles OBJECT FREQ key.
func objectFreq(c *call) error {
	count, ok := c.tx.Frequency(c.args.key())
	if !ok {
		c.reply.null()
		return nil
	}
	if !c.env.settings.policy().CountsAccesses() {
		return errNoLFU
	}
	c.reply.integer(count)
	return nil
}

// objectIdleTime handles OBJECT IDLETIME key.
func objectIdleTime(c *call) error {
	seconds, ok := c.tx.Idle(c.args.key())
	if !ok {
		c.reply.null()
		return nil
	}
	if c.env.settings.policy().CountsAccesses() {
		return errNoLRU
	}
	c.reply.integer(seconds)
	return nil
}

// objectRefCount handles OBJECT REFCOUNT key.
func objectRefCount(c *call) error {
	references, ok := c.tx.References(c.args.key())
	if !ok {
		c.reply.null()
		return nil
	}
	c.reply.integer(references)
	return nil
}
