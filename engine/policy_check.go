package engine

import (
	"math"
	"slices"

	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/policy"
	"rlserver/engine/reserve"
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
	banned   bool             // the call has caused a ban
	charges  bool             // the call is recorded beyond the limits: it denies nothing
}

func (c *check) reset() {
	clear(c.policies)
	clear(c.limits)
	c.policies, c.limits, c.rules, c.binding = c.policies[:0], c.limits[:0], c.rules[:0], 0
	c.banned, c.charges = false, false
	if cap(c.limits) > keptParts {
		*c = check{all: c.all}
	}
}

// CheckCall is a call of Check against policies. The slices stay the caller's.
type CheckCall struct {
	Names [][]byte
	Keys  []Key   // one for each policy
	Of    []byte  // the id that the keys have to be of, see Tx.KeysHold; nil: any
	Costs []int64 // one for all, or one for each policy; otherwise as those of All
	ID    []byte  // nil: none
	Force bool    // record it beyond the limits too, see Charge
	TTL   int64   // ms for which the costs are reserved for the ID; 0: they are recorded
}

// Check decides a call against policies. Either all enforced policies (those not in SHADOW) admit
// the call and it is recorded for each, or nothing changes. The answer is about the enforced
// policies, as that of All, and Index is an index into names. If they admit it, each policy in
// SHADOW decides by itself: it records the call if it admits it; if not, or if its key holds
// another type, it only counts the denial. If no policy is enforced, the call is admitted, and the
// answer is about the policy with the least remaining.
//
// The id names the lease for policies with leases, which require it, and the hits for sliding
// windows. If all enforced sliding windows have the id, the call is a retry of an admitted one,
// which the other policies have counted already: it is admitted, and only leases are recorded,
// which are renewed, or taken again if they have expired. It is denied only if such a lease cannot
// be taken.
//
// A policy that bans counts the calls that it denies, outside of a ban. While a ban lasts, it
// denies every call, retries too, that has a cost for it or is a peek.
//
// With Force, the call is recorded for each policy as Charge does it.
//
// An error names a policy that is missing, named twice or lacks an id, or is ErrOldPolicies.
func (tx *Tx) Check(call CheckCall) (answer limit.Decision, err error) {
	if err := tx.findPolicies(&call); err != nil {
		return limit.Decision{}, err
	}
	c := &tx.check
	c.running = true
	defer func() { c.running = false }()
	bind, shadows, m := c.limits[:c.binding], c.limits[c.binding:], manner{peek: !asks(c.limits)}
	m.charge = call.Force && !m.peek
	c.charges = m.charge
	repeated := call.ID != nil && call.TTL == 0 && !tx.anyBanned(bind, m.peek) && tx.repeats(bind, call.ID, m.peek)
	switch {
	case len(bind) == 0:
		answer = tx.tryAll(shadows, m)
	case repeated:
		answer, err = tx.repeat(bind, m)
	default:
		answer, err = tx.decide(bind, m)
	}
	if err != nil {
		return limit.Decision{}, err
	}
	if c.banned { // the answer is that of the ban
		tx.DryRun(func() { answer, err = tx.all(bind, m) })
		if err != nil {
			return limit.Decision{}, err
		}
	}
	answer.Index = c.rules[answer.Index]
	if len(bind) > 0 && (answer.Allowed || m.charge) && !repeated && !m.peek {
		answer.ShadowDenied = tx.tryAll(shadows, m).ShadowDenied
	}
	return answer, nil
}

// decide decides a call against the enforced policies, and counts it for each.
func (tx *Tx) decide(limits []Limit, m manner) (limit.Decision, error) {
	answer, err := tx.all(limits, m)
	if err != nil {
		return limit.Decision{}, err
	}
	tx.tally(limits, answer.Allowed || m.charge)
	if m.charge && !answer.Allowed {
		return tx.chargeBeyond(limits, m)
	}
	return answer, nil
}

