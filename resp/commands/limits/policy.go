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
				{Name: "del", Arity: 3, Flags: operator, Since: "1.0.0", Complexity: "O(P) with P the policies",
					Syntax: "name", Summary: "Deletes a policy. Its keys stay until they expire.", Run: policyDel},
				{Name: "get", Arity: 3, Flags: command.Readonly | command.Fast, Since: "1.0.0", Complexity: "O(1)",
					Syntax: "name", Summary: "The definition of a policy", Run: policyGet},
				command.HelpSince("1.0.0"),
				{Name: "list", Arity: 2, Flags: command.Readonly, Since: "1.0.0",
					Complexity: "O(P*log(P)) with P the policies",
					Summary: "All policies with their definitions, and how many calls each has admitted " +
						"and denied", Run: policyList},
				{Name: "reload", Arity: 2, Flags: operator, Since: "1.0.0",
					Complexity: "O(P) with P the policies of the file, or as of RL.POLICY SET if algorithms " +
						"have changed", Summary: "Read the file of policies again", Run: policyReload},
				{Name: "set", Arity: -6, Flags: operator, Since: "1.0.0",
					Complexity: "O(P) with P the policies; O(N) with N all keys if the policy had another " +
						"algorithm before, in small steps",
					Syntax: "name <" + rule.Forms(" | ", " | ", false) + "> " + rule.PolicyOptions,
					Summary: "Sets a named limit, or changes it from the next call on. A name is 1 to 64 " +
						"letters, digits and ._-/:@", Run: policySet},
			}},
	)
}

const errNoPolicyFile = engine.Error("ERR there is no file of policies: the server was started without --policies")

// policySet handles RL.POLICY SET name algorithm argument [argument ...] [option ...].
func policySet(c *command.Call) error {
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
	found, err := c.Env.Cluster.DeletePolicy(c.Env, string(c.Args.Next()))
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
	p := c.Env.Engine.Policy(string(c.Args.Next()))
	c.Tx.SeeAll()
	if p != nil {
		c.Reply.BulkString(p.Definition())
	} else {
		c.Reply.Null()
	}
	return nil
}

func policyList(c *command.Call) error {
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
		c.Reply.BulkString("admitted")
		c.Reply.Integer(decisions.Admitted)
		c.Reply.BulkString("denied")
		c.Reply.Integer(decisions.Denied + decisions.ShadowDenied)
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
