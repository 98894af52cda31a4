// Package overrides changes what policies say for single ids. A decision finds that under the lock
// that it holds, and by the hash that it has, as an override is in the shard of the key that its id
// has, policy:{id}: a change of one costs nothing for the others. In a cluster it is in the group
// of that key's slot.
package overrides

import (
	"fmt"

	"rlserver/engine"
	"rlserver/engine/effect"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
)

// Set gives an id other numbers of a policy, from the next call on, at now (Unix ms); k is the key
// of the id, see Tx.KeysHold. The definition has the policy's algorithm, and no options of
// policies. most is how many overrides all engines of the memory may have together, but for calls
// that run at the same time. No lock may be held. If a script holds the key for too long, the error
// is ErrBusy.
func Set(e *engine.Engine, now int64, k engine.Key, id []byte, d rule.Definition, most int64) error {
	count := e.Memory().Overrides().N
	return change(e, now, k, []byte(d.Name), id, func(tx *engine.Tx, v policy.View, p *policy.Policy) error {
		if kind := p.Rule().Kind; kind != d.Rule.Kind {
			const format = "ERR policy '%s' is %s: FOR takes other numbers of the same algorithm"
			return engine.Error(fmt.Sprintf(format, d.Name, kind.Algorithm().Name))
		}
		if _, found := v.Overrides.Find(k.Hash, k.Name); count >= most && !found {
			const format = "ERR policies have other numbers for %d ids, and max-overrides allows %d: delete some " +
				"with RL.POLICY DEL name FOR id"
			return engine.Error(fmt.Sprintf(format, count, most))
		}
		since := max(v.Version, p.Since())
		tx.Publish(effect.Effect{Kind: effect.Override, Key: k, Value: []byte(d.Text), Lo: int(since)})
		return nil
	})
}

// Delete removes what Set has set, and reports whether there was anything. A policy that does not
// exist is an error.
func Delete(e *engine.Engine, now int64, k engine.Key, name, id []byte) (found bool, err error) {
	err = change(e, now, k, name, id, func(tx *engine.Tx, v policy.View, p *policy.Policy) error {
		var o policy.Override
		if o, found = v.Overrides.Find(k.Hash, k.Name); found {
			tx.Publish(effect.Effect{Kind: effect.OverrideDelete, Key: k})
			found = o.Since >= p.Since()
		}
		return nil
	})
	return found, err
}

func change(
	e *engine.Engine, now int64, k engine.Key, name, id []byte,
	do func(*engine.Tx, policy.View, *policy.Policy) error,
) error {
	tx, keys := e.NewTx(), []engine.Key{k}
	if !tx.BeginUnlessHeld(now, 0, keys, false, true) {
		return engine.ErrBusy
	}
	defer tx.End()
	if err := tx.KeysHold([][]byte{name}, keys, id); err != nil {
		return err
	}
	v := e.PoliciesLocked()
	p := v.Get(name)
	if p == nil {
		return policy.NoSuchPolicy(name)
	}
	return do(tx, v, p)
}

// Sweeper drops the overrides of shared policies that no longer exist, or have another algorithm
// now, in the engine that leads. What counts for a decision does not depend on it. It is for use by
// one goroutine.
type Sweeper struct {
	e    *engine.Engine
	next policy.Sweep
}

// NewSweeper returns a Sweeper of an engine.
func NewSweeper(e *engine.Engine) *Sweeper { return &Sweeper{e: e} }

// Step takes a step at now (Unix ms), and reports whether there may be more.
func (s *Sweeper) Step(now int64) (more bool) {
	const most = 256 // under one hold of locks
	var old []string
	s.e.ViewPolicies(func(v policy.View) {
		if v.Version > 0 {
			old, more = s.next.Next(v, most)
		}
	})
	keys := make([]engine.Key, len(old))
	for i, name := range old {
		keys[i] = s.e.Key([]byte(name))
	}
	tx := s.e.NewTx()
	if !more || !tx.BeginUnlessHeld(now, 0, keys, false, true) {
		return false
	}
	defer tx.End()
	v := s.e.PoliciesLocked()
	var effects []effect.Effect
	for _, k := range keys {
		if o, found := v.Overrides.Find(k.Hash, k.Name); found && v.IsOld(o, v.Version) {
			effects = append(effects, effect.Effect{Kind: effect.OverrideDelete, Key: k})
		}
	}
	tx.Publish(effects...)
	return true
}
