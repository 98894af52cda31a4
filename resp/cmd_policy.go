package resp

import (
	"fmt"

	"rlserver/engine"
	"rlserver/engine/rule"
)

func init() {
	const operator = write | admin | noScript | ownLocks
	register(
		&command{name: "rl.policy", arity: -2, group: "ratelimit", since: "1.0.0", complexity: "Depends on subcommand.",
			summary: "A container for commands about named limits",
			subs: []*command{
				{name: "del", arity: 3, flags: operator, group: "ratelimit", since: "1.0.0", complexity: "O(P) with P the policies",
					syntax: "name", summary: "Forgets a policy. Its keys stay until they expire.",
					example: "> RL.POLICY SET login SLIDE 5 1m\n\"OK\"\n> RL.POLICY DEL login\n(integer) 1\n> RL.POLICY DEL login\n(integer) 0",
					run:     policyDel},
				{name: "get", arity: 3, flags: readonly | fast, group: "ratelimit", since: "1.0.0", complexity: "O(1)",
					syntax: "name", summary: "The definition of a policy",
					example: "> RL.POLICY SET login slide 5 60 shadow\n\"OK\"\n> RL.POLICY GET login\n\"SLIDE 5 1m SHADOW\"",
					run:     policyGet},
				{name: "help", arity: 2, flags: loading | stale, group: "ratelimit", since: "1.0.0", complexity: "O(1)",
					summary: "Show helpful text about the different subcommands", run: help},
				{name: "list", arity: 2, flags: readonly, group: "ratelimit", since: "1.0.0", complexity: "O(P*log(P)) with P the policies",
					summary: "All policies with their definitions, and how many calls each has admitted and denied",
					example: "> RL.POLICY SET login SLIDE 5 1m\n\"OK\"\n> RL.CHECK ann login\n1) (integer) 1\n2) (integer) 5\n3) (integer) 4\n4) (integer) 0\n5) (integer) 60000\n6) (integer) 0\n" +
						"> RL.POLICY LIST\n1) 1) \"name\"\n2) \"login\"\n3) \"definition\"\n4) \"SLIDE 5 1m\"\n5) \"admitted\"\n6) (integer) 1\n7) \"denied\"\n8) (integer) 0",
					run: policyList},
				{name: "reload", arity: 2, flags: operator, group: "ratelimit", since: "1.0.0", complexity: "O(P) with P the policies of the file, or as of RL.POLICY SET if algorithms have changed",
					summary: "Read the file of policies again", run: policyReload},
				{name: "set", arity: -6, flags: operator, group: "ratelimit", since: "1.0.0",
					complexity: "O(P) with P the policies; O(N) with N all keys if the policy had another algorithm before, in small steps",
					syntax:     "name <" + rule.Forms(" | ", " | ", false) + "> [SHADOW]",
					summary:    "Sets a named limit, or changes it from the next call on",
					example:    "> RL.POLICY SET api TOKEN 100 10 1s\n\"OK\"\n> RL.POLICY SET quota FIXED 10000 month TZ Europe/Berlin\n\"OK\"",
					run:        policySet},
			}},
	)
}

const errNoPolicyFile = engine.Error("ERR there is no file of policies: the server was started without --policies")

// policySet handles RL.POLICY SET name algorithm argument [argument ...] [SHADOW].
func policySet(c *call) error {
	p, err := rule.ParsePolicy(c.args.list[0], c.args.list[1:])
	if err != nil {
		return err
	}

	changes := c.env.engine.SetPolicies(c.env.clock(), []*engine.Policy{engine.NewPolicy(p)})
	c.tx.SeeAll()
	c.env.policiesChanged()

	switch {
	case len(changes.Switched) > 0:
		c.reply.status(fmt.Sprintf("OK, keys of the former algorithm dropped: %d", changes.Dropped))
	case changes.Dropped > 0:
		c.reply.status(fmt.Sprintf("OK, keys of the former window dropped: %d", changes.Dropped))
	default:
		c.reply.ok()
	}
	return nil
}

func policyDel(c *call) error {
	found := c.env.engine.DeletePolicy(c.env.clock(), string(c.args.next()))
	c.tx.SeeAll()
	c.env.policiesChanged()

	c.reply.flag(found)
	return nil
}

func policyGet(c *call) error {
	p := c.env.engine.Policy(string(c.args.next()))
	c.tx.SeeAll()
	if p != nil {
		c.reply.bulkString(p.Definition())
	} else {
		c.reply.null()
	}
	return nil
}

func policyList(c *call) error {
	list := c.env.engine.Policies()
	c.tx.SeeAll()
	c.reply.array(len(list))
	for _, p := range list {
		admitted, denied := p.Counts()
		c.reply.mapping(4)
		c.reply.bulkString("name")
		c.reply.bulkString(p.Name())
		c.reply.bulkString("definition")
		c.reply.bulkString(p.Definition())
		c.reply.bulkString("admitted")
		c.reply.integer(admitted)
		c.reply.bulkString("denied")
		c.reply.integer(denied)
	}
	return nil
}

func policyReload(c *call) error {
	if c.env.reloadPolicies == nil {
		return errNoPolicyFile
	}
	if err := c.env.reloadPolicies(); err != nil {
		return engine.Error("ERR no policy was changed: " + err.Error())
	}
	c.tx.SeeAll()

	c.reply.ok()
	return nil
}
