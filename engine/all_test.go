package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/reserve"
	"rlserver/engine/rule"
	"rlserver/zset"
)

// all makes a call of one cost on the keys that the limits name.
func (c *caller) all(limits []Limit, cost int64) (limit.Decision, error) {
	for i := range limits {
		limits[i].Cost = cost
	}
	return c.priced(limits)
}

// priced makes a call in which each limit has its cost.
func (c *caller) priced(limits []Limit) (limit.Decision, error) { return c.run(limits, c.tx.All) }

func (c *caller) run(limits []Limit, call func([]Limit) (limit.Decision, error)) (limit.Decision, error) {
	keys := make([]Key, len(limits))
	for i := range limits {
		limits[i].Key = c.e.Key(limits[i].Key.Name)
		keys[i] = limits[i].Key
	}
	c.tx.Begin(c.now, 0, keys, true)
	defer c.tx.End()
	return call(limits)
}

func named(l Limit, name string) Limit {
	l.Key = Key{Name: []byte(name)}
	return l
}

func nameOf(l *Limit) string { return string(l.Key.Name) }

// brute has the state of limits of all kinds on a few keys in plain lists, and implements the
// definition of each by counting.
type brute struct {
	hits   map[string][]int64 // times of the hits of sliding windows
	counts map[string]map[int64]int64
	levels map[string]level
	leases map[string]map[string]int64 // expiry times by id
	used   map[string]*bruteCounter
	books  map[string]map[string]bruteHold // by call
	terms  map[string][]Limit
}

// level is how much is missing from a token bucket at a time. The unit is a token divided by the ms
// of the bucket's period.
type level struct{ missing, at int64 }

func (l level) then(b limit.Bucket, at int64) int64 { return max(0, l.missing-b.Refill*(at-l.at)) }

func newBrute() *brute {
	return &brute{
		make(map[string][]int64),
		make(map[string]map[int64]int64),
		make(map[string]level),
		make(map[string]map[string]int64),
		make(map[string]*bruteCounter),
		make(map[string]map[string]bruteHold),
		make(map[string][]Limit),
	}
}

func (b *brute) counter(key string) *bruteCounter {
	if b.used[key] == nil {
		b.used[key] = new(bruteCounter)
	}
	return b.used[key]
}

// free returns how much more one limit admits at a time; negative if the limit was lowered.
func (b *brute) free(l *Limit, at int64) int64 {
	if l.Kind == rule.Lease {
		return b.alone(l, at)
	}
	return b.alone(l, at) - b.held(nameOf(l), at)
}

// alone is free without reservations.
func (b *brute) alone(l *Limit, at int64) int64 {
	key := nameOf(l)
	switch l.Kind {
	case rule.Slide:
		used := int64(0)
		for _, hit := range b.hits[key] {
			if hit > at-l.Slide.Length && hit <= at {
				used++
			}
		}
		return l.Slide.Limit - used
	case rule.Token:
		room := l.Token.Capacity*l.Token.Period - b.levels[key].then(l.Token, at)
		// rounded down
		return (room - ((room%l.Token.Period)+l.Token.Period)%l.Token.Period) / l.Token.Period
	case rule.Fixed:
		return l.Fixed.Limit - b.counts[key][at/l.Fixed.Window.Length]
	case rule.Counter:
		return l.Counter.Limit - b.counter(key).used(at)
	}
	held := int64(0)
	for _, lapses := range b.leases[key] {
		if at < lapses {
			held++
		}
	}
	return l.Lease.Limit - held
}

func (b *brute) admits(l *Limit, cost, at int64) bool {
	if l.Kind != rule.Lease {
		return b.knows(l, at) || max(cost, 1) <= b.free(l, at)
	}
	return b.leases[string(l.Key.Name)][string(l.ID)] > at || b.free(l, at) >= 1
}

func (b *brute) admitsAll(limits []Limit, at int64) bool {
	peek := !asks(limits)
	return !slices.ContainsFunc(limits, func(l Limit) bool {
		return (l.Cost > 0 || peek) && !b.admits(&l, l.Cost, at)
	})
}

func (b *brute) unused(l *Limit, at int64) bool {
	key := nameOf(l)
	if b.held(key, at) > 0 {
		return false
	}
	switch l.Kind {
	case rule.Slide:
		return !slices.ContainsFunc(b.hits[key], func(hit int64) bool { return hit > at-l.Slide.Length })
	case rule.Token:
		return b.levels[key].then(l.Token, at) == 0
	case rule.Fixed:
		return b.counts[key][at/l.Fixed.Window.Length] == 0
	case rule.Counter:
		return b.counter(key).used(at) == 0
	}
	return b.free(l, at) == l.Lease.Limit
}

