package engine

import (
	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
)

// lease limits concurrency. A key holds a sorted set with one member per lease, named by its id;
// its score is the time at which it expires, in Unix ms. A non-empty id renews the lease that it
// names, or takes a new one. The key's deadline is the time at which the last lease expires. An
// admitted call drops expired leases.
var lease = algorithm{
	holds: object.TypeZSet,
	id:    namesLease,
	decide: func(tx *Tx, p *part) error {
		p.answer = tx.decideLease(p.object, p.limit.Lease, p.limit.ID, p.cost)
		return nil
	},
	record: func(tx *Tx, p *part, expireAt int64) object.Object {
		return tx.recordLease(p.limit.Key, p.object, p.limit.Lease, p.limit.ID, expireAt)
	},
	admitsFrom: func(tx *Tx, p *part, t int64) int64 {
		return p.limit.Lease.AdmitsFrom(&tx.log, tx.log.Rank(p.limit.ID), t)
	},
}

func (tx *Tx) decideLease(o object.Object, rule limit.Lease, id []byte, cost int64) limit.Decision {
	tx.log.Load(o, &tx.few)
	return rule.Decide(&tx.log, tx.log.Rank(id), tx.now, cost)
}

func (tx *Tx) recordLease(k Key, o object.Object, rule limit.Lease, id []byte, expireAt int64) object.Object {
	o = tx.dropLapsed(k, o)
	o = tx.apply(o, &effect.Effect{Kind: effect.Add, Key: k, Field: id, Score: float64(tx.now + rule.TTL)})
	return tx.apply(o, &effect.Effect{Kind: effect.Expire, Key: k, ExpireAt: expireAt})
}

// dropLapsed deletes the leases that have expired, and the key with the last of them.
func (tx *Tx) dropLapsed(k Key, o object.Object) object.Object {
	z, _ := o.(*object.ZSet)
	if z == nil {
		return o
	}
	if lapsed := z.Set.FirstAfter(float64(tx.now)); lapsed > 0 {
		return tx.apply(o, &effect.Effect{Kind: effect.RemoveSpan, Key: k, Hi: lapsed})
	}
	return o
}

// Release ends a lease, and reports whether the id held one: an expired lease is not held. The
// key's deadline is then the time at which the last of the other leases expires; without others the
// key is deleted.
func (tx *Tx) Release(k Key, id []byte) (bool, error) {
	o := tx.lookup(k)
	z, err := as[*object.ZSet](o)
	if z == nil {
		return false, err
	}
	if lapse, ok := z.Set.Score(id); !ok || lapse <= float64(tx.now) {
		return false, nil
	}
	tx.dropLapsed(k, o) // the key remains: one lease is held
	if o = tx.apply(o, &effect.Effect{Kind: effect.Remove, Key: k, Field: id}); o == nil || z.Set.Len() == 0 {
		return true, nil
	}
	last := z.Set.ScoreAt(z.Set.Len() - 1)
	if at := tx.outlast(limit.Lapse(last), z.Ext.Reservations(), z.Ext.Bans()); at != z.ExpireAt {
		tx.apply(o, &effect.Effect{Kind: effect.Expire, Key: k, ExpireAt: at})
	}
	return true, nil
}
