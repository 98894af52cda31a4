package engine

import (
	"bytes"
	"sort"

	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/engine/rule"
)

// algorithm is one of those that package rule has the words for: what its keys hold, and what it
// does. Everything that decides goes by it, be it one limit (Decide), several (All) or policies
// (Check).
type algorithm struct {
	holds object.Type
	id    idUse

	// allows is how much a limit allows.
	allows func(*Limit) int64

	// decide decides for one key, of which it looks at the object. It sets the answer, and what
	// record needs.
	decide func(tx *Tx, p *part, cost int64) error

	// record records an admitted call; nil: decide has set the part's effect to the state after it.
	record func(tx *Tx, p *part, cost, expireAt int64) object.Object

	// admitsFrom is the earliest moment, from t on, at which a call is admitted that was denied;
	// tx.log is that of the key, and tx.budget for steps. nil: once the limit would admit the call,
	// it goes on to do so for as long as nothing else happens.
	admitsFrom func(tx *Tx, p *part, t, cost int64) int64

	// succeeds reports whether a limit can go on with what another one of the same algorithm has
	// left; nil: any can.
	succeeds func(o object.Object, l *Limit, now int64) bool
}

// algorithms are all there are.
var algorithms = [...]*algorithm{
	rule.Slide: &slide,
	rule.Token: &token,
	rule.Fixed: &fixed,
	rule.Lease: &lease,
	rule.Leaky: &leaky,

	rule.Counter: &slidingCounter,
}

// idUse is what the id of a limit does.
type idUse uint8

const (
	noID idUse = iota
	// it names the call's hits in a log, and is not recorded again while they are there; nil for
	// none
	namesHits
	namesLease // it is that of the lease, and has to be there
)

func (l *Limit) algorithm() *algorithm { return algorithms[l.Kind] }

func (a *algorithm) fits(o object.Object) bool { return o == nil || o.Kind() == a.holds }

// applyState sets the state of an object that the effect fits.
func (e *Engine) applyState(o object.Object, f *effect.Effect) (after object.Object, ok bool) {
	switch f.Kind {
	case effect.Tokens, effect.Bucket:
		t := holding(e, o, f, object.NewToken)
		t.SetTokens(f.Tokens)
		after = t
	case effect.Count, effect.Window:
		c := holding(e, o, f, object.NewFixed)
		c.SetCount(f.Count)
		after = c
	case effect.Counter:
		c := holding(e, o, f, object.NewCounter)
		c.SetCounts(f.Counts)
		after = c
	default:
		return nil, false
	}
	e.shardOf(f.Key).setDeadline(f.DB, f.Key.Hash, after, f.ExpireAt)
	return after, true
}

// Refund gives n hits back, from 1 on, and returns how many: no more than were used. The deadline
// stays as it is, but a limiter of which nothing is used afterwards is no key. Of a missing key
// nothing was used.
//
// From a sliding window the newest hits go; with an id (not nil), those that were recorded under
// it, the one with the first name last: as long as any is left, a call that is repeated under that
// id is known. A token bucket gets tokens back, at most those that were missing when it was last
// taken from. A fixed window forgets hits of the current window. Limiters without a log know no
// ids: ErrNoIDs.
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

func (tx *Tx) refundNewest(k Key, o *object.ZSet, n int64) int64 {
	size := o.Set.Len()
	n = min(n, int64(size))
	tx.apply(o, &effect.Effect{Kind: effect.RemoveSpan, Key: k, Lo: size - int(n), Hi: size})
	return n
}

// refundNamed finds the hits of a call by their names, and by their score, which is that of the
// first: a name may have been written by hand. The others come after the first; some may have
// been given back as the newest, so their numbers need not be in a row.
func (tx *Tx) refundNamed(k Key, o *object.ZSet, n int64, id []byte) (refunded int64) {
	first := effect.AppendHitName(nil, id, 1)
	rank, at, ok := o.Set.Rank(first)
	if !ok {
		return 0
	}
	prefix := append(bytes.Clone(id), ':')
	from, to := rank+1, o.Set.FirstAfter(at)
	find := func(name []byte) int {
		return from + sort.Search(to-from, func(i int) bool {
			member, _ := o.Set.At(from + i)
			return bytes.Compare(member, name) >= 0
		})
	}
	lo, hi := find(append(bytes.Clone(prefix), '0')), find(append(bytes.Clone(prefix), '9'+1))
	for i := hi - 1; i >= lo && refunded < n; i-- {
		if member, _ := o.Set.At(i); effect.AreDigits(member[len(prefix):]) {
			tx.apply(o, &effect.Effect{Kind: effect.Remove, Key: k, Field: bytes.Clone(member)})
			refunded++
		}
	}
	if refunded < n {
		tx.apply(o, &effect.Effect{Kind: effect.Remove, Key: k, Field: first})
		refunded++
	}
	return refunded
}

func (tx *Tx) refundState(k Key, o object.State, n int64) int64 {
	f := &effect.Effect{Key: k, ExpireAt: o.Head().ExpireAt}
	back, used := o.Refund(f, tx.now, n)
	switch {
	case back == 0:
	case used:
		tx.apply(o, f)
	default:
		tx.delete(k, o)
	}
	return back
}