// record records an admitted call, once for each key.
func (b *brute) record(limits []Limit, now int64) {
	done := make(map[string]bool)
	for _, l := range limits {
		key, cost := string(l.Key.Name), l.Cost
		if done[key] || cost == 0 {
			continue
		}
		done[key] = true
		if l.Hold.TTL > 0 && l.Kind != rule.Lease {
			b.reserve(limits, &l, now)
			continue
		}
		switch l.Kind {
		case rule.Slide:
			b.hits[key] = append(b.hits[key], slices.Repeat([]int64{now}, int(cost))...)
		case rule.Token:
			b.levels[key] = level{b.levels[key].then(l.Token, now) + cost*l.Token.Period, now}
		case rule.Fixed:
			if b.counts[key] == nil {
				b.counts[key] = make(map[int64]int64)
			}
			b.counts[key][now/l.Fixed.Window.Length] += cost
		case rule.Lease:
			if b.leases[key] == nil {
				b.leases[key] = make(map[string]int64)
			}
			b.leases[key][string(l.ID)] = now + l.Lease.TTL
		case rule.Counter:
			b.counter(key).record(l.Counter.Window, now, cost)
		}
	}
}

// future reports whether a log has hits in the future.
func (w *world) future(limits []Limit) bool {
	return slices.ContainsFunc(limits, func(l Limit) bool {
		return slices.ContainsFunc(w.hits[string(l.Key.Name)], func(hit int64) bool { return hit > w.now })
	})
}

// never reports whether a call is never admitted.
func never(l *Limit, cost int64) bool {
	switch l.Kind {
	case rule.Slide:
		return cost > l.Slide.Limit
	case rule.Token:
		return cost > l.Token.Capacity
	case rule.Fixed:
		return cost > l.Fixed.Limit
	case rule.Counter:
		return cost > l.Counter.Limit
	}
	return false
}

// wait returns how long it is until one limit admits the call: 0 for now, limit.Never for never.
func (b *brute) wait(l *Limit, cost, now int64) (ms int64) {
	if never(l, cost) && !b.knows(l, now) {
		return limit.Never
	}
	for !b.admits(l, cost, now+ms) {
		ms++
	}
	return ms
}

// reportedLimit returns the index of the limit that an answer must be about.
func (b *brute) reportedLimit(limits []Limit, now int64, allowed bool) (rule int) {
	peek := !asks(limits)
	tightest := int64(-1)
	for i := range limits {
		// when admitted, b has recorded the call
		tight := int64(1<<40) - max(b.free(&limits[i], now), 0)
		if !allowed {
			if tight = b.wait(&limits[i], limits[i].Cost, now); tight == limit.Never {
				tight = 1 << 40
			}
			if limits[i].Cost == 0 && !peek {
				tight = 0
			}
		}
		if tight > tightest {
			tightest, rule = tight, i
		}
	}
	return rule
}

// world is the state of a random trace: the limits, the engine and the oracle.
type world struct {
	*rand.Rand
	*caller
	*brute
	limits [][]Limit // by key
}

func newWorld(t *testing.T, r *rand.Rand) *world {
	w := &world{Rand: r, caller: newCaller(t, Options{}), brute: newBrute()}
	w.e.memory.Reservations.Set(1000, bruteRetention)
	kinds := []rule.Kind{rule.Slide, rule.Token, rule.Fixed, rule.Lease, rule.Counter}
	for i := range 2 + r.IntN(4) {
		name := fmt.Sprint("key", i)
		switch kinds[r.IntN(len(kinds))] {
		case rule.Counter:
			c := limit.Counter{Limit: 1 + r.Int64N(6), Window: 1 + r.Int64N(60)}
			w.limits = append(w.limits, []Limit{named(Limit{Rule: rule.Rule{Kind: rule.Counter, Counter: c}}, name)})
		case rule.Slide:
			var windows []Limit
			for range 1 + r.IntN(3) {
				windows = append(
					windows,
					named(
						Limit{Rule: rule.Rule{Slide: limit.Window{Limit: 1 + r.Int64N(6), Length: 1 + r.Int64N(60)}}},
						name,
					),
				)
			}
			w.limits = append(w.limits, windows)
		case rule.Token:
			b := limit.Bucket{Capacity: 1 + r.Int64N(6), Refill: 1 + r.Int64N(5), Period: 1 + r.Int64N(40)}
			w.limits = append(w.limits, []Limit{named(Limit{Rule: rule.Rule{Kind: rule.Token, Token: b}}, name)})
		case rule.Fixed:
			f := limit.Fixed{Limit: 1 + r.Int64N(6), Window: limit.Every(1 + r.Int64N(60))}
			w.limits = append(w.limits, []Limit{named(Limit{Rule: rule.Rule{Kind: rule.Fixed, Fixed: f}}, name)})
		case rule.Lease:
			w.limits = append(
				w.limits,
				[]Limit{
					named(
						Limit{
							Rule: rule.Rule{
								Kind:  rule.Lease,
								Lease: limit.Lease{Limit: 1 + r.Int64N(4), TTL: 1 + r.Int64N(80)},
							},
						},
						name,
					),
				},
			)
		}
	}
	return w
}

