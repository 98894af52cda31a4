package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/eviction"
	"rlserver/engine/limit"
	"rlserver/engine/reserve"
	"rlserver/engine/rule"
)

// bruteHold is a reservation of the oracle: of the amount 0 if it was settled at a time.
type bruteHold struct{ amount, until int64 }

const bruteRetention = 50 // ms

func (b *brute) held(key string, at int64) (sum int64) {
	for _, h := range b.books[key] {
		if at < h.until {
			sum += h.amount
		}
	}
	return sum
}

// knows reports whether a call that reserves is known at a time: it holds something, or was settled
// a short time ago.
func (b *brute) knows(l *Limit, at int64) bool {
	h, found := b.books[nameOf(l)][string(l.Hold.Call)]
	if l.Hold.TTL == 0 || l.Cost == 0 || l.Kind == rule.Lease || !found {
		return false
	}
	return at < h.until || h.amount == 0 && at < h.until+bruteRetention
}

// reserve records an admitted call that reserves.
func (b *brute) reserve(limits []Limit, l *Limit, now int64) {
	key, call := nameOf(l), string(l.Hold.Call)
	h := b.books[key][call]
	switch {
	case !b.knows(l, now):
		h = bruteHold{amount: l.Cost}
	case h.amount == 0:
		return
	}
	h.until = now + l.Hold.TTL
	b.enter(key, call, h)
	b.terms[key] = nil
	for _, other := range limits {
		if nameOf(&other) == key {
			b.terms[key] = append(b.terms[key], other)
		}
	}
}

func (b *brute) enter(key, call string, h bruteHold) {
	if b.books[key] == nil {
		b.books[key] = map[string]bruteHold{}
	}
	b.books[key][call] = h
}

// hold lets some calls reserve.
func (w *world) hold(limits []Limit) {
	if w.IntN(2) == 0 {
		return
	}
	request := reserve.Request{Call: fmt.Append(nil, "call", w.IntN(8)), TTL: 1 + w.Int64N(90)}
	for i := range limits {
		limits[i].Hold = request
	}
}

// settle settles a call on some keys, with less or more than it has reserved, if anything.
func (w *world) settle(limits []Limit) {
	call, keys, actual := fmt.Append(nil, "call", w.IntN(8)), []Key(nil), []int64(nil)
	for _, l := range limits {
		name := nameOf(&l)
		if len(keys) < 2 && len(w.terms[name]) > 0 && (len(keys) == 0 || string(keys[0].Name) != name) {
			keys, actual = append(keys, w.e.Key([]byte(name))), append(actual, w.Int64N(5))
		}
	}
	if len(keys) == 0 {
		return
	}
	w.tx.Begin(w.now, 0, keys, true)
	settled, err := w.tx.Settle(keys, actual, call)
	w.tx.End()
	if err != nil { // a book is gone
		gone := false
		for _, k := range keys {
			known := false
			for _, h := range w.books[string(k.Name)] {
				known = known || w.now < h.until+bruteRetention
			}
			gone = gone || !known
		}
		require.ErrorContains(w.t, err, "has no reservations")
		require.True(w.t, gone)
		return
	}
	for i, k := range keys {
		key := string(k.Name)
		h := w.books[key][string(call)]
		what := fmt.Sprintf("%s of %s with %d, had %+v, at +%d", call, key, actual[i], h, w.now-epoch)
		repeated := h.until > 0 && h.amount == 0 && w.now < h.until+bruteRetention
		require.Equal(w.t, !repeated, settled[i].First, what)
		if h.until <= w.now {
			h.amount = 0
		}
		require.Equal(w.t, h.amount, settled[i].Reserved, what)
		if !repeated {
			w.enter(key, string(call), bruteHold{until: w.now})
			charged := w.terms[key][:1:1]
			charged[0].Cost, charged[0].Hold = actual[i], reserve.Request{}
			w.record(charged, w.now)
		}
		least := int64(limit.MaxCount)
		for _, l := range w.terms[key] {
			least = min(least, max(w.free(&l, w.now), 0))
		}
		require.Equal(w.t, least, settled[i].Remaining, what)
	}
}

// limited returns a call of cost on a key.
func limited(k Key, r rule.Rule, cost, ttl int64, call string) *Limit {
	return &Limit{Key: k, Rule: r, Cost: cost, Hold: reserve.Request{Call: []byte(call), TTL: ttl}}
}

var tenASecond = rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: 10, Refill: 10, Period: 1000}}

func (c *caller) holds(r rule.Rule, cost, ttl int64, call string) (d limit.Decision, err error) {
	c.with("k", func(k Key) { d, err = c.tx.Decide(limited(k, r, cost, ttl, call)) })
	return d, err
}

