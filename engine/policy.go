package engine

import (
	"fmt"
	"math"

	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
)

// Setting a policy is an effect like any other, unless several engines share them.

// policiesInUse returns the shared policies, or the engine's own.
func (e *Engine) policiesInUse() *policy.Table {
	if shared := e.shared.Table(); shared != nil {
		return shared
	}
	return e.policies
}

// RequirePolicies makes Check return ErrOldPolicies unless the shared policies are of a version, or
// of a later one.
func (e *Engine) RequirePolicies(version uint64) { e.required.Store(version) }

// Policy returns the policy of a name, or nil. It takes no shard's lock: see Tx.SeeAll.
func (e *Engine) Policy(name string) *policy.Policy {
	e.naming.RLock()
	defer e.naming.RUnlock()
	return e.policiesInUse().Get(object.BytesOf(name))
}

// CountsNetworks reports whether any policy counts addresses as networks. It takes no lock.
func (e *Engine) CountsNetworks() bool { return e.policiesInUse().CountsNetworks() }

// NetworksOf returns as what the policy of a name counts addresses. It takes no shard's lock: a
// call that has hashed its keys by it has to ask Tx.KeysHold.
func (e *Engine) NetworksOf(name []byte) (n rule.Networks) {
	e.naming.RLock()
	defer e.naming.RUnlock()
	if p := e.policiesInUse().Get(name); p != nil {
		n = p.Networks()
	}
	return n
}

// Policies returns all policies, sorted by name. It takes no shard's lock: see Tx.SeeAll.
func (e *Engine) Policies() []*policy.Policy {
	var list []*policy.Policy
	e.ViewPolicies(func(v policy.View) { list = v.All() })
	return policy.Sort(list)
}

// applyPolicy sets a policy, and replaces that of the same name. The lock naming is held.
func (e *Engine) applyPolicy(f *effect.Effect) {
	p, err := policy.Parse(f.Key.Name, f.Value)
	if err != nil {
		panic(fmt.Sprintf("engine: %s: %v", f.Kind, err))
	}
	before := e.policies.Get(f.Key.Name)
	if before != nil && before.Rule().Kind != p.Rule().Kind {
		e.overrides.DeleteAll(before)
	}
	e.policies.Put(p, before)
}

func algorithmOf(p *policy.Policy) *algorithm { return algorithms[p.Rule().Kind] }

// PolicyChanges is the result of SetPolicies.
type PolicyChanges struct {
	Names    []string // of the policies that are new or changed
	Switched []string // of the changed policies whose algorithm is another one
	Dropped  int      // how many keys were deleted because a changed policy cannot use them
	// how many overrides were deleted, as the algorithm of their policy is another one
	Overrides int
}

// SetPolicies sets policies, whose names differ, and replaces those of the same names: all at once,
// at now (Unix ms). A changed limit applies from the next call on, and what was used before stays
// used. Counters continue. Overrides stay, unless the algorithm changes.
//
// If the algorithm changes, the keys of the former algorithm are deleted, in all databases: those
// named `name:{…}` that hold its type and have a deadline. If the window of FIXED changes, the keys
// are deleted that count in a window which is not within a new one. Both visit every key while all
// calls wait: some 0.1 s for a million keys. The caller holds no lock. If a script holds keys for
// too long, nothing changes, and the error is ErrBusy.
func (e *Engine) SetPolicies(now int64, list []*policy.Policy) (c PolicyChanges, err error) {
	return e.SetPoliciesWithin(now, list, math.MaxInt64)
}

// SetPoliciesWithin is SetPolicies, but nothing changes if the names and definitions of all
// policies together would become longer than most bytes. More than that may become shorter.
func (e *Engine) SetPoliciesWithin(now int64, list []*policy.Policy, most int64) (c PolicyChanges, err error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	var changed []*policy.Policy
	leaving := make(successions)
	for _, p := range list {
		before := e.Policy(p.Name())
		if before != nil && before.Definition() == p.Definition() {
			continue
		}
		changed = append(changed, p)
		c.Names = append(c.Names, p.Name())
		switch {
		case before == nil:
		case before.Rule().Kind != p.Rule().Kind:
			c.Switched = append(c.Switched, p.Name())
			leaving[p.Name()] = succession{before, p}
		case *before.Rule() != *p.Rule() && algorithmOf(p).succeeds != nil:
			leaving[p.Name()] = succession{before, p}
		}
	}
	var given []policy.Override
	var was, all int64
	e.ViewPolicies(func(v policy.View) { given, was, all = v.NewGiven(list), v.Bytes(), v.BytesWith(changed) })
	if all > max(was, most) {
		return PolicyChanges{}, Errorf("ERR the policies of a server may take %d bytes together, and would take %d: "+
			"a file of policies may have more", most, all)
	}
	if len(changed) == 0 && len(given) == 0 {
		return c, nil
	}
	tx := e.NewTx()
	if !tx.BeginUnlessHeld(now, 0, nil, true, true) {
		return PolicyChanges{}, ErrBusy
	}
	if len(leaving) > 0 {
		c.Dropped = tx.dropKeysOf(leaving)
	}
	var effects []effect.Effect
	for _, p := range changed {
		effects = append(effects, p.Effect())
	}
	before := e.Overrides()
	tx.Publish(effects...)
	c.Overrides, effects = int(before.Minus(e.Overrides()).N), effects[:0]
	for _, o := range given {
		f := o.Effect()
		f.Key = e.Key(f.Key.Name)
		effects = append(effects, f)
	}
	tx.Publish(effects...)
	tx.End()
	return c, nil
}

// Publish changes policies, which can be read without the lock of a shard. The changes are in the
// journal before they can be read, so that SeeAll covers them.
func (tx *Tx) Publish(effects ...effect.Effect) {
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
				if !o.Expired(tx.now) && leaving.end(o, tx.now) {
					due = append(due, o)
				}
			}
			tx.db = db
			for _, o := range due {
				tx.delete(tx.e.Key(object.BytesOf(o.Name())), o)
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
type succession struct{ before, after *policy.Policy }

type successions map[string]succession // by name

// end reports whether an object is to be deleted with one of the policies: by its name, type and
// deadline the policy has created it, and the successor cannot use it.
func (ss successions) end(o object.Object, now int64) bool {
	if o.Deadline() == 0 {
		return false
	}
	name, _, ok := policy.SplitKey(o.Name())
	s, found := ss[name]
	if !ok || !found || o.Kind() != algorithmOf(s.before).holds {
		return false
	}
	if s.before.Rule().Kind != s.after.Rule().Kind {
		return true
	}
	return !algorithmOf(s.after).succeeds(o, &Limit{Rule: *s.after.Rule()}, now)
}

// DeletePolicy deletes a policy with its overrides, and reports whether there was one. Its keys
// stay until they expire. No lock may be held. The error is that of SetPolicies.
func (e *Engine) DeletePolicy(now int64, name string) (found bool, err error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	if e.Policy(name) == nil {
		return false, nil
	}
	tx := e.NewTx()
	if !tx.BeginUnlessHeld(now, 0, nil, true, true) {
		return false, ErrBusy
	}
	tx.Publish(effect.Effect{Kind: effect.PolicyDelete, Key: Key{Name: []byte(name)}})
	tx.End()
	return true, nil
}