// some returns random limits for a call, in random order, some of them raised, or with another
// window.
func (w *world) some() (limits []Limit) {
	for _, key := range w.limits {
		if len(limits) > 0 && w.IntN(3) == 0 {
			continue
		}
		for _, l := range key {
			l.ID = nil
			switch by := w.Int64N(3) * w.Int64N(2); l.Kind {
			case rule.Slide:
				l.Slide.Limit += by
			case rule.Token:
				l.Token.Capacity += by
			case rule.Fixed:
				l.Fixed.Limit += by
			case rule.Lease:
				l.Lease.Limit += by
				l.ID = fmt.Append(nil, "id", w.IntN(6))
			case rule.Counter:
				l.Counter.Limit += by
				if w.IntN(4) == 0 {
					l.Counter.Window = 1 + w.Int64N(60)
				}
			}
			limits = append(limits, l)
		}
	}
	w.Shuffle(len(limits), func(i, j int) { limits[i], limits[j] = limits[j], limits[i] })
	return limits
}

func (w *world) contents() (all []string) {
	for _, key := range w.limits {
		all = append(all, w.Content(string(key[0].Key.Name)))
	}
	return all
}

// disturb refunds hits, releases leases, and adds hits by ZADD, some of them in the future.
func (w *world) disturb() {
	l := w.limits[w.IntN(len(w.limits))][0]
	key, n := string(l.Key.Name), 1+w.Int64N(4)
	w.with(key, func(k Key) {
		if l.Kind == rule.Lease {
			id := fmt.Sprint("id", w.IntN(6))
			released, err := w.tx.Release(k, []byte(id))
			require.NoError(w.t, err)
			require.Equal(w.t, w.leases[key][id] > w.now, released)
			delete(w.leases[key], id)
			return
		}
		if l.Kind == rule.Slide && w.IntN(2) == 0 {
			at := w.now - 20 + w.Int64N(60)
			_, _, err := w.tx.ZAdd(
				k,
				0,
				[]zset.Member{{Member: fmt.Append(nil, "zadd ", w.Uint64()), Score: float64(at)}},
			)
			require.NoError(w.t, err)
			w.tx.Persist(k)
			w.hits[key] = append(w.hits[key], at)
			return
		}
		before := w.tx.lookup(k) != nil
		if before && l.Kind == rule.Fixed && w.IntN(2) == 0 {
			w.tx.Expire(k, w.now+1000, 0) // longer than the window
		}
		back, err := w.tx.Refund(k, n, nil)
		require.NoError(w.t, err)
		require.True(w.t, before || back == 0, "nothing can be refunded to a missing key")
		w.refunded(&l, n, back, before)
	})
}

// refunded compares the result of Refund with the hits used, and removes them from the oracle.
func (w *world) refunded(l *Limit, n, back int64, exists bool) {
	key := string(l.Key.Name)
	switch l.Kind {
	case rule.Slide:
		slices.Sort(w.hits[key])
		hits := w.hits[key]
		living := int64(0)
		for _, hit := range hits {
			if hit > w.now-l.Slide.Length {
				living++
			}
		}
		require.GreaterOrEqual(w.t, back, min(n, living))
		require.LessOrEqual(w.t, back, min(n, int64(len(hits))))
		w.hits[key] = hits[:len(hits)-int(back)]
	case rule.Token:
		if exists {
			last := w.levels[key]
			if most := min(n, last.missing/l.Token.Period); last.then(l.Token, w.now) > 0 || back > most {
				require.Equal(w.t, most, back, "whole tokens missing after the last call")
			}
			w.levels[key] = level{last.missing - back*l.Token.Period, last.at}
		}
	case rule.Fixed:
		window := w.now / l.Fixed.Window.Length
		require.Equal(w.t, min(n, w.counts[key][window]), back)
		if back > 0 {
			w.counts[key][window] -= back
		}
	case rule.Counter:
		require.Equal(w.t, w.counter(key).refund(w.now, n), back)
	}
}

