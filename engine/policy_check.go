package engine

import (
	"fmt"
	"slices"

	"rlserver/engine/hits"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
	"rlserver/internal/stats"
)

// check is the scratch space of Check.
type check struct {
	running  bool
	all      *policy.Table    // those of the hold; nil: not known yet
	policies []*policy.Policy // in the order of the names
	limits   []Limit          // of the enforced policies, and then of those in SHADOW
	rules    []int            // the index of each limit's policy
	binding  int              // how many are enforced
}

func (c *check) reset() {
	clear(c.policies)
	clear(c.limits)
	c.policies, c.limits, c.rules, c.binding = c.policies[:0], c.limits[:0], c.rules[:0], 0
	if cap(c.limits) > keptParts {
		*c = check{all: c.all}
	}
}

// Check decides a call of cost hits against policies, each with the key at the same index of keys.
// Either all enforced policies (those not in SHADOW) admit the call and it is recorded for each, or
// nothing changes. The answer is about the enforced policies, as that of All, and Index is an index
// into names. If they admit it, each policy in SHADOW decides by itself: it records the call if it
// admits it; if not, or if its key holds another type, it only counts the denial. If no policy is
// enforced, the call is admitted, and the answer is about the policy with the least remaining.
//
// The id names the lease for policies with leases, which require it, and the hits for sliding
// windows. If all enforced sliding windows have the id, the call is a retry of an admitted one,
// which the other policies have counted already: it is admitted, and only leases are recorded,
// which are renewed, or taken again if they have expired. It is denied only if such a lease cannot
// be taken.
//
// The names must differ. The error names a policy that does not exist, is named twice or needs an
// id, or is ErrOldPolicies.
func (tx *Tx) Check(names [][]byte, keys []Key, cost int64, id []byte) (answer limit.Decision, err error) {
	if err := tx.findPolicies(names, keys, id); err != nil {
		return limit.Decision{}, err
	}
	c := &tx.check
	c.running = true
	defer func() { c.running = false }()
	bind, shadows := c.limits[:c.binding], c.limits[c.binding:]
	repeated := id != nil && tx.repeats(bind, id)
	switch {
	case len(bind) == 0:
		answer = tx.tryAll(shadows, cost)
	case repeated:
		answer, err = tx.repeat(bind, cost)
	default:
		answer, err = tx.All(bind, cost)
		if err == nil && cost > 0 {
			tx.tally(bind, answer.Allowed)
		}
	}
	if err != nil {
		return limit.Decision{}, err
	}
	answer.Index = c.rules[answer.Index]
	if len(bind) > 0 && answer.Allowed && !repeated && cost > 0 {
		answer.ShadowDenied = tx.tryAll(shadows, cost).ShadowDenied
	}
	return answer, nil
}

// CheckCountsOnce reports, after Check with an id, whether the call records nothing more when it is
// repeated: all its policies know ids. It is called before the locks are released.
func (tx *Tx) CheckCountsOnce() bool {
	return !slices.ContainsFunc(tx.check.limits, func(l Limit) bool { return l.algorithm().id == noID })
}

// findPolicies looks up the policies and builds their limits.
func (tx *Tx) findPolicies(names [][]byte, keys []Key, id []byte) error {
	c := &tx.check
	c.reset()
	if err := tx.usePolicies(); err != nil {
		return err
	}
	for _, name := range names {
		p := c.all.Get(name)
		switch {
		case p == nil:
			return Error(fmt.Sprintf("ERR no such policy '%.128s'", name))
		case slices.Contains(c.policies, p):
			return Error(fmt.Sprintf("ERR policy '%s' is named twice", name))
		case algorithmOf(p).id == namesLease && id == nil:
			return Error(fmt.Sprintf("ERR policy '%s' is of leases: RL.CHECK needs ID and the lease's id", name))
		}
		c.policies = append(c.policies, p)
	}
	c.add(false, keys, id)
	c.binding = len(c.limits)
	c.add(true, keys, id)
	return nil
}

// usePolicies sets the policies of the hold. A shard's lock is held.
func (tx *Tx) usePolicies() error {
	if tx.check.all != nil {
		return nil
	}
	if tx.e.shared.Version() < tx.e.required.Load() {
		return ErrOldPolicies
	}
	tx.check.all = tx.e.policiesInUse()
	return nil
}

// KeysHold returns an error if keys are not those that policies have for an id, policy:{id}, as an
// address is another network since they were hashed. Unknown policies have any keys.
func (tx *Tx) KeysHold(names [][]byte, keys []Key, id []byte) error {
	if err := tx.usePolicies(); err != nil {
		return err
	}
	for i, name := range names {
		p := tx.check.all.Get(name)
		if p == nil {
			continue
		}
		counted := id
		if n := p.Networks(); n != (rule.Networks{}) {
			if address, ok := rule.Address(id); ok {
				counted = n.Append(nil, id, address)
			}
		}
		if has := keys[i].Name[len(name)+len(":{"):]; string(has[:len(has)-len("}")]) != string(counted) {
			return errOtherNetwork
		}
	}
	return nil
}

