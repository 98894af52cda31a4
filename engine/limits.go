package engine

import (
	"iter"
	"math"
	"strconv"

	"rlserver/engine/limit"
	"rlserver/zset"
)

// MaxHits is the largest cost of one call on a sliding window, whose log keeps a member per hit.
const MaxHits = 1_000_000

// as gives an object as the type an operation works on: nil for a missing key, ErrWrongType for any other type.
func as[T object](o object) (t T, err error) {
	if o == nil {
		return t, nil
	}
	t, ok := o.(T)
	if !ok {
		return t, ErrWrongType
	}
	return t, nil
}

// Slide decides a call of cost hits against sliding windows over the one log that the key holds, a sorted set with a member per hit.
// All windows admit it and it is recorded once, or nothing changes. A missing key is an empty log. Hits that no window
// reaches any more are dropped on the way of an admitted call.
//
// The members of an admitted call are `<ms>-<seq>`; with an id (not nil) they are the id, then id:2, id:3, …, leaving out names that are
// taken. A call whose id is in the longest window already is answered as admitted, and nothing is recorded.
// A cost above MaxHits that some time could be admitted is ErrTooManyHits.
func (tx *Tx) Slide(k Key, rules []limit.Rule, cost int64, id []byte) (limit.Decision, error) {
	o := tx.lookup(k)
	if _, err := as[*zsetObject](o); err != nil {
		return limit.Decision{}, err
	}
	d, repeated := tx.decideSlide(o, rules, cost, id)
	if cost > MaxHits && d.RetryAfter != limit.Never && !repeated {
		return limit.Decision{}, ErrTooManyHits
	}
	if !d.Allowed || cost == 0 || repeated {
		return tx.noted(k, o, false, cost, tx.untilGone(o, d)), nil
	}
	fresh := o == nil
	o = tx.recordSlide(k, o, id, tx.lapsed(rules), cost, after(tx.now, d.ResetAfter))
	return tx.noted(k, o, fresh, cost, d), nil
}

// decideSlide leaves the log that it has decided about in tx.log.
func (tx *Tx) decideSlide(o object, rules []limit.Rule, cost int64, id []byte) (d limit.Decision, repeated bool) {
	tx.log = logIn(o)
	if id != nil && tx.log.set != nil {
		if at, ok := tx.log.set.Score(id); ok && at > float64(tx.now-limit.Longest(rules)) {
			return limit.RepeatedAll(rules, &tx.log, tx.now), true
		}
	}
	return limit.DecideAll(rules, &tx.log, tx.now, cost), false
}

// lapsed is how many hits of tx.log no window reaches any more.
func (tx *Tx) lapsed(rules []limit.Rule) int {
	return tx.log.After(float64(tx.now - limit.Longest(rules)))
}

func (tx *Tx) recordSlide(k Key, o object, id []byte, trim int, cost, expireAt int64) object {
	if id == nil {
		return tx.recordHits(k, o, trim, cost, expireAt)
	}
	return tx.recordHitsAs(k, o, id, trim, cost, expireAt)
}

// recordHits is one effect: the lapsed hits go, the new ones come, the deadline moves.
func (tx *Tx) recordHits(k Key, o object, trim int, n, expireAt int64) object {
	seq := tx.e.shardOf(k).seq.next(logIn(o).set, tx.now, uint64(n))
	return tx.apply(o, &Effect{Kind: EffectHits, Key: k, Lo: trim, Hits: Hits{At: tx.now, Seq: seq, N: n}, ExpireAt: expireAt})
}

func (tx *Tx) recordHitsAs(k Key, o object, id []byte, trim int, n, expireAt int64) object {
	if trim > 0 {
		o = tx.apply(o, &Effect{Kind: EffectRemoveSpan, Key: k, Hi: trim})
	}
	for name := range hitNames(id) {
		if n == 0 {
			break
		}
		if z, ok := o.(*zsetObject); ok {
			if _, taken := z.set.Score(name); taken {
				continue
			}
		}
		o = tx.apply(o, &Effect{Kind: EffectAdd, Key: k, Field: name, Score: float64(tx.now)})
		n--
	}
	return tx.apply(o, &Effect{Kind: EffectExpire, Key: k, ExpireAt: expireAt})
}

// hitSequence numbers the hits of a shard within a millisecond. Time never runs backward in a shard, so `<ms>-<seq>` never comes twice.
type hitSequence struct {
	at   int64
	free uint64
}

// next takes n numbers in a row. Numbers whose names are in the set already are passed over: a key can come from another shard by
// RENAME, and people can write what they like into a sorted set.
func (q *hitSequence) next(set *zset.Set, now int64, n uint64) (first uint64) {
	if now > q.at {
		q.at, q.free = now, 0
	}
	first = q.free
	if set != nil {
		var buf [40]byte
		for i := n; i > 0; i-- { // from the last on, so as to pass over all that are taken at once
			if _, taken := set.Score(Hits{At: now, Seq: first}.member(buf[:0], i-1)); taken {
				first += i
				i = n + 1
			}
		}
	}
	q.free = first + n
	return first
}

