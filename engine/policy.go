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
	"rlserver/internal/stats"
)

// Policy is a named limit that the engine keeps, for Tx.Check. It is immutable except for its
// counters: changing a policy replaces it, which is an effect like any other. Policies belong to no
// database, and FLUSHALL keeps them.
type Policy struct {
	name   string
	text   string
	limit  Limit // without key and id
	shadow bool
	// nil until the engine keeps the policy; a policy that replaces it takes over its counters
	decisions *stats.Decisions
}

// NewPolicy makes a policy for SetPolicies.
func NewPolicy(p rule.Policy) *Policy {
	return &Policy{name: p.Name, text: p.Text, limit: Limit{Rule: p.Rule}, shadow: p.Shadow}
}

// Name returns the name by which Check finds the policy.
func (p *Policy) Name() string { return p.name }

// Definition returns the algorithm and arguments in canonical form: SLIDE 5 1m SHADOW.
// rule.ParsePolicy parses it.
func (p *Policy) Definition() string { return p.text }

// Rule returns a copy of the policy's rule.
func (p *Policy) Rule() *rule.Rule {
	r := p.limit.Rule
	return &r
}

// Shadow reports whether the policy admits every call, and only counts those that it would have
// denied.
func (p *Policy) Shadow() bool { return p.shadow }

// Decisions returns the counts of the policy's decisions since it was set or the server started, or
// since ResetStats. A call that other policies denied is not counted, nor a peek, nor the retry of
// an admitted call.
func (p *Policy) Decisions() stats.DecisionCounts { return p.decisions.Snapshot() }

// policies are the policies that the engine keeps, by name.
type policies map[string]*Policy

// Policy returns the policy of a name, or nil. It takes no shard's lock: see Tx.SeeAll.
func (e *Engine) Policy(name string) *Policy {
	e.naming.RLock()
	defer e.naming.RUnlock()
	return e.policies[name]
}

// Policies returns all policies, sorted by name. It takes no shard's lock: see Tx.SeeAll.
func (e *Engine) Policies() []*Policy {
	e.naming.RLock()
	list := slices.Collect(maps.Values(e.policies))
	e.naming.RUnlock()
	slices.SortFunc(list, func(a, b *Policy) int { return strings.Compare(a.name, b.name) })
	return list
}

// applyPolicy sets a policy, and replaces that of the same name. The lock naming is held.
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

// applyPolicyDelete deletes a policy. The lock naming is held.
func (e *Engine) applyPolicyDelete(f *effect.Effect) { delete(e.policies, string(f.Key.Name)) }

// policyOf returns the policy that an effect.Policy sets.
func policyOf(f *effect.Effect) (*Policy, error) {
	p, err := rule.ParseStored(f.Key.Name, bytes.Split(f.Value, []byte{' '}))
	return NewPolicy(p), err
}

func (p *Policy) effect() effect.Effect {
	return effect.Effect{Kind: effect.Policy, Key: Key{Name: object.BytesOf(p.name)}, Value: object.BytesOf(p.text)}
}

// PolicyChanges is the result of SetPolicies.
type PolicyChanges struct {
	Names    []string // of the policies that are new or changed
	Switched []string // of the changed policies whose algorithm is another one
	Dropped  int      // how many keys were deleted because a changed policy cannot use them
}

// SetPolicies sets policies, whose names differ, and replaces those of the same names: all at once,
// at now (Unix ms). A changed limit applies from the next call on, and what was used before stays
// used. Counters continue.
//
// If the algorithm changes, the keys of the former algorithm are deleted, in all databases: those
// named `name:{…}` that hold its type and have a deadline. If the window of FIXED changes, the keys
// are deleted that count in a window which is not within a new one. Both visit every key while all
// calls wait: some 0.1 s for a million keys. The caller holds no lock.
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

// publish changes policies, which can be read without the lock of a shard. The changes are in the
// journal before they can be read, so that SeeAll covers them.
func (tx *Tx) publish(effects []effect.Effect) {
	tx.e.naming.Lock()
	defer tx.e.naming.Unlock()
	for i := range effects {
		tx.perform(nil, &effects[i])
	}
	tx.commit()
}

// dropKeysOf deletes the keys that the successors of policies cannot use. It passes its effects to
// the journal shard by shard: after a crash in between, the former policy has fewer keys.
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

// succession is a policy and the one that replaces it.
type succession struct{ before, after *Policy }

// successions are the successions by the policies' names.
type successions map[string]succession

// end reports whether an object is to be deleted with one of the policies: by its name, type and
// deadline the policy has created it, and the successor cannot use it.
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