// CheckCountsOnce reports, after Check with an id, whether the call records nothing more when it is
// repeated: all its policies know ids, and none counts denials. It is called before the locks are
// released.
func (tx *Tx) CheckCountsOnce() bool {
	return !slices.ContainsFunc(tx.check.limits, func(l Limit) bool {
		return l.algorithm().id == noID && l.Hold.TTL == 0 || l.Ban != nil
	})
}

// findPolicies looks up the policies and builds their limits.
func (tx *Tx) findPolicies(call *CheckCall) error {
	c := &tx.check
	c.reset()
	if err := tx.usePolicies(); err != nil {
		return err
	}
	for _, name := range call.Names {
		p := c.all.Get(name)
		switch {
		case p == nil:
			return policy.NoSuchPolicy(name)
		case call.Of != nil && !p.HasKey(call.Keys[len(c.policies)].Name, call.Of):
			return errOtherNetwork
		case slices.Contains(c.policies, p):
			return Errorf("ERR policy '%s' is named twice", name)
		case algorithmOf(p).id == namesLease && call.ID == nil:
			return Errorf("ERR policy '%s' is of leases: RL.CHECK needs ID and the lease's id", name)
		}
		c.policies = append(c.policies, p)
	}
	tx.addLimits(call, false)
	c.binding = len(c.limits)
	tx.addLimits(call, true)
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
		if p := tx.check.all.Get(name); p != nil && !p.HasKey(keys[i].Name, id) {
			return errOtherNetwork
		}
	}
	return nil
}

const errOtherNetwork = Error("TRYAGAIN the IP4 or IP6 of a policy has just been changed: send the call again")

func (tx *Tx) addLimits(call *CheckCall, shadow bool) {
	c := &tx.check
	for i, p := range c.policies {
		if p.Shadow() != shadow {
			continue
		}
		n := len(c.limits)
		if n == cap(c.limits) {
			c.limits = append(c.limits, Limit{})
		}
		c.limits = c.limits[:n+1] // reset has cleared it
		l := &c.limits[n]
		l.Rule = *p.Rule()
		l.Key, l.Cost = call.Keys[i], call.Costs[min(i, len(call.Costs)-1)]
		if l.Ban = p.Ban(); p.Overridden() {
			tx.numbersFor(p, l.Key, &l.Rule)
		}
		if use := l.algorithm().id; use == namesLease || use == namesHits && call.TTL == 0 {
			l.ID = call.ID
		}
		l.Hold = reserve.Request{Call: call.ID, TTL: call.TTL}
		c.rules = append(c.rules, i)
	}
}

// repeats reports whether there are sliding windows of which the call asks something, and all of
// them have the id.
func (tx *Tx) repeats(limits []Limit, id []byte, peek bool) bool {
	found := false
	for i := range limits {
		l := &limits[i]
		if l.algorithm().id != namesHits || l.Cost == 0 && !peek {
			continue
		}
		o := tx.lookupPacked(l.Key)
		if object.TypeOf(o) != object.TypeZSet || tx.leased(o) {
			return false
		}
		tx.log.Load(o, &tx.few)
		if at, ok := tx.log.Admitted(id); !ok || at <= float64(tx.now-l.Slide.Length) {
			return false
		}
		found = true
	}
	return found
}

// repeat decides a call that was admitted before.
func (tx *Tx) repeat(limits []Limit, m manner) (answer limit.Decision, err error) {
	renews := func(l *Limit) bool { return l.algorithm().id == namesLease && (l.Cost > 0 || m.peek) }
	lacking := false // one of the leases cannot be taken
	for i := range limits {
		d, err := tx.look(limits[i : i+1])
		if err != nil {
			return limit.Decision{}, err
		}
		if renews(&limits[i]) && !d.Allowed {
			lacking = true
			tx.count(&limits[i], i, true, false)
		}
	}
	for i := range limits {
		var d limit.Decision // it has no error: the look had none
		switch one := limits[i : i+1]; {
		case !renews(&limits[i]):
			d, _ = tx.look(one)
			d.Allowed, d.RetryAfter, d.Free = true, 0, true
		case m.charge:
			d, _ = tx.Charge(one)
		case lacking:
			d, _ = tx.look(one)
		default:
			d, _ = tx.All(one)
		}
		answer = answer.Next(d, i)
	}
	if lacking && limit.After(tx.now, answer.RetryAfter) >= tx.knownUntil(limits, m.peek) {
		tx.DryRun(func() { answer, err = tx.all(limits, m) }) // then it is another call
	}
	return answer, err
}

