package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/ban"
	"rlserver/engine/eviction"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
)

// banModel bans as a policy SLIDE does, by all that has happened.
type banModel struct {
	limit, window, after, first, most int64

	hits, denials []int64
	until, quiet  int64
	bans          int
}

func (m *banModel) decide(now int64, ban bool) (d limit.Decision) {
	used, freed := int64(0), int64(0)
	for i := len(m.hits) - 1; i >= 0 && m.hits[i] > now-m.window; i-- {
		if used++; used == m.limit {
			freed = m.hits[i]
		}
	}
	d.Allowed = used < m.limit
	if !d.Allowed {
		d.RetryAfter = freed + m.window - now
	}
	if left := m.until - now; ban && left > 0 {
		d.Allowed, d.RetryAfter = false, max(d.RetryAfter, left)
	}
	return d
}

func (m *banModel) call(now int64) limit.Decision {
	d := m.decide(now, true)
	switch {
	case d.Allowed:
		m.hits = append(m.hits, now)
	case m.until <= now:
		if m.denials = append(m.denials, now); now >= m.quiet {
			m.bans = 0
		}
		if m.bans > 0 {
			m.quiet = now + m.most
		}
		recent := int64(0)
		for _, at := range m.denials {
			if at > now-m.window {
				recent++
			}
		}
		if recent >= m.after {
			length := m.first
			for range m.bans {
				length = min(2*length, m.most)
			}
			m.bans++
			m.until, m.quiet, m.denials = now+length, now+length+m.most, nil
		}
		d = m.decide(now, true)
	}
	return d
}

// The decisions of a policy that bans, and of calls that ban, are those of a model, call by call,
// and an engine that gets only the effects has the same state.
func TestBansAreThoseOfAModel(t *testing.T) {
	for seed := range uint64(histories(60)) {
		r := rand.New(rand.NewPCG(seed, 21))
		m := &banModel{
			limit: 1 + r.Int64N(4), window: 100 + r.Int64N(900), after: 1 + r.Int64N(5), first: 1 + r.Int64N(600),
		}
		m.most = m.first + r.Int64N(3000)
		log := new(recorder)
		c := newCaller(t, Options{Journal: log})
		definition := fmt.Sprintf("SLIDE %d %dms BAN %d %dms %dms", m.limit, m.window, m.after, m.first, m.most)
		_, err := c.e.SetPolicies(c.now, []*policy.Policy{mustParse("p", definition)})
		require.NoError(t, err)
		check := func(call CheckCall) (limit.Decision, error) { return c.tx.Check(call) }
		if seed%2 == 1 {
			check = func(call CheckCall) (limit.Decision, error) {
				w := limit.Window{Limit: m.limit, Length: m.window}
				bans := &ban.Rule{After: m.after, For: m.first, Max: m.most}
				l := Limit{Key: call.Keys[0], Cost: call.Costs[0], Ban: bans}
				if l.Rule = (rule.Rule{Slide: w}); seed%4 == 1 {
					return c.tx.SlideAs(l, []limit.Window{w, {Limit: 1000, Length: 1}})
				}
				return c.tx.Decide(&l)
			}
		}
		for range 400 {
			c.now += []int64{0, 1, r.Int64N(40), r.Int64N(2 * m.window), r.Int64N(2 * m.most)}[r.IntN(5)]
			call := CheckCall{Names: [][]byte{[]byte("p")}, Costs: []int64{1}}
			c.with("p:{ann}", func(k Key) {
				call.Keys = []Key{k}
				want := m.decide(c.now, true)
				got, err := limit.Decision{}, error(nil)
				switch r.IntN(8) {
				case 0:
					call.Costs[0] = 0
					got, err = check(call)
				case 1:
					if seed%2 == 1 { // only policies are forced
						return
					}
					call.Force = true
					got, err = c.tx.Check(call)
					m.hits = append(m.hits, c.now)
					if !want.Allowed {
						want = m.decide(c.now, true)
					}
				case 2:
					if r.IntN(8) == 0 {
						assert.Equal(t, m.until > c.now, c.tx.Unban(k))
						m.denials, m.until, m.quiet, m.bans = nil, 0, 0, 0
					}
					return
				default:
					want = m.call(c.now)
					got, err = check(call)
				}
				require.NoError(t, err)
				require.Equal(t, []any{want.Allowed, want.RetryAfter}, []any{got.Allowed, got.RetryAfter}, definition)
				left, _ := c.tx.Ban(k)
				require.Equal(t, max(m.until-c.now, 0), left, definition)
			})
		}
		requireSound(t, c.e)
		mirror := log.replayed(Options{})
		var want, got object.Digest
		c.with("p:{ann}", func(k Key) { want = c.tx.Digest(k) })
		tx, k := mirror.NewTx(), mirror.Key([]byte("p:{ann}"))
		tx.Begin(c.now, 0, []Key{k}, false)
		got = tx.Digest(k)
		tx.End()
		require.Equal(t, want, got, definition)
	}
}

