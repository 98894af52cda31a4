package engine

import "rlserver/engine/limit"

// standing is how near a limiter was to denying at its last call. It is neither in the log nor in a snapshot, as no decision depends on it:
// it says whom eviction would help to calls that they must not have. What is no limiter stands as one that has not been asked yet.
type standing uint8

const (
	unasked   standing = iota
	roomy              // less than half of it is used
	spent              // its first call has used all of it
	worn               // half of it is used, or more
	exhausted          // there is nothing left
	denying            // a call was denied, and since then none has found room to spare
)

const (
	standingBits = 3
	standingMask = 1<<standingBits - 1
)

// after is the standing after one more decision. fresh is true of the first.
func (s standing) after(d limit.Decision, fresh bool) standing {
	switch {
	case !d.Allowed && d.RetryAfter != limit.Never:
		return denying
	case !d.Allowed: // it tells nothing of what is left
		return s
	case d.Remaining == 0 && fresh:
		return spent
	case d.Remaining == 0:
		return max(s, exhausted)
	case d.Remaining <= d.Limit/2:
		return worn
	}
	return roomy
}

// noted notes what was decided of a key: how it stands now, and whether it was denied. o is what the key holds then, nil for nothing;
// fresh tells that this is new. It returns the decision. In a dry run a denial is not counted, but the
// waiter needs the key to stay. A policy in SHADOW denies nothing.
func (tx *Tx) noted(k Key, o object, fresh bool, cost int64, d limit.Decision, shadow bool) limit.Decision {
	if tx.dryRun && d.Allowed {
		return d
	}
	if o != nil {
		s := o.standing().after(d, fresh)
		if shadow {
			s = min(s, exhausted)
		}
		o.stand(s)
	}
	if !d.Allowed && cost > 0 && !shadow && !tx.dryRun {
		tx.e.shardOf(k).denied.add(tx.db, k)
	}
	return d
}

// Denied notes that a call on a key was denied that no limiter here has decided: RL.TOP counts it, and the policy ratelimit keeps the key.
func (tx *Tx) Denied(k Key) {
	if o := tx.find(tx.db, k); o != nil {
		o.stand(denying)
	}
	tx.e.shardOf(k).denied.add(tx.db, k)
}
