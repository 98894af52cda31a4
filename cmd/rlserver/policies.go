package main

import (
	"context"

	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/internal/policyfile"
	"rlserver/resp/command"
)

// setPolicies implements mode: it sets the policies of the file on all nodes.
func (c *clusterParts) setPolicies(_ *parts, list []*policy.Policy) (engine.PolicyChanges, error) {
	for _, p := range list {
		if len(p.Given()) > 0 {
			return engine.PolicyChanges{}, errGiven
		}
	}
	if c.Node.Partition(policyGroup) == nil {
		return engine.PolicyChanges{}, policyfile.ErrElsewhere
	}
	return c.SetPolicies(nil, list)
}

const errGiven = engine.Error("ERR overrides: in the file of policies are for a server alone: each group of a " +
	"cluster keeps those of its slots, so use RL.POLICY SET name … FOR id")

// SetPolicies implements resp.Cluster.
func (c *clusterParts) SetPolicies(_ *command.Env, list []*policy.Policy) (changes engine.PolicyChanges, err error) {
	err = c.changePolicies(func(definitions map[string]string) bool {
		changes = engine.PolicyChanges{}
		for _, p := range list {
			if definitions[p.Name()] == p.Definition() {
				continue
			}
			changes.Names = append(changes.Names, p.Name())
			definitions[p.Name()] = p.Definition()
		}
		return true // also without a change: the one that made them so may still be on its way
	})
	return changes, err
}

// DeletePolicy implements resp.Cluster.
func (c *clusterParts) DeletePolicy(_ *command.Env, name string) (found bool, err error) {
	err = c.changePolicies(func(definitions map[string]string) bool {
		_, found = definitions[name]
		delete(definitions, name)
		return found
	})
	return found, err
}

// changePolicies changes the definitions of the policies, by name. change reports whether all
// groups have to use them before it returns.
func (c *clusterParts) changePolicies(change func(definitions map[string]string) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.hold)
	defer cancel()
	missing, refused, err := c.Node.ChangePolicies(ctx, change)
	switch {
	case refused:
		return engine.Error(err.Error())
	case err != nil:
		return engine.Errorf("TRYAGAIN the policies may have been changed or not: %v", err)
	case len(missing) > 0:
		c.p.log.Warn("the leaders of groups may not use the changed policies yet: they do when they hear of them",
			"groups", missing)
	}
	return nil
}