// Laws 1 to 5 for random combinations of limits on keys.
func TestAllMatchesBruteForce(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range histories(120) {
		w := newWorld(t, r)
		for range 100 {
			w.now += r.Int64N(12) * r.Int64N(3)
			if r.IntN(6) == 0 {
				w.disturb()
			}
			limits := w.some()
			w.price(limits)
			w.hold(limits)
			if r.IntN(4) == 0 {
				w.settle(limits)
			}
			decide, charged := w.tx.All, r.IntN(6) == 0
			call := fmt.Sprintf("%+v at +%d", limits, w.now-epoch)
			if charged { // it records now, and reserves nothing
				decide, call = w.tx.Charge, "charge "+call
				for i := range limits {
					limits[i].Hold = reserve.Request{}
				}
			}
			before := w.contents()
			want := w.admitsAll(limits, w.now)
			d, err := w.run(limits, decide)
			require.NoError(t, err, call)
			require.Equal(t, want, d.Allowed, "laws 2 and 3: %s: %+v", call, d)
			switch {
			case charged && !d.Allowed && asks(limits):
				w.record(limits, w.now)
				for i := range limits {
					limits[i].ID = nil // the answer is about another call
				}
			case d.Allowed && asks(limits):
				w.record(limits, w.now)
				require.Zero(t, d.RetryAfter, call)
			default:
				require.Equal(t, before, w.contents(), "law 1: %s", call)
			}
			w.requireRetry(limits, d, call)
			w.requireRest(limits, d, call)
		}
	}
}

// price sets the costs of a call: one for all limits, or one for each key.
func (w *world) price(limits []Limit) {
	one, each, costs := w.Int64N(4), w.IntN(2) == 0, make(map[string]int64)
	for i := range limits {
		key := nameOf(&limits[i])
		if _, priced := costs[key]; !priced {
			costs[key] = one
			if each {
				costs[key] = w.Int64N(5)
			}
		}
		limits[i].Cost = costs[key]
	}
}

// requireRetry checks law 4 at every millisecond before.
func (w *world) requireRetry(limits []Limit, d limit.Decision, call string) {
	if slices.ContainsFunc(limits, func(l Limit) bool { return never(&l, l.Cost) && !w.knows(&l, w.now) }) {
		require.EqualValues(w.t, limit.Never, d.RetryAfter, call)
		return
	}
	if d.RetryAfter == limit.Never { // a rule of a call that is known until then is above its limit
		for ms := range int64(2000) {
			require.False(w.t, w.admitsAll(limits, w.now+ms), "law 4, never: %s", call)
		}
		return
	}
	for ms := range d.RetryAfter {
		require.False(w.t, w.admitsAll(limits, w.now+ms), "law 4, too late by %d: %s", d.RetryAfter-ms, call)
	}
	if !d.Allowed {
		require.True(w.t, w.admitsAll(limits, w.now+d.RetryAfter), "law 4, too early: %s: %+v", call, d)
	}
}

func (w *world) requireRest(limits []Limit, d limit.Decision, call string) {
	l := limits[d.Index]
	if d.Allowed || !w.future(limits) {
		require.Equal(w.t, w.reportedLimit(limits, w.now, d.Allowed), d.Index, "%s: %+v", call, d)
	} else {
		// with future hits, RetryAfter is for all windows over one log together
		require.False(w.t, w.admits(&l, l.Cost, w.now), "%s: %+v", call, d)
	}
	require.Equal(w.t, max(w.free(&l, w.now), 0), d.Remaining, "%s: %+v", call, d)
	require.Equal(w.t, l.Slide.Limit+l.Token.Capacity+l.Fixed.Limit+l.Lease.Limit+l.Counter.Limit, d.Limit, call)
	unused := func(at int64) bool {
		return !slices.ContainsFunc(limits, func(l Limit) bool { return !w.unused(&l, at) })
	}
	require.True(w.t, unused(w.now+d.ResetAfter), "in use at reset: %s: %+v", call, d)
	require.True(w.t, d.ResetAfter == 0 || !unused(w.now+d.ResetAfter-1), "unused before reset: %s: %+v", call, d)
}

