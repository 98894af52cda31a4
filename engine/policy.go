package engine

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/engine/rule"
	"rlserver/stats"
)

// Policy is a limit that has a name and is kept by the engine, for Tx.Check. All but its counts
// stays as it is: to change a policy is to put another one in its place, which is an effect like
// any other. Policies are of no database, and FLUSHALL leaves them.
type Policy struct {
	name   string
	text   string
	limit  Limit // without key and id
	shadow bool
	// nil until the engine keeps the policy; its successors of the same name count on
	decisions *stats.Decisions
}

// NewPolicy makes a policy for SetPolicies.
func NewPolicy(p rule.Policy) *Policy {
	return &Policy{name: p.Name, text: p.Text, limit: Limit{Rule: p.Rule}, shadow: p.Shadow}
}

// Name is what Check calls it by.
func (p *Policy) Name() string { return p.name }

// Definition is its algorithm and arguments in the one form in which they are written: SLIDE 5 1m
// SHADOW. rule.ParsePolicy reads it.
func (p *Policy) Definition() string { return p.text }

// Rule is its limit, a copy.
func (p *Policy) Rule() *rule.Rule {
	r := p.limit.Rule
	return &r
}

// Shadow reports whether the policy admits all, and only counts what it would have denied.
func (p *Policy) Shadow() bool { return p.shadow }

// Decisions returns what the policy has decided since it was set or the server started, or since
// ResetStats. A call that others denied is not counted here, nor is a peek, nor the retry of a call
// that was.
func (p *Policy) Decisions() stats.DecisionCounts { return p.decisions.Snapshot() }

// policies are those that the engine keeps, by name.
type policies map[string]*Policy

// Policy finds a policy; nil if there is none of that name. It takes no shard's lock: see
// Tx.SeeAll.
func (e *Engine) Policy(name string) *Policy {
	e.naming.RLock()
	defer e.naming.RUnlock()
	return e.policies[name]
}

// Policies lists all policies, by name. It takes no shard's lock: see Tx.SeeAll.
func (e *Engine) Policies() []*Policy {
	e.naming.RLock()
	list := slices.Collect(maps.Values(e.policies))
	e.naming.RUnlock()
	slices.SortFunc(list, func(a, b *Policy) int { return strings.Compare(a.name, b.name) })
	return list
}

// applyPolicy puts a policy in the place of that of its name. The lock naming is held.
func (e *Engine) applyPolicy(f *effect.Effect) {
	p, err := policyOf(f)
	if err != nil {
		panic(fmt.Sprintf("engine: %s: %v", f.Kind, err))
	}
	if before := e.policies[p.name]; before != nil {
		p.decisions = before.decisions
	} else {
		p.decisions = new(stats.Decisions)
	}
	e.policies[p.name] = p
}

// applyPolicyDelete forgets a policy. The lock naming is held.
func (e *Engine) applyPolicyDelete(f *effect.Effect) { delete(e.policies, string(f.Key.Name)) }

// policyOf is the policy of an effect.Policy.
func policyOf(f *effect.Effect) (*Policy, error) {
	p, err := rule.ParsePolicy(f.Key.Name, bytes.Split(f.Value, []byte{' '}))
	return NewPolicy(p), err
}

func (p *Policy) effect() effect.Effect {
	return effect.Effect{Kind: effect.Policy, Key: Key{Name: object.BytesOf(p.name)}, Value: object.BytesOf(p.text)}
}

// PolicyChanges report what SetPolicies has done.
type PolicyChanges struct {
	Names    []string // of the policies that are new or say something else than before
	Switched []string // of those among them whose algorithm is another one
	Dropped  int      // how many keys were deleted that they cannot go on with
}