func (c *caller) settles(actual int64, call string) (s reserve.Settled) {
	c.with("k", func(k Key) {
		list, err := c.tx.Settle([]Key{k}, []int64{actual}, []byte(call))
		require.NoError(c.t, err)
		s = list[0]
	})
	return s
}

// A settled call may use less or more than it has reserved; what it uses beyond the limit is a
// debt.
func TestSettling(t *testing.T) {
	c := newCaller(t, Options{})
	hold := func(cost int64, call string) limit.Decision {
		d, err := c.holds(tenASecond, cost, 5000, call)
		require.NoError(t, err)
		return d
	}
	assert.Equal(t, limit.Decision{Allowed: true, Limit: 10, Remaining: 4, ResetAfter: 5000}, hold(6, "a"))
	assert.Equal(t, limit.Decision{Limit: 10, Remaining: 4, RetryAfter: 5000, ResetAfter: 5000}, hold(5, "b"))
	assert.Equal(t, limit.Decision{Limit: 10, Remaining: 4, RetryAfter: limit.Never, ResetAfter: 5000}, hold(11, "b"))
	assert.Equal(t, reserve.Settled{First: true, Reserved: 6, Remaining: 7}, c.settles(3, "a"))
	assert.Equal(t, reserve.Settled{Remaining: 7}, c.settles(3, "a"), "twice is once")
	d := hold(6, "a")
	assert.True(t, d.Allowed && d.Free, "it was admitted")
	assert.EqualValues(t, 7, d.Remaining, "and reserves nothing")
	assert.True(t, hold(7, "c").Allowed)
	assert.Equal(t, reserve.Settled{First: true, Reserved: 7}, c.settles(27, "c"))
	d, err := c.holds(tenASecond, 1, 5000, "d")
	require.NoError(t, err)
	assert.Equal(t, limit.Decision{Limit: 10, RetryAfter: 2100, ResetAfter: 3000}, d, "a debt of 20")
	assert.Equal(t, reserve.Settled{First: true, Remaining: 0}, c.settles(1, "unknown"))
}

// A settlement of several keys changes none of them if one cannot be settled.
func TestSettlingIsAllOrNothing(t *testing.T) {
	c := newCaller(t, Options{})
	_, err := c.holds(tenASecond, 6, 5000, "a")
	require.NoError(t, err)
	k, other, text := c.e.Key([]byte("k")), c.e.Key([]byte("other")), c.e.Key([]byte("text"))
	c.with("text", func(k Key) { c.tx.Set(k, []byte("x"), SetMode{}) })
	before := dump(c.e)
	c.tx.Begin(c.now, 0, []Key{k, other, text}, true)
	for _, keys := range [][]Key{{k, other}, {k, k}, {k, text}} {
		_, err = c.tx.Settle(keys, []int64{1, 1}, []byte("a"))
		assert.Error(t, err)
	}
	c.tx.End()
	assert.Equal(t, before, dump(c.e))
}

// What nobody renews or settles comes back at its millisecond.
func TestLapsesAreExact(t *testing.T) {
	for _, l := range limitsOfAllKinds() {
		c := newCaller(t, Options{})
		_, err := c.holds(l.Rule, 2, 100, "a")
		require.NoError(t, err)
		d, _ := c.holds(l.Rule, 4, 100, "b")
		assert.False(t, d.Allowed)
		assert.EqualValues(t, 100, d.RetryAfter)
		c.now += 50
		d, _ = c.holds(l.Rule, 4, 100, "a")
		assert.True(t, d.Allowed, "renewed")
		c.now += 99
		d, _ = c.holds(l.Rule, 4, 100, "b")
		assert.EqualValues(t, 1, d.RetryAfter)
		c.now++
		d, _ = c.holds(l.Rule, 4, 100, "b")
		assert.True(t, d.Allowed)
		s := c.settles(1, "a")
		assert.Equal(t, reserve.Settled{First: true}, s, "late")
	}
}

// limitsOfAllKinds returns a limit of 4 of each algorithm that reserves, whose window is long.
func limitsOfAllKinds() []Limit {
	const hour = 3600 * 1000
	return []Limit{
		{Rule: rule.Rule{Slide: limit.Window{Limit: 4, Length: hour}}},
		{Rule: rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: 4, Refill: 1, Period: hour}}},
		{Rule: rule.Rule{Kind: rule.Fixed, Fixed: limit.Fixed{Limit: 4, Window: limit.Every(hour)}}},
		{Rule: rule.Rule{Kind: rule.Counter, Counter: limit.Counter{Limit: 4, Window: hour}}},
	}
}