func TestAllRefusesLimitsThatDoNotFit(t *testing.T) {
	c := newCaller(t, Options{})
	c.token("t", limit.Bucket{Capacity: 9, Refill: 1, Period: 1000}, 1)
	slide, token := Limit{
		Rule: rule.Rule{Slide: limit.Window{Limit: limit.MaxCount, Length: 1000}},
	}, Limit{
		Rule: rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: limit.MaxCount, Refill: 1, Period: 1}},
	}
	lease := Limit{Rule: rule.Rule{Kind: rule.Lease, Lease: limit.Lease{Limit: 1, TTL: 1000}}, ID: []byte("id")}
	ids := slide
	ids.ID = []byte("id")
	for _, step := range []struct {
		limits []Limit
		cost   int64
		want   error
	}{
		{[]Limit{named(token, "new"), named(slide, "t")}, 1, ErrWrongType},
		{[]Limit{named(token, "new"), named(lease, "t")}, 1, ErrWrongType},
		{[]Limit{named(slide, "s"), named(token, "x"), named(lease, "s")}, 1, Error("ERR key 's' is in more than " +
			"one rule: only those of SLIDE may share a key")},
		{[]Limit{named(token, "x"), named(slide, "s"), named(slide, "x")}, 1, Error("ERR key 'x' is in more than " +
			"one rule: only those of SLIDE may share a key")},
		{[]Limit{named(token, "x"), named(token, "x")}, 1, Error("ERR key 'x' is in more than one rule: only those " +
			"of SLIDE may share a key")},
	} {
		_, err := c.all(step.limits, step.cost)
		require.Equal(t, step.want, err)
	}
	for _, key := range []string{"new", "s", "r", "x"} {
		assert.Equal(t, "nothing", c.Content(key))
	}
	at := func(l Limit, cost int64) Limit { l.Cost = cost; return l }
	_, err := c.priced([]Limit{at(named(slide, "s"), 1), at(named(token, "x"), 2), at(named(slide, "s"), 2)})
	require.Equal(t, Error("ERR the rules of key 's' share its log: COST must be the same for each of them"), err)
	d, err := c.priced([]Limit{at(named(ids, "s"), effect.MaxHits), at(named(ids, "r"), effect.MaxHits)})
	require.NoError(t, err)
	require.True(t, d.Allowed)
	for _, key := range []string{"s", "r"} {
		c.with(key, func(k Key) { c.tx.Delete(k) })
	}
	d, err = c.priced([]Limit{at(named(slide, "s"), effect.MaxHits), at(named(slide, "r"), 0),
		at(named(token, "y"), limit.MaxCount)})
	require.NoError(t, err)
	require.True(t, d.Allowed)
	require.Equal(t, "nothing", c.Content("r"))
	for _, key := range []string{"s", "y"} {
		c.with(key, func(k Key) { c.tx.Delete(k) })
	}
	d, err = c.all([]Limit{named(slide, "s"), named(slide, "s"), named(token, "x")}, 1)
	assert.NoError(t, err)
	assert.True(t, d.Allowed, "windows over one log")
	d, err = c.all(
		[]Limit{
			named(slide, "s"),
			named(
				Limit{Rule: rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: 1, Refill: 1, Period: 1}}},
				"y",
			),
		},
		limit.MaxCount,
	)
	assert.NoError(t, err)
	assert.EqualValues(t, limit.Never, d.RetryAfter, "a cost above a limit is denied, however large")
}

// A call whose id is in a sliding window is not counted there again, but is counted in the other
// limits.
func TestAllRecognizesRepeatedIDs(t *testing.T) {
	c := newCaller(t, Options{})
	slide := Limit{Rule: rule.Rule{Slide: limit.Window{Limit: 1, Length: 1000}}, ID: []byte("a")}
	token := Limit{Rule: rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: 2, Refill: 1, Period: 1000}}}
	for i, want := range []limit.Decision{
		{Allowed: true, Limit: 1, ResetAfter: 1000},
		{Allowed: true, Limit: 1, ResetAfter: 2000},
		{Limit: 2, RetryAfter: 1000, ResetAfter: 2000, Index: 1},
	} {
		d, err := c.all([]Limit{named(slide, "s"), named(token, "t")}, 1)
		require.NoError(t, err)
		require.Equal(t, want, d, "call %d", i)
	}
	assert.Equal(t, "log until 1767225601000: a@1767225600000", c.Content("s"))
}

