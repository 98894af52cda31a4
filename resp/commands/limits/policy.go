package limits

import (
	"fmt"

	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
	"rlserver/resp/command"
)

func init() {
	const operator = command.Write | command.Admin | command.NoScript | command.OwnLocks
	command.Register("ratelimit",
		&command.Command{Name: "rl.policy", Arity: -2, Since: "1.0.0", Complexity: "Depends on subcommand.",
			Summary: "A container for commands about named limits", OnFirstGroup: true, Subs: []*command.Command{
				{Name: "del", Arity: -3, Flags: operator, Since: "1.0.0", RunsAt: atOverride,
					Complexity: "O(P) with P the policies; O(N) with N all overrides if it has any. With FOR: O(1)",
					Syntax:     "name [FOR id]", Run: policyDel,
					Summary: "Deletes a policy and its overrides, or the override of an id. Keys stay until " +
						"they expire."},
				{Name: "get", Arity: -3, Flags: command.Readonly | command.Fast, Since: "1.0.0", Complexity: "O(1)",
					RunsAt: atOverride, Syntax: "name [FOR id]",
					Summary: "The definition of a policy, or the one that it has for an id", Run: policyGet},
				command.HelpSince("1.0.0"), policyIDs,
				{Name: "list", Arity: -2, Flags: command.Readonly, Since: "1.0.0", RunsAt: atCursor,
					Complexity: "O(P*log(P)) with P the policies; with FOR O(C) with C the COUNT",
					Syntax:     "[FOR name [CURSOR cursor] [COUNT count]]",
					Summary: "All policies with their definitions, and how many calls each has admitted " +
						"and denied; or, a page at a time, the ids for which a policy has definitions of their own",
					Run: policyList},
				{Name: "reload", Arity: 2, Flags: operator, Since: "1.0.0",
					Complexity: "O(P) with P the policies of the file, or as of RL.POLICY SET if algorithms " +
						"have changed", Summary: "Read the file of policies again", Run: policyReload},
				{Name: "set", Arity: -6, Flags: operator, Since: "1.0.0",
					Complexity: "O(P) with P the policies; O(N) with N all keys if the policy had another " +
						"algorithm before, in small steps. With FOR: O(1)", RunsAt: atOverride,
					Syntax: "name <" + rule.Forms(" | ", " | ", false) + "> " + rule.PolicyOptions + " [FOR id]",
					Summary: "Sets a named limit, or changes it from the next call on; with FOR its numbers for one " +
						"id. A name is 1 to 64 letters, digits and ._-/:@", Run: policySet},
			}},
	)
}

const errNoPolicyFile = engine.Error("ERR there is no file of policies: the server was started without --policies")

// policySet handles RL.POLICY SET name algorithm argument [argument ...] [option ...].
func policySet(c *command.Call) error {
	if id, words := takeFor(c.Args.List); id != nil {
		return overrideSet(c, id, words)
	}
	p, err := rule.ParsePolicy(c.Args.List[0], c.Args.List[1:])
	if err != nil {
		return err
	}

	changes, err := c.Env.Cluster.SetPolicies(c.Env, []*policy.Policy{policy.New(p)})
	if err != nil {
		return err
	}
	policiesChanged(c)

	switch {
	case changes.Overrides > 0:
		c.Reply.Status(fmt.Sprintf("OK, keys of the former algorithm dropped: %d, and overrides: %d", changes.Dropped,
			changes.Overrides))
	case len(changes.Switched) > 0:
		c.Reply.Status(fmt.Sprintf("OK, keys of the former algorithm dropped: %d", changes.Dropped))
	case changes.Dropped > 0:
		c.Reply.Status(fmt.Sprintf("OK, keys of the former window dropped: %d", changes.Dropped))
	default:
		c.Reply.OK()
	}
	return nil
}

// policiesChanged makes waiting calls use the policies.
func policiesChanged(c *command.Call) {
	c.Tx.SeeAll()
	c.Env.Waiting.RetryAll()
}

func policyDel(c *command.Call) error {
	if id, words := takeFor(c.Args.List); id != nil {
		return overrideDel(c, id, words)
	}
	name := c.Args.Next()
	if err := c.Args.End(); err != nil {
		return err
	}
	found, err := c.Env.Cluster.DeletePolicy(c.Env, string(name))
	if err != nil {
		return err
	}
	if found {
		policiesChanged(c)
	} else {
		c.Tx.SeeAll()
	}

	c.Reply.Flag(found)
	return nil
}

func policyGet(c *command.Call) error {
	if id, words := takeFor(c.Args.List); id != nil {
		return overrideGet(c, id, words)
	}
	name := c.Args.Next()
	if err := c.Args.End(); err != nil {
		return err
	}
	p := c.Env.Engine.Policy(string(name))
	c.Tx.SeeAll()
	if p != nil {
		c.Reply.BulkString(p.Definition())
	} else {
		c.Reply.Null()
	}
	return nil
}

func policyList(c *command.Call) error {
	if c.Args.Word("FOR") {
		return overrideList(c)
	}
	if err := c.Args.End(); err != nil {
		return err
	}
	list := c.Env.Engine.Policies()
	c.Tx.SeeAll()
	c.Reply.Array(len(list))
	for _, p := range list {
		decisions := p.Decisions()
		c.Reply.Mapping(4)
		c.Reply.BulkString("name")
		c.Reply.BulkString(p.Name())
		c.Reply.BulkString("definition")
		c.Reply.BulkString(p.Definition())
		writeNumber(c, "admitted", decisions.Admitted)
		writeNumber(c, "denied", decisions.Denied+decisions.ShadowDenied)
	}
	return nil
}

func policyReload(c *command.Call) error {
	if c.Env.ReloadPolicies == nil {
		return errNoPolicyFile
	}
	if err := c.Env.ReloadPolicies(); err != nil {
		return engine.Error("ERR no policy was changed: " + err.Error())
	}
	c.Tx.SeeAll()

	c.Reply.OK()
	return nil
}