func TestReservationsAreBounded(t *testing.T) {
	c := newCaller(t, Options{})
	c.e.memory.Reservations.Set(20, 1000)
	r := rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: 1e6, Refill: 1, Period: 1000}}
	for i := range 20 {
		_, err := c.holds(r, 1, 100, fmt.Sprint(i))
		require.NoError(t, err)
	}
	_, err := c.holds(r, 1, 100, "one more")
	assert.ErrorContains(t, err, "max-reservations")
	_, err = c.holds(r, 1, 100, "7")
	assert.NoError(t, err, "renewed")
	for i := range 1000 { // each is remembered
		c.now++
		_, err = c.holds(r, 1, 1, fmt.Sprint("short", i))
		if i > 100 {
			require.NoError(t, err)
		}
	}
	assert.LessOrEqual(t, c.book("k").Len(), 41)
	c.now += 5000
	for range 10 { // calls that reserve nothing forget them as well
		_, err = c.holds(r, 1, 0, "")
		require.NoError(t, err)
	}
	assert.Zero(t, c.book("k").Len())
	_, err = c.holds(rule.Rule{Kind: rule.Leaky, Token: r.Token}, 1, 100, "a")
	assert.Equal(t, ErrLeakyHold, err)
}

// Policies reserve and settle together; one in SHADOW that denies is not charged.
func TestPoliciesReserve(t *testing.T) {
	c := newChecker(t, "a TOKEN 10 1 1h", "b SLIDE 5 1h", "shadow FIXED 3 1h SHADOW", "slots LEASE 1 1h")
	names := [][]byte{[]byte("shadow"), []byte("a"), []byte("b")}
	call := CheckCall{Names: names, Costs: []int64{4, 4, 2}, ID: []byte("x"), TTL: 1000}
	call.Keys = policyKeys(c.e, names, []byte("ann"))
	c.tx.Begin(c.now, 0, call.Keys, true)
	defer c.tx.End()
	d, err := c.tx.Check(call)
	require.NoError(t, err)
	want := limit.Decision{Allowed: true, Limit: 5, Remaining: 3, ResetAfter: 1000, Index: 2, ShadowDenied: true}
	assert.Equal(t, want, d)
	assert.True(t, c.tx.CheckCountsOnce())
	again, err := c.tx.Check(call)
	require.NoError(t, err)
	assert.True(t, again.Allowed && again.Free)
	assert.Equal(t, d.Remaining, again.Remaining)
	call.Costs = []int64{1, 6, 3}
	settled, err := c.tx.SettleChecked(call)
	require.NoError(t, err)
	assert.Equal(t, []reserve.Settled{
		{First: true, Remaining: 3}, {First: true, Reserved: 4, Remaining: 4}, {First: true, Reserved: 2, Remaining: 2},
	}, settled)
	call.Names = [][]byte{[]byte("slots")}
	_, err = c.tx.SettleChecked(call)
	assert.ErrorContains(t, err, "RL.RELEASE")
}

// Without memory a call that has reserved something is settled, and others are not remembered.
func TestSettleOfUnknownCallsIsBoundedByTheBudget(t *testing.T) {
	c := newCaller(t, Options{Shards: 1})
	c.e.SetEviction(eviction.NoEviction, 5)
	r := rule.Rule{Kind: rule.Slide, Slide: limit.Window{Limit: 10, Length: 3_600_000}}
	_, err := c.holds(r, 1, 3_600_000, "call")
	require.NoError(t, err)
	c.e.SetBudget(c.e.Weight() + 1<<20)
	settle := func(call string) (err error) {
		c.with("k", func(k Key) { _, err = c.tx.Settle([]Key{k}, []int64{0}, []byte(call)) })
		return err
	}
	for i := range 100 {
		if err = settle(strings.Repeat(fmt.Sprint(i%10), 60_000+i)); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, ErrOutOfMemory)
	assert.Less(t, c.e.Weight(), c.e.Budget()+c.e.Budget()/reserve.SettleShare+100_000)
	assert.NoError(t, settle("call"))
	assert.NoError(t, settle("call"))
}

// The first reservation of a key takes its rules from those of other keys.
func TestFirstReservationOfAKeyParsesNoRule(t *testing.T) {
	e := New(Options{Journal: new(nothing)})
	l := Limit{Rule: *mustParse("p", "TOKEN 1000000 1000000 1m").Rule(), Cost: 1}
	l.Hold = reserve.Request{Call: []byte("call"), TTL: 1000}
	tx, n := e.NewTx(), 0
	allocations := testing.AllocsPerRun(100, func() {
		l.Key = e.Key(fmt.Append(nil, "key-", n))
		n++
		tx.Begin(epoch, 0, []Key{l.Key}, true)
		_, err := tx.Decide(&l)
		require.NoError(t, err)
		tx.End()
	})
	assert.Less(t, allocations, 20.0)
}