// SetPolicies puts policies, whose names differ, in the place of those of their names: all at one
// moment, at now (Unix ms). A changed limit holds from the next call on, over what was used before.
// Counts go on.
//
// Where the algorithm is another one, what the former has left is deleted, in all databases: the
// keys named `name:{…}` that hold its type and have a deadline. Where the window of FIXED is, those
// are deleted that count in a window which is not within the new one. That looks at each key there
// is, while all calls wait: some 0.1 s for a million. No lock may be held.
func (e *Engine) SetPolicies(now int64, list []*Policy) (c PolicyChanges) {
	e.changing.Lock()
	defer e.changing.Unlock()
	var changed []*Policy
	leaving := make(successions)
	for _, p := range list {
		before := e.Policy(p.name)
		if before != nil && before.text == p.text {
			continue
		}
		changed = append(changed, p)
		c.Names = append(c.Names, p.name)
		switch {
		case before == nil:
		case before.limit.Kind != p.limit.Kind:
			c.Switched = append(c.Switched, p.name)
			leaving[p.name] = succession{before, p}
		case before.limit.Rule != p.limit.Rule && p.limit.algorithm().succeeds != nil:
			leaving[p.name] = succession{before, p}
		}
	}
	if len(changed) == 0 {
		return c
	}
	tx := e.NewTx()
	tx.BeginAll(now, 0, true)
	if len(leaving) > 0 {
		c.Dropped = tx.dropKeysOf(leaving)
	}
	effects := make([]effect.Effect, len(changed))
	for i, p := range changed {
		effects[i] = p.effect()
	}
	tx.publish(effects)
	tx.End()
	return c
}

// publish makes changes to policies, which can be seen without the lock of a shard: by then they
// are in the journal, so that a reader of them knows by SeeAll which position to wait for.
func (tx *Tx) publish(effects []effect.Effect) {
	tx.e.naming.Lock()
	defer tx.e.naming.Unlock()
	for i := range effects {
		tx.perform(nil, &effects[i])
	}
	tx.commit()
}

// dropKeysOf deletes what policies have left behind that are about to be replaced. It hands its
// effects to the journal shard by shard: a crash in the midst leaves the former policy with fewer
// keys.
func (tx *Tx) dropKeysOf(leaving successions) (dropped int) {
	var due []object.Object
	for _, sh := range tx.locked {
		for db := range sh.dbs {
			keys := sh.dbs[db].keys
			if keys == nil {
				continue
			}
			for o := range keys.All() {
				if !o.Head().Expired(tx.now) && leaving.end(o, tx.now) {
					due = append(due, o)
				}
			}
			tx.db = db
			for _, o := range due {
				tx.delete(tx.e.Key(object.BytesOf(o.Head().Name)), o)
			}
			dropped += len(due)
			clear(due)
			due = due[:0]
		}
		tx.commit()
	}
	tx.db = 0
	return dropped
}

// succession is a policy and what is about to take its place.
type succession struct{ before, after *Policy }

// successions are by the policies' name.
type successions map[string]succession

// end reports whether an object ends with one of the policies: that has made it, and not just
// somebody who chose such a name, and its successor cannot go on with it.
func (ss successions) end(o object.Object, now int64) bool {
	if o.Head().ExpireAt == 0 {
		return false
	}
	name, id, _ := strings.Cut(o.Head().Name, ":{")
	s, found := ss[name]
	if !found || !strings.HasSuffix(id, "}") || o.Kind() != s.before.limit.algorithm().holds {
		return false
	}
	if s.before.limit.Kind != s.after.limit.Kind {
		return true
	}
	return !s.after.limit.algorithm().succeeds(o, &s.after.limit, now)
}

// DeletePolicy deletes a policy, and reports whether there was one. Its keys stay until they
// expire. No lock may be held.
func (e *Engine) DeletePolicy(now int64, name string) (found bool) {
	e.changing.Lock()
	defer e.changing.Unlock()
	if e.Policy(name) == nil {
		return false
	}
	tx := e.NewTx()
	tx.BeginAll(now, 0, true)
	tx.publish([]effect.Effect{{Kind: effect.PolicyDelete, Key: Key{Name: []byte(name)}}})
	tx.End()
	return true
}