// knownUntil returns when the first sliding window of which a repeated call asks something forgets
// its id, Unix ms.
func (tx *Tx) knownUntil(limits []Limit, peek bool) int64 {
	until := int64(math.MaxInt64)
	for i := range limits {
		l := &limits[i]
		if l.algorithm().id != namesHits || l.Cost == 0 && !peek {
			continue
		}
		o := tx.lookupPacked(l.Key)
		tx.log.Load(o, &tx.few)
		if at, ok := tx.log.Admitted(l.ID); ok {
			until = min(until, limit.After(limit.Lapse(at), l.Slide.Length), goneAt(o))
		}
	}
	return until
}

// look returns the answer of one limit to a peek.
func (tx *Tx) look(one []Limit) (d limit.Decision, err error) {
	cost := one[0].Cost
	one[0].Cost = 0
	d, err = tx.All(one)
	one[0].Cost = cost
	return d, err
}

// former returns nil for what another definition of a policy has left under its key: a limiter or
// sorted set with a deadline. A call that changes the key deletes it. It returns any other object,
// and all outside of Check.
func (tx *Tx) former(o object.Object) object.Object {
	switch o.(type) {
	case *object.ZSet, *object.Log, object.State:
	default:
		return o
	}
	if !tx.check.running || o.Deadline() == 0 {
		return o
	}
	return nil
}

// leased reports whether Check meets a log of a former policy of leases: hits are in the past.
func (tx *Tx) leased(o object.Object) bool {
	if !tx.check.running {
		return false
	}
	tx.log.Load(o, &tx.few)
	if tx.log.Len() == 0 {
		return false
	}
	last := tx.log.At(tx.log.Len() - 1)
	return last > float64(tx.now) && limit.Lapse(last) == o.Deadline()
}

// tryAll decides a call against each of the policies in SHADOW by itself, and combines their
// answers into one, which admits it.
func (tx *Tx) tryAll(limits []Limit, m manner) (answer limit.Decision) {
	denied := false
	m.shadow = true
	for i := range limits {
		d, err := tx.all(limits[i:i+1], m)
		if err != nil {
			d = limit.Decision{Limit: *limits[i].Bound()}
		}
		if err != nil || !tx.parts[0].repeated {
			tx.count(&limits[i], len(tx.check.limits)-len(limits)+i, true, d.Allowed)
		}
		denied = denied || !d.Allowed && (limits[i].Cost > 0 || m.peek)
		if m.charge && err == nil && !d.Allowed {
			if charged, err := tx.chargeBeyond(limits[i:i+1], m); err == nil {
				d = charged
			}
		}
		d.Allowed, d.RetryAfter, d.Free = true, 0, true
		answer = answer.Next(d, i)
	}
	answer.ShadowDenied = denied
	return answer
}

// tally counts the decisions of the last All, in which each policy has a key of its own: if the
// call is recorded those of all policies, otherwise the denials.
func (tx *Tx) tally(limits []Limit, recorded bool) {
	for i := range tx.parts {
		p := &tx.parts[i]
		tx.count(&limits[i], i, !p.repeated && (recorded || !p.answer.Allowed), p.answer.Allowed)
	}
}

// count counts a decision about the i-th of all limits if wanted is true and it had a cost.
func (tx *Tx) count(l *Limit, i int, wanted, admitted bool) {
	if wanted && l.Cost > 0 && !tx.dryRun {
		if l.Ban != nil && !admitted && !tx.check.charges {
			tx.check.banned = tx.countDenial(l) || tx.check.banned
		}
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
