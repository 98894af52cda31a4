package keys

import (
	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/resp/command"
)

func init() {
	inspect := func(name string, run func(*command.Call) error) *command.Command {
		return &command.Command{Name: name, Arity: 3, Flags: command.Readonly,
			Keys: []command.KeySpec{command.Key("RO", 2)}, Run: run}
	}
	command.Register("generic",
		&command.Command{Name: "object", Arity: -2, Subs: []*command.Command{
			inspect("encoding", objectEncoding),
			inspect("freq", number((*engine.Tx).Frequency, func(c *command.Call) error {
				if !c.Env.Settings.Policy().CountsAccesses() {
					return errNoLFU
				}
				return nil
			})),
			command.HelpSince("6.2.0"),
			inspect("idletime", number((*engine.Tx).Idle, func(c *command.Call) error {
				if c.Env.Settings.Policy().CountsAccesses() {
					return errNoLRU
				}
				return nil
			})),
			inspect("refcount", number((*engine.Tx).References, nil)),
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

func objectEncoding(c *command.Call) error {
	encoding, ok := c.Tx.Encoding(c.Args.Key(), c.Env.Settings.Packing())
	return c.ReplyOrNull(object.BytesOf(encoding), ok, nil)
}

// number returns the handler of OBJECT FREQ, IDLETIME or REFCOUNT key. refused returns the error of
// keys that exist; nil: there is none.
func number(
	of func(*engine.Tx, engine.Key) (int64, bool), refused func(*command.Call) error,
) func(*command.Call) error {
	return func(c *command.Call) error {
		n, ok := of(c.Tx, c.Args.Key())
		switch {
		case !ok:
			c.Reply.Null()
			return nil
		case refused != nil:
			if err := refused(c); err != nil {
				return err
			}
		}
		return c.ReplyInteger(n, nil)
	}
}