// Law 4 with deadlines set by EXPIRE: RetryAfter is not longer than the time until the key expires.
func TestAllWaitsNoLongerThanKeysExist(t *testing.T) {
	c := newCaller(t, Options{})
	limits := []Limit{
		named(Limit{Rule: rule.Rule{Slide: limit.Window{Limit: 1, Length: 5000}}}, "s"),
		named(Limit{Rule: rule.Rule{Kind: rule.Lease, Lease: limit.Lease{Limit: 1, TTL: 9000}}, ID: []byte("a")}, "l"),
	}
	_, err := c.all(limits, 1)
	require.NoError(t, err)
	c.with("s", func(k Key) {
		c.tx.ZAdd(k, 0, []zset.Member{{Member: []byte("ahead"), Score: epoch + 40}})
		c.tx.Expire(k, c.now+50, 0)
	})
	c.with("l", func(k Key) { c.tx.Expire(k, c.now+30, 0) })
	limits[1].ID = []byte("b")
	d, err := c.all(limits, 1)
	require.NoError(t, err)
	require.Equal(t, limit.Decision{Limit: 1, RetryAfter: 51, ResetAfter: 51}, d)
	c.now += 50
	d, _ = c.all(limits, 1)
	require.False(t, d.Allowed)
	c.now++
	d, _ = c.all(limits, 1)
	require.True(t, d.Allowed)
}

// threeLimits returns the limits of a mail: per sender, per domain, and a concurrency limit of
// which another worker holds a lease.
func threeLimits(c *caller) ([]Limit, []Key) {
	e := c.e
	c.lease("at-once:123456", limit.Lease{Limit: 5, TTL: limit.MaxDuration}, "worker-2")
	limits := []Limit{
		{Key: e.Key([]byte("sender:123456")), Rule: rule.Rule{Slide: limit.Window{Limit: 100, Length: 100}}},
		{
			Key:  e.Key([]byte("domain:123456")),
			Rule: rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: 1 << 50, Refill: 1, Period: 1000}},
		},
		{
			Key:  e.Key([]byte("at-once:123456")),
			Rule: rule.Rule{Kind: rule.Lease, Lease: limit.Lease{Limit: 5, TTL: 1000}},
			ID:   []byte("worker-1"),
		},
	}
	return limits, []Key{limits[0].Key, limits[1].Key, limits[2].Key}
}

func TestAllDoesNotAllocate(t *testing.T) {
	c := newCaller(t, Options{})
	limits, keys := threeLimits(c)
	call := func() {
		c.now += 2
		c.tx.Begin(c.now, 0, keys, true)
		c.tx.allAt(limits, 1)
		c.tx.End()
	}
	for range 5000 {
		call()
	}
	assert.Zero(t, testing.AllocsPerRun(1000, call))
}

func BenchmarkAll(b *testing.B) {
	run := func(name string, limits func(c *caller) ([]Limit, []Key)) {
		b.Run(name, func(b *testing.B) {
			c := newCaller(b, Options{})
			list, keys := limits(c)
			b.ReportAllocs()
			for b.Loop() {
				c.now += 2
				c.tx.Begin(c.now, 0, keys, true)
				c.tx.allAt(list, 1)
				c.tx.End()
			}
		})
	}
	run("slide, token and lease", threeLimits)
	run("three slides", func(c *caller) (limits []Limit, keys []Key) {
		for i := range 3 {
			l := Limit{
				Key:  c.e.Key(fmt.Append(nil, "key:12345", i)),
				Rule: rule.Rule{Slide: limit.Window{Limit: 100, Length: 100}},
			}
			limits, keys = append(limits, l), append(keys, l.Key)
		}
		return limits, keys
	})
	run("one slide", func(c *caller) ([]Limit, []Key) {
		limits, keys := threeLimits(c)
		return limits[:1], keys[:1]
	})
	b.Run("RL.SLIDE", func(b *testing.B) {
		c := newCaller(b, Options{})
		limits, keys := threeLimits(c)
		rules := []limit.Window{limits[0].Slide}
		b.ReportAllocs()
		for b.Loop() {
			c.now += 2
			c.tx.Begin(c.now, 0, keys[:1], true)
			c.tx.Slide(keys[0], rules, 1, nil)
			c.tx.End()
		}
	})
}