const errOtherNetwork = Error("TRYAGAIN the IP4 or IP6 of a policy has just been changed: send the call again")

func (c *check) add(shadow bool, keys []Key, id []byte) {
	for i, p := range c.policies {
		if p.Shadow() != shadow {
			continue
		}
		c.limits = append(c.limits, Limit{Rule: *p.Rule()})
		l := &c.limits[len(c.limits)-1]
		l.Key = keys[i]
		if l.algorithm().id != noID {
			l.ID = id
		}
		c.rules = append(c.rules, i)
	}
}

// repeats reports whether there are sliding windows, and all of them have the id.
func (tx *Tx) repeats(limits []Limit, id []byte) bool {
	found := false
	for i := range limits {
		l := &limits[i]
		if l.algorithm().id != namesHits {
			continue
		}
		z, ok := tx.lookup(l.Key).(*object.ZSet)
		if !ok || tx.leased(z) {
			return false
		}
		log := hits.In(z)
		if at, ok := log.Admitted(id); !ok || at <= float64(tx.now-l.Slide.Length) {
			return false
		}
		found = true
	}
	return found
}

// repeat decides a call that was admitted before.
func (tx *Tx) repeat(limits []Limit, cost int64) (answer limit.Decision, err error) {
	held := cost // the cost for leases; 0 if one of them cannot be taken
	for i := range limits {
		d, err := tx.All(limits[i:i+1], 0)
		if err != nil {
			return limit.Decision{}, err
		}
		if limits[i].algorithm().id == namesLease && !d.Allowed {
			held = 0
			tx.count(&limits[i], i, cost > 0, false)
		}
	}
	for i := range limits {
		var d limit.Decision
		if limits[i].algorithm().id == namesLease {
			d, _ = tx.All(limits[i:i+1], held) // it has no error: the peek had none
		} else {
			d, _ = tx.All(limits[i:i+1], 0)
			d.Allowed, d.RetryAfter, d.Free = true, 0, true
		}
		answer = and(answer, d, i)
	}
	return answer, nil
}

// former deletes what another definition of a policy has left under a key, and returns nil: a
// limiter or sorted set with a deadline. It returns any other object, and all outside of Check.
func (tx *Tx) former(k Key, o object.Object) object.Object {
	switch o.(type) {
	case *object.ZSet, object.State:
	default:
		return o
	}
	if !tx.check.running || o.Deadline() == 0 {
		return o
	}
	if !tx.dryRun {
		tx.delete(k, o)
	}
	return nil
}

// leased reports whether Check meets a log of a former policy of leases: hits are in the past.
func (tx *Tx) leased(o object.Object) bool {
	z, ok := o.(*object.ZSet)
	if !tx.check.running || !ok || z.Set.Len() == 0 {
		return false
	}
	last := z.Set.ScoreAt(z.Set.Len() - 1)
	return last > float64(tx.now)
}

// and combines the answer about the i-th limit with that about the limits before it.
func and(answer, d limit.Decision, i int) limit.Decision {
	if d.Index = i; i == 0 {
		return d
	}
	return answer.And(d)
}

// tryAll decides a call against each of the policies in SHADOW by itself, and combines their
// answers into one, which admits it.
func (tx *Tx) tryAll(limits []Limit, cost int64) (answer limit.Decision) {
	denied := false
	for i := range limits {
		d, err := tx.all(limits[i:i+1], cost, true)
		if err != nil {
			d = limit.Decision{Limit: limits[i].algorithm().allows(&limits[i])}
		}
		if err != nil || !tx.parts[0].repeated {
			tx.count(&limits[i], len(tx.check.limits)-len(limits)+i, cost > 0, d.Allowed)
		}
		denied = denied || !d.Allowed
		d.Allowed, d.RetryAfter, d.Free = true, 0, true
		answer = and(answer, d, i)
	}
	answer.ShadowDenied = denied
	return answer
}

// tally counts the decisions of the last All, in which each policy has a key of its own: either all
// have admitted the call, or some have denied it.
func (tx *Tx) tally(limits []Limit, admitted bool) {
	for i := range tx.parts {
		p := &tx.parts[i]
		tx.count(&limits[i], i, !p.repeated && (admitted || !p.answer.Allowed), admitted)
	}
}

// count counts a decision about the i-th of all limits if wanted is true.
func (tx *Tx) count(l *Limit, i int, wanted, admitted bool) {
	if wanted && !tx.dryRun {
		p := tx.check.policies[tx.check.rules[i]]
		outcome := stats.Admitted
		switch {
		case !admitted && p.Shadow():
			outcome = stats.ShadowDenied
		case !admitted:
			outcome = stats.Denied
		}
		p.Count(tx.e.shardIndex(l.Key.Hash), outcome)
	}
}
