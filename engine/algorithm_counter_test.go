package engine

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
)

// bruteCounter implements the definition of RL.COUNTER by counting all hits, in fractions.
type bruteCounter struct {
	window int64           // of the last admitted call
	hits   map[int64]int64 // by window
}

func (b *bruteCounter) used(now int64) int64 {
	if b.window == 0 {
		return 0
	}
	n, elapsed := now/b.window, now%b.window
	weight := big.NewRat(b.hits[n-1]*(b.window-elapsed), b.window)
	up, rest := new(big.Int).DivMod(weight.Num(), weight.Denom(), new(big.Int))
	return b.hits[n] + up.Int64() + int64(rest.Sign())
}

// record records an admitted call. With another window the counts start anew.
func (b *bruteCounter) record(window, now, cost int64) {
	if b.window != window {
		used := b.used(now)
		b.window, b.hits = window, map[int64]int64{now / window: used}
	}
	b.hits[now/window] += cost
}

// refund removes the newest hits, and returns how many it removed.
func (b *bruteCounter) refund(now, n int64) (back int64) {
	for i := range int64(2) {
		if b.window > 0 {
			took := min(n-back, b.hits[now/b.window-i])
			b.hits[now/b.window-i] -= took
			back += took
		}
	}
	return back
}

// counterRule returns a random rule and the words of its policy.
func counterRule(r *rand.Rand) (rule.Rule, [][]byte) {
	c := limit.Counter{Limit: 1 + r.Int64N(20), Window: 10 + r.Int64N(90)}
	words := [][]byte{[]byte("COUNTER"), fmt.Append(nil, c.Limit), fmt.Appendf(nil, "%dms", c.Window)}
	return rule.Rule{Kind: rule.Counter, Counter: c}, words
}

// Laws 1 to 5 for counters on keys, for single calls, RL.ALL and policies, with rules that change
// and refunds in between.
func TestCounterMatchesBruteForce(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range histories(200) {
		log, brute := new(recorder), new(bruteCounter)
		c := newCaller(t, Options{Journal: log})
		const name = "p:{id}"
		var by rule.Rule
		for i := range 150 {
			if i == 0 || r.IntN(8) == 0 {
				var words [][]byte
				by, words = counterRule(r)
				p, err := ParsePolicy([]byte("p"), words)
				require.NoError(t, err)
				c.e.SetPolicies(c.now, []*policy.Policy{p})
			}
			c.now += r.Int64N(3) * r.Int64N(20)
			cost := r.Int64N(6)
			if r.IntN(6) == 0 {
				require.Equal(t, brute.refund(c.now, cost+1), c.Refund(name, cost+1, ""))
				continue
			}
			var d limit.Decision
			before, free := c.Content(name), by.Counter.Limit-brute.used(c.now)
			c.with(name, func(k Key) {
				var err error
				l := Limit{Key: k, Rule: by}
				switch r.IntN(3) {
				case 0:
					d, err = c.tx.decideAt(&l, cost)
				case 1:
					d, err = c.tx.allAt([]Limit{l}, cost)
				case 2:
					d, err = c.tx.checkAt([][]byte{[]byte("p")}, []Key{k}, cost, nil)
				}
				require.NoError(t, err)
			})
			require.Equal(t, max(cost, 1) <= free, d.Allowed, "laws 2 and 3")
			if d.Allowed && cost > 0 {
				brute.record(by.Counter.Window, c.now, cost)
				free -= cost
				require.EqualValues(t, (c.now/by.Counter.Window+2)*by.Counter.Window-c.now, d.ResetAfter)
			} else {
				require.Equal(t, before, c.Content(name), "law 1")
			}
			require.Equal(t, max(free, 0), d.Remaining)
			if d.RetryAfter > 0 {
				free := func(wait int64) int64 { return by.Counter.Limit - brute.used(c.now+wait) }
				require.Greater(t, max(cost, 1), free(d.RetryAfter-1), "law 4")
				require.LessOrEqual(t, max(cost, 1), free(d.RetryAfter), "law 4")
			}
		}
		requireSound(t, c.e)
		require.Equal(t, living(c.e, c.now), living(log.replayed(Options{}), c.now))
		require.Equal(t, living(c.e, c.now), living(throughASnapshot(t, c.e), c.now))
	}
}

func TestCounterOnKeys(t *testing.T) {
	c := newCaller(t, Options{})
	l := Limit{Rule: rule.Rule{Kind: rule.Counter, Counter: limit.Counter{Limit: 5, Window: 1000}}}
	c.with("k", func(k Key) {
		l.Key = k
		d, err := c.tx.decideAt(&l, 2)
		require.NoError(t, err)
		assert.Equal(t, limit.Decision{Allowed: true, Limit: 5, Remaining: 3, ResetAfter: 2000}, d)
		assert.Equal(t, object.TypeCounter, c.tx.Type(k))
		_, err = c.tx.Token(k, limit.Bucket{Capacity: 1, Refill: 1, Period: 1}, 1)
		assert.Equal(t, ErrWrongType, err)
		_, err = c.tx.Refund(k, 1, []byte("id"))
		assert.Equal(t, ErrNoIDs, err)
		content, _ := c.tx.Content(k)
		v := decoded(t, content)
		require.NoError(
			t,
			c.tx.Restore(
				k,
				&object.Restored{
					Type:     object.Type(v.Kind),
					Numbers:  v.Numbers,
					ExpireAt: epoch + 2000,
					Idle:     -1,
					Uses:     -1,
				},
			),
		)
		d, _ = c.tx.decideAt(&l, 0)
		assert.EqualValues(t, 3, d.Remaining)
	})
	assert.EqualValues(t, 1, c.e.MoveBack(epoch+5, epoch-5000))
	c.now = epoch - 5000
	c.with("k", func(k Key) {
		d, _ := c.tx.decideAt(&l, 0)
		assert.Equal(t, limit.Decision{Allowed: true, Limit: 5, Remaining: 3, ResetAfter: 2000}, d)
	})
}
