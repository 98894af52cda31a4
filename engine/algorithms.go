package engine

import (
	"bytes"
	"sort"

	"rlserver/engine/limit"
	"rlserver/engine/rule"
)

// algorithm is one of those that package rule has the words for: what its keys hold, and what it
// does. Everything that decides goes by it, be it one limit (Decide), several (All) or policies
// (Check).
type algorithm struct {
	holds Type
	id    idUse

	// allows is how much a limit allows.
	allows func(*Limit) int64

	// decide decides for one key, of which it looks at the object. It sets the answer, and what
	// record needs.
	decide func(tx *Tx, p *part, cost int64) error

	// record records an admitted call; nil: decide has set the part's effect to the state after it.
	record func(tx *Tx, p *part, cost, expireAt int64) object

	// admitsFrom is the earliest moment, from t on, at which a call is admitted that was denied;
	// tx.log is that of the key, and tx.budget for steps. nil: once the limit would admit the call,
	// it goes on to do so for as long as nothing else happens.
	admitsFrom func(tx *Tx, p *part, t, cost int64) int64

	// succeeds reports whether a limit can go on with what another one of the same algorithm has
	// left; nil: any can.
	succeeds func(o object, l *Limit, now int64) bool
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

func (a *algorithm) fits(o object) bool { return o == nil || o.kind() == a.holds }

// putNumbers makes the effect the one that sets the state of a type which has these numbers. at is
// the time that is in it, Unix ms. ok is false if there is no such type.
func (f *Effect) putNumbers(t Type, n [4]int64) (at int64, ok bool) {
	switch t {
	case TypeToken:
		f.putTokens(limit.Tokens{Missing: n[0], Fraction: uint64(n[1]), Since: n[2], Earned: n[3]})
		return n[2], true
	case TypeFixed:
		f.putCount(limit.Count{Start: n[0], Length: n[1], Used: n[2]})
		return n[0], true
	case TypeCounter:
		f.putCounts(limit.Counts{Start: n[0], Length: n[1], Current: n[2], Previous: n[3]})
		return n[0], true
	}
	return 0, false
}

// fitsState reports whether the effect can set the state of an object, nil for a missing key. ok is
// false if it is of no such kind.
func (f *Effect) fitsState(o object) (fits, ok bool) {
	switch f.Kind {
	case EffectTokens, EffectBucket:
		t := f.Tokens
		return missingOr[*tokenObject](o) && isCount(t.Missing) && isDuration(t.Earned), true
	case EffectCount, EffectWindow:
		c := f.Count
		return missingOr[*fixedObject](o) && isCount(c.Used) && isDuration(c.Length), true
	case EffectCounter:
		return missingOr[*counterObject](o) && f.fitsCounter(), true
	}
	return false, false
}

func isCount(n int64) bool     { return 0 <= n && n <= limit.MaxCount }
func isDuration(ms int64) bool { return 0 <= ms && ms <= limit.MaxDuration }

// applyState sets the state of an object that the effect fits.
func (e *Engine) applyState(o object, f *Effect) (after object, ok bool) {
	switch f.Kind {
	case EffectTokens, EffectBucket:
		t := holding(e, o, f, newToken)
		t.setTokens(f.Tokens)
		after = t
	case EffectCount, EffectWindow:
		c := holding(e, o, f, newFixed)
		c.setCount(f.Count)
		after = c
	case EffectCounter:
		c := holding(e, o, f, newCounter)
		c.setCounts(f.Counts)
		after = c
	default:
		return nil, false
	}
	e.shardOf(f.Key).setDeadline(f.DB, f.Key.hash, after, f.ExpireAt)
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
	case *zsetObject:
		if id != nil {
			return tx.refundNamed(k, o, n, id), nil
		}
		return tx.refundNewest(k, o, n), nil
	case stateObject:
		if id != nil {
			return 0, ErrNoIDs
		}
		return tx.refundState(k, o, n), nil
	}
	return 0, ErrWrongType
}

func (tx *Tx) refundNewest(k Key, o *zsetObject, n int64) int64 {
	size := o.set.Len()
	n = min(n, int64(size))
	tx.apply(o, &Effect{Kind: EffectRemoveSpan, Key: k, Lo: size - int(n), Hi: size})
	return n
}

// refundNamed finds the hits of a call by their names, and by their score, which is that of the
// first: a name may have been written by hand. The others come after the first; some may have
// been given back as the newest, so their numbers need not be in a row.
func (tx *Tx) refundNamed(k Key, o *zsetObject, n int64, id []byte) (refunded int64) {
	first := appendHitName(nil, id, 1)
	rank, at, ok := o.set.Rank(first)
	if !ok {
		return 0
	}
	prefix := append(bytes.Clone(id), ':')
	from, to := rank+1, o.set.FirstAfter(at)
	find := func(name []byte) int {
		return from + sort.Search(to-from, func(i int) bool {
			member, _ := o.set.At(from + i)
			return bytes.Compare(member, name) >= 0
		})
	}
	lo, hi := find(append(bytes.Clone(prefix), '0')), find(append(bytes.Clone(prefix), '9'+1))
	for i := hi - 1; i >= lo && refunded < n; i-- {
		if member, _ := o.set.At(i); areDigits(member[len(prefix):]) {
			tx.apply(o, &Effect{Kind: EffectRemove, Key: k, Field: bytes.Clone(member)})
			refunded++
		}
	}
	if refunded < n {
		tx.apply(o, &Effect{Kind: EffectRemove, Key: k, Field: first})
		refunded++
	}
	return refunded
}

func (tx *Tx) refundState(k Key, o stateObject, n int64) int64 {
	f := &Effect{Key: k, ExpireAt: o.head().expireAt}
	back, used := o.refund(f, tx.now, n)
	switch {
	case back == 0:
	case used:
		tx.apply(o, f)
	default:
		tx.delete(k, o)
	}
	return back
}
