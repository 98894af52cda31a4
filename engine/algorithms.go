package engine

import (
	"rlserver/engine/effect"
	"rlserver/engine/hits"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/rule"
)

// algorithm implements a limiter algorithm that package rule declares: the objects of its keys, and
// its decisions. One limit (Decide), several (All) and policies (Check) use it.
type algorithm struct {
	holds object.Type
	id    idUse

	// decide decides for the object of one key. It sets the part's answer, and the fields that
	// record needs.
	decide func(tx *Tx, p *part) error

	// record records an admitted call; nil: decide has set the part's effect to the state after it.
	record func(tx *Tx, p *part, expireAt int64) object.Object

	// admitsFrom returns the earliest time, from t on, at which a denied call is admitted. tx.log
	// is the log of the key, and tx.budget limits the steps. nil: a limit that would admit the call
	// continues to admit it while nothing else happens.
	admitsFrom func(tx *Tx, p *part, t int64) int64

	// alone decides a call of cost by one of the rules of a part, as reserve.Limiter says; nil:
	// reservations do not count.
	alone func(tx *Tx, p *part, one int, at, held, cost int64) limit.Decision

	// succeeds reports whether a limit can continue with the state that another limit of the same
	// algorithm has left; nil: any can.
	succeeds func(o object.Object, l *Limit, now int64) bool
}

// algorithms is the table of algorithms, by kind.
var algorithms = [...]*algorithm{
	rule.Slide: &slide,
	rule.Token: &token,
	rule.Fixed: &fixed,
	rule.Lease: &lease,
	rule.Leaky: &leaky,

	rule.Counter: &slidingCounter,
}

// idUse is the meaning of the id of a limit.
type idUse uint8

const (
	noID idUse = iota
	// it names the hits of the call in a log: while they are there, the call is not recorded again
	namesHits
	namesLease // it names the lease, and is required
)

func (l *Limit) algorithm() *algorithm { return algorithms[l.Kind] }

func (a *algorithm) fits(o object.Object) bool { return o == nil || o.Kind() == a.holds }

// applyState sets the state of an object that the effect fits.
func (e *Engine) applyState(o object.Object, f *effect.Effect) (after object.Object, ok bool) {
	form := object.FormSetBy(f.Kind)
	if form == 0 {
		return nil, false
	}
	sh := e.shardOf(f.Key)
	if o == nil {
		o = sh.create(f.DB, f.Key, form, 0)
	}
	object.SetState(o, f)
	sh.setDeadline(f.DB, f.Key.Hash, o, f.ExpireAt)
	return o, true
}

// applyExtension changes the extension of a limiter, which gets one.
func (e *Engine) applyExtension(o object.Object, f *effect.Effect) object.Object {
	sh := e.shardOf(f.Key)
	o = e.unpacked(f.DB, f.Key, o)
	switch form := object.Form(f.Hi); {
	case o != nil:
	case form == 0:
		o = sh.insert(f.DB, f.Key.Hash, e.newZSet(f.Key.Name))
	default:
		o = sh.create(f.DB, f.Key, form, 0)
	}
	weight, held := object.ExtensionOf(o).Weight(), object.ExtensionOf(o).Held()
	extended, x := object.Extend(o)
	if extended != o {
		used, pressure := o.Accessed(), o.Pressure()
		sh.remove(f.DB, f.Key.Hash, o)
		o = sh.insert(f.DB, f.Key.Hash, extended)
		o.Touch(used)
		o.SetPressure(pressure)
		weight = x.Weight() // the rest is that of the limiter, which does not change
	}
	object.ChangeExtension(x, f)
	e.grown(f, x.Weight()-weight)
	sh.holds(f.DB, x.Held().Minus(held))
	if f.Kind == effect.Reserve || f.Kind == effect.Ban {
		sh.setDeadline(f.DB, f.Key.Hash, o, f.ExpireAt)
	}
	if z, ok := o.(*object.ZSet); ok && x.Empty() && z.Set.Len() == 0 {
		return e.drop(o, f)
	}
	return o
}

// Refund gives back n hits, 1 or more, and returns how many it gave back: at most those that were
// used, so 0 for a missing key. The key keeps its deadline, but a limiter that is unused afterwards
// is deleted.
//
// A sliding window loses its newest hits; with an id (not nil), those recorded under it, the first
// name last, so that a repeated call with that id is recognized while any of them remains. A token
// bucket regains tokens, at most those that were missing after its last admitted call. A fixed
// window loses hits of the current window. With an id, limiters without a log return ErrNoIDs.
func (tx *Tx) Refund(k Key, n int64, id []byte) (int64, error) {
	o := tx.lookup(k)
	switch o := o.(type) {
	case nil:
		return 0, nil
	case *object.ZSet:
		if id != nil {
			return tx.refundNamed(k, o, n, id), nil
		}
		return tx.refundNewest(k, o, n), nil
	case object.State:
		if id != nil {
			return 0, ErrNoIDs
		}
		return tx.refundState(k, o, n), nil
	}
	return 0, ErrWrongType
}

// Held returns how many hits of a limiter are reserved; 0 for any other key.
func (tx *Tx) Held(k Key) int64 { return object.ExtensionOf(tx.peek(k)).Reservations().Held(tx.now) }

func (tx *Tx) refundNewest(k Key, o *object.ZSet, n int64) int64 {
	size := o.Set.Len()
	if n = min(n, int64(size)); n > 0 {
		tx.apply(o, &effect.Effect{Kind: effect.RemoveSpan, Key: k, Lo: size - int(n), Hi: size})
	}
	return n
}

func (tx *Tx) refundNamed(k Key, o *object.ZSet, n int64, id []byte) int64 {
	effects, back := hits.GiveBack(&o.Set, k, n, id)
	for i := range effects {
		tx.apply(o, &effects[i])
	}
	return back
}

func (tx *Tx) refundState(k Key, o object.State, n int64) int64 {
	f := &effect.Effect{Key: k, ExpireAt: o.Deadline()}
	back, used := o.Refund(f, tx.now, n)
	switch {
	case back == 0:
	case used || !object.ExtensionOf(o).Empty():
		tx.apply(o, f)
	default:
		tx.delete(k, o)
	}
	return back
}