// The times of a clock that was ahead are moved with it.
func TestMoveBackMovesBans(t *testing.T) {
	const latest = epoch + 1e9
	c := newCaller(t, Options{})
	_, err := c.e.SetPolicies(c.now, []*policy.Policy{mustParse("p", "SLIDE 1 1s BAN 1 1m")})
	require.NoError(t, err)
	c.now = latest
	c.with("p:{ann}", func(k Key) {
		call := CheckCall{Names: [][]byte{[]byte("p")}, Costs: []int64{1}, Keys: []Key{k}}
		for range 2 {
			_, err := c.tx.Check(call)
			require.NoError(t, err)
		}
	})
	assert.Equal(t, 1, c.e.MoveBack(latest, epoch))
	tx, k := c.e.NewTx(), c.e.Key([]byte("p:{ann}"))
	tx.Begin(epoch, 0, []Key{k}, false)
	left, _ := tx.Ban(k)
	assert.EqualValues(t, 60_000, left)
	tx.End()
}

// A key with a ban goes after all others, which it is older than.
func TestBansAreEvictedLast(t *testing.T) {
	c := newCaller(t, Options{Shards: 1})
	_, err := c.e.SetPolicies(c.now, []*policy.Policy{mustParse("p", "SLIDE 1 1s BAN 1 1h")})
	require.NoError(t, err)
	c.with("p:{ann}", func(k Key) {
		for range 2 {
			_, err := c.tx.Check(CheckCall{Names: [][]byte{[]byte("p")}, Costs: []int64{1}, Keys: []Key{k}})
			require.NoError(t, err)
		}
	})
	c.now += 60_000
	for i := range 200 {
		c.with(fmt.Sprint("other", i), func(k Key) { c.tx.Set(k, []byte("value"), SetMode{}) })
	}
	c.e.SetEviction(eviction.AllKeysLRU, 5)
	c.e.SetBudget(c.e.Weight() / 4)
	for range 100 {
		c.tx.MakeRoom(c.now)
	}
	assert.Less(t, c.e.Weight(), c.e.Budget()+1)
	c.with("p:{ann}", func(k Key) {
		left, bans := c.tx.Ban(k)
		assert.Positive(t, left)
		assert.EqualValues(t, 1, bans)
	})
}

// One call that evicts many keys, more than there are shards, takes no ban before them.
func TestBansAreEvictedLastByCallsThatEvictMany(t *testing.T) {
	c := newCaller(t, Options{Shards: 4})
	rules := []limit.Window{{Limit: 1, Length: 3_600_000}}
	ofBans, bans := -1, []string{}
	for i := range 1000 {
		name := fmt.Sprint("key", i)
		shard := c.e.shardOf(c.e.Key([]byte(name))).index
		switch {
		case ofBans < 0, shard == ofBans && len(bans) < 10: // the shard has no others
			ofBans, bans = shard, append(bans, name)
			c.slide(name, rules, 1, "")
			c.with(name, func(k Key) {
				l := Limit{Key: k, Cost: 1, Ban: &ban.Rule{After: 1, For: 3_600_000, Max: 3_600_000}}
				_, err := c.tx.SlideAs(l, rules)
				require.NoError(t, err)
			})
		case shard != ofBans:
			c.with(name, func(k Key) { c.tx.Set(k, []byte("value"), SetMode{}) })
		}
	}
	c.e.SetEviction(eviction.AllKeysRandom, 5)
	c.e.SetBudget(c.e.Weight() / 2)
	c.tx.MakeRoom(c.now)
	assert.Greater(t, len(names(c.e)), 100)
	assert.Subset(t, names(c.e), bans)
}

// DUMP and RESTORE carry denials and bans, and a snapshot's effects too.
func TestBansFollowTheirKey(t *testing.T) {
	for _, definition := range []string{"SLIDE 1 1s", "TOKEN 1 1 1s", "FIXED 1 1s", "COUNTER 1 1s"} {
		c := newCaller(t, Options{})
		definition += " BAN 2 1h"
		_, err := c.e.SetPolicies(c.now, []*policy.Policy{mustParse("p", definition)})
		require.NoError(t, err)
		var before, after object.Digest
		c.with("p:{ann}", func(k Key) {
			for range 4 {
				_, err := c.tx.Check(CheckCall{Names: [][]byte{[]byte("p")}, Costs: []int64{1}, Keys: []Key{k}})
				require.NoError(t, err)
			}
			before = c.tx.Digest(k)
		})
		c.tx.BeginAll(c.now, 0, false)
		assert.Equal(t, 1, c.tx.Reload())
		c.tx.End()
		c.with("p:{ann}", func(k Key) { after = c.tx.Digest(k) })
		require.Equal(t, before, after, definition)
		requireSound(t, c.e)
	}
}