// hitLog shows a sorted set, or a missing one, to the sliding windows. It remembers the last answer of After: what had lapsed when
// the call was decided is what is dropped when it is recorded.
type hitLog struct {
	set   *zset.Set
	asked float64
	after int
	known bool
}

func logIn(o object) hitLog {
	if z, ok := o.(*zsetObject); ok {
		return hitLog{set: &z.set}
	}
	return hitLog{}
}

func (l *hitLog) Len() int {
	if l.set == nil {
		return 0
	}
	return l.set.Len()
}

func (l *hitLog) At(i int) float64 {
	_, score := l.set.At(i)
	return score
}

func (l *hitLog) After(t float64) int {
	if l.set == nil {
		return 0
	}
	if !l.known || l.asked != t {
		l.asked, l.after, l.known = t, l.set.FirstAfter(t), true
	}
	return l.after
}

// Token decides a call against a token bucket. A missing key is a full bucket; a full bucket is no key.
func (tx *Tx) Token(k Key, rule limit.Bucket, cost int64) (limit.Decision, error) {
	o := tx.lookup(k)
	t, err := as[*tokenObject](o)
	if err != nil {
		return limit.Decision{}, err
	}
	state, d := rule.Take(t.tokens(), tx.now, cost)
	if !d.Allowed || cost == 0 {
		return tx.noted(k, o, false, cost, tx.untilGone(o, d)), nil
	}
	fresh := o == nil
	o = tx.apply(o, &Effect{Kind: EffectTokens, Key: k, Tokens: state, ExpireAt: after(tx.now, d.ResetAfter)})
	return tx.noted(k, o, fresh, cost, d), nil
}

// Leaky decides a call against a leaky bucket that paces, which is kept like a token bucket and shares its keys. delay is how many ms an
// admitted caller is to wait before it goes ahead.
func (tx *Tx) Leaky(k Key, rule limit.Bucket, cost int64) (d limit.Decision, delay int64, err error) {
	o := tx.lookup(k)
	t, err := as[*tokenObject](o)
	if err != nil {
		return limit.Decision{}, 0, err
	}
	state, d, delay := rule.Pace(t.tokens(), tx.now, cost)
	if !d.Allowed || cost == 0 {
		return tx.noted(k, o, false, cost, tx.untilGone(o, d)), delay, nil
	}
	fresh := o == nil
	o = tx.apply(o, &Effect{Kind: EffectTokens, Key: k, Tokens: state, ExpireAt: after(tx.now, d.ResetAfter)})
	return tx.noted(k, o, fresh, cost, d), delay, nil
}

// Fixed decides a call against a fixed window. A missing key is an unused one.
func (tx *Tx) Fixed(k Key, rule limit.Fixed, cost int64) (limit.Decision, error) {
	o := tx.lookup(k)
	c, err := as[*fixedObject](o)
	if err != nil {
		return limit.Decision{}, err
	}
	state, d := rule.Take(c.used(), tx.now, cost)
	if !d.Allowed || cost == 0 {
		return tx.noted(k, o, false, cost, tx.untilGone(o, d)), nil
	}
	fresh := o == nil
	o = tx.apply(o, &Effect{Kind: EffectCount, Key: k, Count: state, ExpireAt: after(tx.now, d.ResetAfter)})
	return tx.noted(k, o, fresh, cost, d), nil
}

// untilGone makes an answer hold for a key that expires before its limiter says it is free: a call under a longer rule than the one that
// set the deadline is told of the earlier time, and so is one whose key was given a deadline by hand.
func (tx *Tx) untilGone(o object, d limit.Decision) limit.Decision {
	at := goneAt(o)
	if at == math.MaxInt64 {
		return d
	}
	d.ResetAfter = min(d.ResetAfter, at-tx.now)
	if d.RetryAfter > 0 {
		d.RetryAfter = min(d.RetryAfter, at-tx.now)
	}
	return d
}

// goneAt is the first moment at which a key is there no more; math.MaxInt64 for one that stays, and for none.
func goneAt(o object) int64 {
	if o == nil || o.head().expireAt == 0 || o.head().expireAt == math.MaxInt64 {
		return math.MaxInt64
	}
	return o.head().expireAt + 1
}

// after is now + ms, at most the last moment that Redis' commands can speak of.
func after(now, ms int64) int64 {
	if ms > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + ms
}

// hitNames yields the member names that a caller's id gives: id, id:2, id:3, … Each has bytes of its own, which an effect may keep.
func hitNames(id []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for name, n := id, int64(2); yield(name); n++ {
			name = appendHitName(nil, id, n)
		}
	}
}

// appendHitName appends the n-th name that an id gives, n from 1 on.
func appendHitName(dst, id []byte, n int64) []byte {
	dst = append(dst, id...)
	if n == 1 {
		return dst
	}
	return strconv.AppendInt(append(dst, ':'), n, 10)
}
