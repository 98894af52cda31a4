package engine

import (
	"rlserver/engine/counts"
	"rlserver/engine/effect"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
)

// ViewPolicies calls view with the policies in use, and their overrides. It takes no shard's lock:
// see Tx.SeeAll.
func (e *Engine) ViewPolicies(view func(policy.View)) {
	e.naming.RLock()
	defer e.naming.RUnlock()
	view(e.PoliciesLocked())
}

// PoliciesLocked is the argument of ViewPolicies for who holds the lock of a shard, and only for
// what is in that.
func (e *Engine) PoliciesLocked() policy.View {
	v := policy.View{Version: e.shared.Version(), Overrides: e.overrides}
	v.Table = e.policiesInUse() // after its version: it may be a later one
	return v
}

// Overrides returns how many overrides there are of all policies, and their memory.
func (e *Engine) Overrides() (sum counts.Load) {
	e.ViewPolicies(func(v policy.View) { sum = v.Overrides.Size() })
	return sum
}

// Overrides is the sum of Engine.Overrides.
func (m *Memory) Overrides() (sum counts.Load) {
	for _, e := range m.Engines() {
		sum = sum.Plus(e.Overrides())
	}
	return sum
}

// numbersFor sets a rule to the numbers that a policy has for the id of a key.
func (tx *Tx) numbersFor(p *policy.Policy, k Key, r *rule.Rule) {
	if o, found := tx.e.overrides.Find(k.Hash, k.Name); found {
		if numbers, ok := p.Numbers(o); ok {
			*r = numbers
		}
	}
}

// applyOverride applies effect.Override and OverrideDelete. The lock naming is held.
func (e *Engine) applyOverride(f *effect.Effect) {
	switch {
	case f.Kind == effect.Override:
		o := policy.Override{Key: string(f.Key.Name), Definition: string(f.Value), Since: uint64(f.Lo)}
		e.overrides.Put(f.Key.Hash, o)
		if e.shared != nil {
			e.shared.MarkOverridden(o.Policy())
		} else {
			e.policies.MarkOverridden(o.Policy())
		}
	case len(f.Key.Name) == 0:
		e.overrides.Clear()
	default:
		e.overrides.Delete(f.Key.Hash, f.Key.Name)
	}
}
