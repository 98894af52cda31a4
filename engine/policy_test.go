package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/denials"
	"rlserver/engine/effect"
	"rlserver/engine/eviction"
	"rlserver/engine/limit"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
	"rlserver/zset"
)

func parsePolicy(name, definition string) (*policy.Policy, error) {
	return ParsePolicy([]byte(name), bytes.Fields([]byte(definition)))
}

func mustParse(name, definition string) *policy.Policy {
	p, err := parsePolicy(name, definition)
	if err != nil {
		panic(err)
	}
	return p
}

// randomPolicy returns a policy with a random algorithm; half of them ban, one in four is in
// SHADOW.
func randomPolicy(r *rand.Rand, name string) *policy.Policy {
	definition := []string{
		fmt.Sprintf("SLIDE %d %dms", 1+r.IntN(6), 100+r.IntN(2000)),
		fmt.Sprintf("TOKEN %d %d %dms", 1+r.IntN(6), 1+r.IntN(4), 100+r.IntN(2000)),
		fmt.Sprintf("FIXED %d %dms", 1+r.IntN(6), 100+r.IntN(2000)),
		fmt.Sprintf("LEASE %d %dms", 1+r.IntN(4), 100+r.IntN(2000)),
	}[r.IntN(4)]
	if r.IntN(2) == 0 {
		definition += fmt.Sprintf(" BAN %d %dms %dms", 1+r.IntN(3), 1+r.IntN(500), 500+r.IntN(2000))
	}
	if r.IntN(4) == 0 {
		definition += " SHADOW"
	}
	return mustParse(name, definition)
}

// policyKeys returns the keys of an id under the named policies.
func policyKeys(e *Engine, names [][]byte, id []byte) (keys []Key) {
	for _, name := range names {
		keys = append(keys, e.Key(fmt.Appendf(nil, "%s:{%s}", name, id)))
	}
	return keys
}

func TestParsePolicy(t *testing.T) {
	for definition, want := range map[string]string{
		"slide 5 60":                                "SLIDE 5 1m",
		"SLIDE 5 1.5s Shadow":                       "SLIDE 5 1500ms SHADOW",
		"token 100 10 0.5":                          "TOKEN 100 10 500ms",
		"fixed 3 2w":                                "FIXED 3 14d",
		"FIXED 3 MONTH":                             "FIXED 3 month",
		"FIXED 3 day TZ Europe/Berlin":              "FIXED 3 day TZ Europe/Berlin",
		"FIXED 3 day SHADOW tz UTC":                 "FIXED 3 day TZ UTC SHADOW",
		"FIXED 3 day TZ UTC shadow":                 "FIXED 3 day TZ UTC SHADOW",
		"lease 2 30s":                               "LEASE 2 30s",
		"leaky 2 60":                                "LEAKY 2 1m",
		"leaky 2 60 shadow queue 5":                 "LEAKY 2 1m QUEUE 5 SHADOW",
		"SLIDE 9007199254740991 315360000":          "SLIDE 9007199254740991 3650d",
		"SLIDE 5 " + strings.Repeat("0", 999) + "1": "SLIDE 5 1s",
	} {
		p, err := parsePolicy("p", definition)
		require.NoError(t, err, definition)
		assert.Equal(t, want, p.Definition())
		again, err := parsePolicy("p", want)
		require.NoError(t, err, want)
		assert.Equal(t, p.Rule(), again.Rule())
		assert.Equal(t, p.Definition(), again.Definition())
		assert.Equal(t, strings.HasSuffix(want, "SHADOW"), p.Shadow())
	}
}

func TestParsePolicyRefusesInvalidDefinitions(t *testing.T) {
	const duration = ": use seconds, or a number with ms, s, m, h, d or w"
	for definition, want := range map[string]string{
		"": "ERR unknown algorithm '': a policy is SLIDE, TOKEN, FIXED, LEASE, LEAKY or " +
			"COUNTER",
		"LEAKING 5 1s": "ERR unknown algorithm 'LEAKING': a policy is SLIDE, TOKEN, FIXED, LEASE, " +
			"LEAKY or COUNTER",
		"SLIDE":      "ERR something is missing: a policy is SLIDE limit window " + rule.PolicyOptions,
		"SLIDE 0 1s": "ERR limit must be from 1 to 9007199254740991",
		"SLIDE 05 1s": "ERR value is not an integer or out of range: limit must be from 1 to " +
			"9007199254740991",
		"SLIDE +5 1s": "ERR value is not an integer or out of range: limit must be from 1 to " +
			"9007199254740991",
		"SLIDE 9007199254740992 1": "ERR limit must be from 1 to 9007199254740991",
		"TOKEN 5 x 1s": "ERR value is not an integer or out of range: refill must be from 1 to " +
			"9007199254740991",
		"TOKEN 5.5 1 1s": "ERR value is not an integer or out of range: capacity must be from 1 to " +
			"9007199254740991",
		"SLIDE 5 1x": "ERR invalid duration '1x'" + duration,
		"FIXED 5 fortnight": "ERR invalid duration 'fortnight'" + duration + "; or minute, hour, day, week, " +
			"month or year for a window of the calendar",
		"SLIDE 5 day":    "ERR invalid duration 'day'" + duration,
		"LEASE 5":        "ERR something is missing: a policy is LEASE limit ttl " + rule.PolicyOptions,
		"FIXED 5":        "ERR something is missing: a policy is FIXED limit window [TZ zone] " + rule.PolicyOptions,
		"FIXED 5 day TZ": "ERR something is missing: a policy is FIXED limit window [TZ zone] " + rule.PolicyOptions,
		"FIXED 5 day TZ Mars/Port": "ERR unknown time zone 'Mars/Port': TZ takes an IANA name such as UTC or " +
			"Europe/Berlin",
		"FIXED 5 1d TZ UTC": "ERR TZ goes with a window of the calendar: minute, hour, day, week, month or " +
			"year",
		"FIXED 5 day TZ UTC TZ UTC": "ERR 'TZ' has no place there: a policy is " +
			"FIXED limit window [TZ zone] " + rule.PolicyOptions,
		"SLIDE 5 1s SHADOW SHADOW": "ERR 'SHADOW' has no place there: a policy is " +
			"SLIDE limit window " + rule.PolicyOptions,
		"SLIDE 5 1s COST 3": "ERR 'COST' has no place there: a policy is " +
			"SLIDE limit window " + rule.PolicyOptions,
		"SLIDE 5 1s 10 1m": "ERR '10' has no place there: a policy is " +
			"SLIDE limit window " + rule.PolicyOptions,
		"SLIDE 5 1s TZ UTC": "ERR 'TZ' has no place there: a policy is " +
			"SLIDE limit window " + rule.PolicyOptions,
	} {
		_, err := parsePolicy("p", definition)
		assert.EqualError(t, err, want, definition)
	}
}

func TestParsePolicyChecksNames(t *testing.T) {
	for _, name := range []string{"a", "login", "API.v2_read-only", strings.Repeat("x", 64), "costs", "7", "__proto__",
		"constructor", "team/api:v1@eu"} {
		_, err := parsePolicy(name, "SLIDE 5 1s")
		assert.NoError(t, err, name)
	}
	for _, name := range []string{"", "a+b", "a\"b", "{a}", "a}", "a b", "a\n", "é", strings.Repeat("x", 64+1)} {
		_, err := parsePolicy(name, "SLIDE 5 1s")
		assert.EqualError(
			t,
			err,
			fmt.Sprintf(
				"ERR a policy's name is 1 to 64 letters, digits and ._-/:@, not '%s'",
				name,
			),
		)
	}
	for _, name := range []string{"COST", "id", "Wait", "force"} {
		_, err := parsePolicy(name, "SLIDE 5 1s")
		assert.EqualError(t, err, "ERR a policy cannot be called '"+name+"': that is an option of RL.CHECK")
	}
}

// checker makes calls on an engine with policies, one at a time.
type checker struct {
	t   *testing.T
	e   *Engine
	tx  *Tx
	log *recorder
	now int64

	force bool
}

func newChecker(t *testing.T, policies ...string) *checker {
	c := &checker{t: t, log: new(recorder), now: epoch}
	c.e = New(Options{Databases: 2, Shards: 8, Journal: c.log})
	c.tx = c.e.NewTx()
	for _, p := range policies {
		c.set(p)
	}
	return c
}

// set sets a policy, given as its name and definition.
func (c *checker) set(text string) PolicyChanges {
	name, definition, _ := strings.Cut(text, " ")
	changes, _ := c.e.SetPolicies(c.now, []*policy.Policy{mustParse(name, definition)})
	return changes
}

func (c *checker) check(id, policies string, cost int64, request string) (limit.Decision, error) {
	return c.priced(id, policies, []int64{cost}, request)
}

// priced makes a call with one cost for all policies, or one for each.
func (c *checker) priced(id, policies string, costs []int64, request string) (limit.Decision, error) {
	names := bytes.Fields([]byte(policies))
	var req []byte
	if request != "" {
		req = []byte(request)
	}
	keys := policyKeys(c.e, names, []byte(id))
	c.tx.Begin(c.now, 0, keys, true)
	defer c.tx.End()
	return c.tx.Check(CheckCall{Names: names, Keys: keys, Costs: costs, ID: req, Force: c.force})
}

func (c *checker) must(id, policies string, cost int64, request string) limit.Decision {
	c.t.Helper()
	d, err := c.check(id, policies, cost, request)
	require.NoError(c.t, err)
	return d
}

func (c *checker) counts(name string) [2]int64 {
	d := c.e.Policy(name).Decisions()
	return [2]int64{d.Admitted, d.Denied + d.ShadowDenied}
}

func TestCheckErrors(t *testing.T) {
	c := newChecker(t, "s SLIDE 5 1s", "l LEASE 1 1s", "t TOKEN 5 1 1s")
	for _, test := range []struct{ policies, want string }{
		{"s x t", "ERR no such policy 'x'"},
		{"s t s", "ERR policy 's' is named twice"},
		{"s l", "ERR policy 'l' is of leases: RL.CHECK needs ID and the lease's id"},
	} {
		_, err := c.check("ann", test.policies, 1, "")
		assert.EqualError(t, err, test.want)
	}
	keys := policyKeys(c.e, [][]byte{[]byte("t")}, []byte("bob"))
	c.tx.Begin(c.now, 0, keys, true)
	c.tx.Set(keys[0], []byte("mine"), SetMode{})
	c.tx.End()
	before := dump(c.e)
	_, err := c.check("bob", "s t", 1, "")
	assert.Equal(t, ErrWrongType, err)
	assert.Equal(t, before, dump(c.e), "the failed call changes nothing")
	assert.Equal(t, [2]int64{}, c.counts("s"))
}

// A policy in SHADOW denies no call: RL.TOP does not list its keys, and they are evicted like
// those of any exhausted limiter.
func TestShadowDenialIsNotListed(t *testing.T) {
	c := newChecker(t, "try SLIDE 1 1h SHADOW", "bind SLIDE 1 1h")
	for range 3 {
		c.must("ann", "try", 1, "")
		c.must("ann", "bind", 1, "")
	}
	assert.Equal(t, []denials.Count{
		{DB: 0, Name: []byte("bind:{ann}"), Count: 2, Rule: c.e.Policy("bind").Rule()},
	}, c.e.Memory().Top(0, 10))
	assert.Equal(t, [2]int64{1, 2}, c.counts("try"))
	pressures := make(map[string]eviction.Pressure)
	for o := range objects(c.e, 0) {
		pressures[o.Name()] = o.Pressure()
	}
	assert.Equal(
		t,
		map[string]eviction.Pressure{"try:{ann}": eviction.PressureFull, "bind:{ann}": eviction.Denying},
		pressures,
	)
}

// Each policy in SHADOW decides alone on calls that the policies in force have admitted.
func TestShadowDecidesAlone(t *testing.T) {
	c := newChecker(t, "bind FIXED 3 1h", "try SLIDE 1 1h SHADOW", "other TOKEN 9 1 1h SHADOW")
	for i := range 5 {
		d := c.must("ann", "try bind other", 1, "")
		assert.Equal(t, i < 3, d.Allowed)
		assert.Equal(t, i == 1 || i == 2, d.ShadowDenied)
		assert.Equal(t, 1, d.Index)
	}
	assert.Equal(t, [2]int64{3, 2}, c.counts("bind"))
	assert.Equal(t, [2]int64{1, 2}, c.counts("try"), "calls that others deny are not counted")
	assert.Equal(t, [2]int64{3, 0}, c.counts("other"))

	d := c.must("ann", "other try", 1, "")
	assert.Equal(
		t,
		limit.Decision{Allowed: true, Free: true, ShadowDenied: true, Limit: 1, Index: 1, ResetAfter: d.ResetAfter},
		d,
		"all admit, and the answer is that of the tightest",
	)
	d = c.must("bob", "try", 0, "")
	assert.True(t, d.Allowed)
	assert.Equal(t, [2]int64{1, 3}, c.counts("try"), "a peek does not count")

	// A key of another type does not fail the call if its policy is in SHADOW.
	keys := policyKeys(c.e, [][]byte{[]byte("try")}, []byte("eve"))
	c.tx.Begin(c.now, 0, keys, true)
	c.tx.Set(keys[0], nil, SetMode{})
	c.tx.End()
	assert.True(t, c.must("eve", "try bind", 1, "").Allowed)
	assert.True(t, c.must("eve", "try", 1, "").Allowed)
	assert.Equal(t, [2]int64{1, 5}, c.counts("try"))
	c.e.ResetStats()
	assert.Equal(t, [2]int64{0, 0}, c.counts("try"))
}

// A request whose id all sliding windows have is a retry, and costs nothing with the other
// algorithms either.
func TestCheckRetryIsFree(t *testing.T) {
	c := newChecker(
		t,
		"minute SLIDE 1 1m",
		"hour SLIDE 2 1h",
		"bucket TOKEN 2 1 1h",
		"day FIXED 9 1d",
		"lease LEASE 1 10s",
	)
	const all = "minute hour bucket day lease"
	require.True(t, c.must("ann", all, 1, "r1").Allowed)
	before := dump(c.e)
	for range 3 {
		d := c.must("ann", all, 1, "r1")
		assert.True(t, d.Allowed)
		assert.Equal(t, int64(0), d.RetryAfter)
		assert.Equal(t, before, dump(c.e))
	}
	assert.True(t, c.must("ann", all, 0, "r1").Allowed)
	assert.False(t, c.must("ann", all, 1, "r2").Allowed)
	assert.Equal(t, before, dump(c.e))
	assert.Equal(t, [2]int64{1, 1}, c.counts("minute"))
	assert.Equal(t, [2]int64{1, 0}, c.counts("bucket"), "it did not deny r2")

	c.now += 15_000 // the lease has lapsed, and another client takes it
	lease := c.e.Key([]byte("lease:{ann}"))
	c.tx.Begin(c.now, 0, []Key{lease}, true)
	d, err := c.tx.Lease(lease, limit.Lease{Limit: 1, TTL: 10_000}, []byte("other"))
	require.NoError(t, err)
	require.True(t, d.Allowed)
	c.tx.End()
	before = dump(c.e)
	d = c.must("ann", all, 1, "r1")
	assert.Equal(t, limit.Decision{Limit: 1, RetryAfter: 10_000, ResetAfter: d.ResetAfter, Index: 4}, d)
	assert.Equal(t, before, dump(c.e))
	c.now += 10_000
	assert.True(t, c.must("ann", all, 1, "r1").Allowed, "it takes the lease again")

	c.now += 60_000 // r1 has left the minute, not the hour
	assert.True(t, c.must("ann", "minute hour bucket", 1, "r1").Allowed)
	assert.False(t, c.must("ann", "bucket", 1, "r1").Allowed, "it took a token, as the minute did not have the id")
	assert.Equal(t, [2]int64{1, 0}, c.counts("hour"), "the hour had it")
}

// Usage is kept when the limit changes.
func TestChangedLimitKeepsUsage(t *testing.T) {
	c := newChecker(t, "s SLIDE 2 1h", "t TOKEN 2 1 1h", "f FIXED 2 1h", "l LEASE 2 1h")
	for _, name := range []string{"s", "t", "f", "l"} {
		for i := range 3 {
			assert.Equal(t, i < 2, c.must("ann", name, 1, fmt.Sprint(i)).Allowed)
		}
	}
	for _, policy := range []string{"s SLIDE 3 2h", "t TOKEN 3 1 2h", "f FIXED 3 2h", "l LEASE 3 2h"} {
		changes := c.set(policy)
		assert.Equal(t, PolicyChanges{Names: []string{policy[:1]}}, changes)
		assert.True(t, c.must("ann", policy[:1], 1, "x").Allowed)
		assert.False(t, c.must("ann", policy[:1], 1, "y").Allowed)
		assert.Equal(t, [2]int64{3, 2}, c.counts(policy[:1]), "counts are kept")
		records := len(c.log.calls)
		assert.Zero(t, c.set(policy), "the same definition changes nothing")
		assert.Len(t, c.log.calls, records)
	}
}

// A counter is dropped if its window is not within that of the changed policy.
func TestChangedWindowDropsCounters(t *testing.T) {
	c := newChecker(t, "p FIXED 9 day", "other FIXED 9 day")
	for _, id := range []string{"ann", "bob"} {
		c.must(id, "p other", 1, "")
	}
	changes := c.set("p FIXED 5 hour")
	assert.Equal(t, PolicyChanges{Names: []string{"p"}, Dropped: 2}, changes)
	assert.EqualValues(t, 4, c.must("ann", "p", 1, "").Remaining)
	assert.Zero(t, c.set("p FIXED 9 week").Dropped)
	assert.EqualValues(t, 7, c.must("ann", "p", 1, "").Remaining)
	assert.EqualValues(t, 7, c.must("ann", "other", 1, "").Remaining)
	require.Equal(t, dump(c.e), dump(c.log.replayed(Options{Databases: 2})))
}

func TestChangedAlgorithmDropsKeys(t *testing.T) {
	c := newChecker(t, "p SLIDE 2 1h", "pp SLIDE 2 1h")
	const ids = 1000
	for i := range ids {
		require.True(t, c.must(fmt.Sprint(i), "p pp", 2, "").Allowed)
	}
	foreign := []string{"p:{text}", "p:{keyspace}", "p:", "p:{", "p", "p:x"}
	for _, name := range foreign { // not of a limiter, or not of this policy
		k := c.e.Key([]byte(name))
		c.tx.Begin(c.now, 0, []Key{k}, true)
		if name == "p:{text}" {
			c.tx.Set(k, nil, SetMode{ExpireAt: c.now + 1000})
		} else {
			_, _, err := c.tx.ZAdd(k, 0, []zset.Member{{Member: []byte("m"), Score: 1}})
			require.NoError(t, err)
		}
		c.tx.End()
	}
	changes := c.set("p TOKEN 2 1 1h")
	assert.Equal(t, ids, changes.Dropped)
	assert.Equal(t, []string{"p"}, changes.Switched)
	require.Len(t, dump(c.e), 2+ids+len(foreign))
	require.True(t, c.must("7", "p", 2, "").Allowed)
	require.False(t, c.must("7", "p pp", 1, "").Allowed)
	assert.Equal(t, 1, c.set("p LEASE 1 1h").Dropped)
	require.Equal(t, dump(c.e), dump(c.log.replayed(Options{Databases: 2})))

	found, _ := c.e.DeletePolicy(c.now, "p")
	assert.True(t, found)
	found, _ = c.e.DeletePolicy(c.now, "p")
	assert.False(t, found)
	_, err := c.check("7", "p", 1, "x")
	assert.EqualError(t, err, "ERR no such policy 'p'")
}

// While calls are made, a policy is switched between algorithms: no call finds a key of the
// previous one.
func TestChangedAlgorithmUnderLoad(t *testing.T) {
	c := newChecker(t, "p SLIDE 5 1h", "stays FIXED 1000000 1h")
	var callers sync.WaitGroup
	stop := make(chan struct{})
	for caller := range 4 {
		callers.Go(func() {
			tx := c.e.NewTx()
			names := [][]byte{[]byte("stays"), []byte("p")}
			for n := caller; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				keys := policyKeys(c.e, names, fmt.Append(nil, n%200))
				tx.Begin(epoch, n%2, keys, true)
				_, err := tx.checkAt(names, keys, 1, []byte("id"))
				tx.End()
				if !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	for i := range 40 {
		c.set([]string{"p TOKEN 5 1 1h", "p FIXED 5 1h", "p LEASE 5 1h", "p SLIDE 5 1h"}[i%4])
	}
	close(stop)
	callers.Wait()
	requireSound(t, c.e)
	require.Equal(t, dump(c.e), dump(c.log.replayed(Options{Databases: 2})))
}

// Policies that engines share are in no journal. A key that another algorithm, or another window of
// FIXED, has left is dropped when it is met: by a call that is admitted, denied or a peek, and
// without an effect by one that only tries.
func TestSharedPoliciesDropKeysThatTheyMeet(t *testing.T) {
	shared := new(policy.Shared)
	c := newChecker(t)
	c.e = New(Options{Databases: 2, Journal: c.log, Policies: shared})
	c.tx = c.e.NewTx()
	use := func(policies ...string) {
		var list []*policy.Policy
		for _, p := range policies {
			name, definition, _ := strings.Cut(p, " ")
			list = append(list, mustParse(name, definition))
		}
		shared.Set(shared.Version()+1, list, false)
	}
	use("p SLIDE 1 1h", "q SLIDE 1 1h")
	require.Len(t, c.e.Policies(), 2)
	definitions := []string{"TOKEN 1 1 1h", "FIXED 1 1d", "FIXED 1 hour", "COUNTER 1 1h", "LEASE 1 1h", "SLIDE 1 1h"}
	for _, next := range definitions {
		require.True(t, c.must("ann", "p q", 1, next).Allowed, next)
		require.False(t, c.must("ann", "p", 1, "b").Allowed, next)
		use("p "+next, "q SLIDE 100 1h")
		before := dump(c.e)
		c.tx.DryRun(func() { assert.True(t, c.must("ann", "p", 1, "c").Allowed, next) })
		assert.Equal(t, before, dump(c.e))
		assert.True(t, c.must("ann", "q p", 0, "c").Allowed, next)
	}
	require.Equal(t, dump(c.e), dump(c.log.replayed(Options{Databases: 2, Policies: shared})))

	// other keys stay: those without a deadline, of other types, and those of other calls
	use("p SLIDE 1 1h", "t TOKEN 1 1 1h", "s SLIDE 1 1h SHADOW")
	keys := policyKeys(c.e, [][]byte{[]byte("t"), []byte("s")}, []byte("bob"))
	for _, k := range keys {
		c.tx.Begin(c.now, 0, []Key{k}, true)
		c.tx.Set(k, []byte("mine"), SetMode{ExpireAt: c.now + 1000})
		c.tx.End()
	}
	_, err := c.check("bob", "t", 1, "")
	assert.Equal(t, ErrWrongType, err)
	assert.True(t, c.must("bob", "s", 1, "").Allowed)
	c.must("eve", "t", 1, "")
	k := c.e.Key([]byte("t:{eve}"))
	c.tx.Begin(c.now, 0, []Key{k}, true)
	_, err = c.tx.allAt([]Limit{{Key: k, Rule: *mustParse("p", "SLIDE 1 1h").Rule()}}, 1)
	assert.Equal(t, ErrWrongType, err, "the call is not about a policy")
	c.tx.End()

	decided := c.counts("t")
	use("t TOKEN 5 1 1h")
	assert.Equal(t, decided, c.counts("t"), "counts go on")
	_, err = c.check("eve", "s", 1, "")
	assert.EqualError(t, err, "ERR no such policy 's'")
}

// Leases are in the sorted set of a key, as hits are: they neither count as hits of a policy that
// becomes SLIDE, nor is a call with the id of one taken for a retry.
func TestSharedPoliciesTakeLeasesForNoHits(t *testing.T) {
	shared := new(policy.Shared)
	c := newChecker(t)
	c.e = New(Options{Databases: 2, Journal: c.log, Policies: shared})
	c.tx = c.e.NewTx()
	shared.Set(1, []*policy.Policy{mustParse("p", "LEASE 2 1h")}, false)
	require.True(t, c.must("ann", "p", 1, "a").Allowed)
	require.True(t, c.must("ann", "p", 1, "b").Allowed)
	shared.Set(2, []*policy.Policy{mustParse("p", "SLIDE 2 1m")}, false)
	assert.Equal(t, int64(2), c.must("ann", "p", 0, "a").Remaining)
	assert.Equal(t, int64(1), c.must("ann", "p", 1, "a").Remaining)
	assert.Equal(t, int64(1), c.must("ann", "p", 1, "a").Remaining, "a retry")
	assert.Equal(t, int64(0), c.must("ann", "p", 1, "c").Remaining)
	assert.False(t, c.must("ann", "p", 1, "d").Allowed)
	shared.Set(3, []*policy.Policy{mustParse("p", "LEASE 1 1h")}, false)
	assert.True(t, c.must("ann", "p", 1, "a").Allowed, "a hit is no lease")
	assert.False(t, c.must("ann", "p", 1, "b").Allowed)
}

// An engine whose keys have seen a version of the policies uses no older one: it would drop them.
func TestOlderSharedPoliciesAreNotUsed(t *testing.T) {
	shared := new(policy.Shared)
	c := newChecker(t)
	c.e = New(Options{Databases: 2, Journal: c.log, Policies: shared})
	c.tx = c.e.NewTx()
	c.e.RequirePolicies(2)
	_, err := c.check("ann", "p", 1, "")
	assert.Equal(t, ErrOldPolicies, err, "before there are any")
	shared.Set(1, []*policy.Policy{mustParse("p", "SLIDE 5 1h")}, false)
	_, err = c.check("ann", "p", 0, "")
	assert.Equal(t, ErrOldPolicies, err)
	shared.Set(2, []*policy.Policy{mustParse("p", "TOKEN 5 1 1h")}, false)
	assert.True(t, c.must("ann", "p", 1, "").Allowed)
	assert.Equal(t, uint64(2), shared.Version())
	assert.Zero(t, (*policy.Shared)(nil).Version())
}

// The calls of one hold of the locks, such as those of EXEC, see the same policies.
func TestSharedPoliciesAreReadOncePerHold(t *testing.T) {
	shared := new(policy.Shared)
	e := New(Options{Policies: shared})
	tx, names := e.NewTx(), [][]byte{[]byte("p")}
	shared.Set(1, []*policy.Policy{mustParse("p", "SLIDE 1 1h")}, false)
	keys := policyKeys(e, names, []byte("ann"))
	for _, want := range []int64{1, 2} {
		tx.Begin(epoch, 0, keys, true)
		d, err := tx.checkAt(names, keys, 0, nil)
		require.NoError(t, err)
		assert.Equal(t, want, d.Limit)
		shared.Set(2, []*policy.Policy{mustParse("p", "SLIDE 2 1h")}, false)
		d, err = tx.checkAt(names, keys, 0, nil)
		require.NoError(t, err)
		assert.Equal(t, want, d.Limit)
		tx.End()
	}
}

func TestFlushKeepsPolicies(t *testing.T) {
	c := newChecker(t, "p SLIDE 5 1h")
	c.must("ann", "p", 1, "")
	c.tx.BeginAll(c.now, 0, true)
	c.tx.FlushAll()
	c.tx.End()
	assert.Equal(t, []string{`policy "p": SLIDE 5 1h`}, dump(c.e))
}

// A policy's name is not a key: a watch of a key of that name is not notified.
func TestSetPolicyTouchesNoKey(t *testing.T) {
	c := newChecker(t)
	k := c.e.Key([]byte("p"))
	var w Watch
	c.tx.Begin(c.now, 0, []Key{k}, false)
	c.tx.Watch(&w, k)
	c.tx.End()
	c.set("p SLIDE 5 1h")
	c.e.DeletePolicy(c.now, "p")
	assert.False(t, w.Changed())
}

func TestApplyRefusesInvalidPolicies(t *testing.T) {
	for _, f := range []effect.Effect{
		{Kind: effect.Policy, Key: Key{Name: []byte("p")}, Value: []byte("SLIDE 0 1s")},
		{Kind: effect.Policy, Key: Key{Name: []byte("p")}, Value: []byte("SLIDE  1 1s")},
		{Kind: effect.Policy, Key: Key{Name: []byte("p")}},
	} {
		e := New(Options{})
		assert.ErrorContains(t, e.Apply(epoch, []effect.Effect{f}), "effect policy on")
		assert.Empty(t, e.Policies())
	}
}

// A stored policy is loaded whatever its name, so that it can be deleted.
func TestStoredPoliciesOfOtherNamesAreLoaded(t *testing.T) {
	for _, name := range []string{"a b", "a\nb", "ID", strings.Repeat("x", 100)} {
		e := New(Options{})
		set := effect.Effect{Kind: effect.Policy, Key: Key{Name: []byte(name)}, Value: []byte("SLIDE 1 1s")}
		require.NoError(t, e.Apply(epoch, []effect.Effect{set}))
		require.NotNil(t, e.Policy(name))
		found, err := e.DeletePolicy(epoch, name)
		require.NoError(t, err)
		require.True(t, found)
		require.Empty(t, e.Policies())
	}
}

// brutePolicy is a reference model of a policy: it keeps all hits of each id and applies the
// definition of the algorithm to them.
type brutePolicy struct {
	limit  Limit
	shadow bool
	taken  map[string][]bruteHit
	counts [2]int64
}

type bruteHit struct{ at, n int64 }

func (b *brutePolicy) admits(id string, now, cost int64) bool {
	cost = max(cost, 1)
	used := int64(0)
	switch hits := b.taken[id]; b.limit.Kind {
	case rule.Slide:
		for _, h := range hits {
			if h.at > now-b.limit.Slide.Length {
				used += h.n
			}
		}
		return used+cost <= b.limit.Slide.Limit
	case rule.Fixed:
		for _, h := range hits {
			if h.at/b.limit.Fixed.Window.Length == now/b.limit.Fixed.Window.Length {
				used += h.n
			}
		}
		return used+cost <= b.limit.Fixed.Limit
	default: // since any call, no more than the capacity and the refill
		if cost > b.limit.Token.Capacity {
			return false
		}
		for _, h := range slices.Backward(hits) {
			cost += h.n
			if (cost-b.limit.Token.Capacity)*b.limit.Token.Period > b.limit.Token.Refill*(now-h.at) {
				return false
			}
		}
		return true
	}
}

// The laws, with policies whose limits and algorithms change: never over, never under, all or
// nothing, exact retry_after and counts.
func TestPoliciesKeepLaws(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	for range 30 {
		seed := rand.Uint64()
		t.Log("seed", seed)
		r := rand.New(rand.NewPCG(seed, 1))
		c, brute := newChecker(t), make(map[string]*brutePolicy)
		period := 1 + r.Int64N(60)
		set := func(name string) {
			p := mustParse(name, []string{
				fmt.Sprintf("SLIDE %d 50ms", 1+r.IntN(6)), fmt.Sprintf("FIXED %d 70ms", 1+r.IntN(6)),
				fmt.Sprintf("TOKEN %d 2 %dms", 1+r.IntN(6), period),
			}[r.IntN(3)]+[]string{"", "", " SHADOW"}[r.IntN(3)])
			b := brute[name]
			if b == nil {
				b = &brutePolicy{}
				brute[name] = b
			}
			if b.taken == nil || b.limit.Kind != p.Rule().Kind {
				b.taken = make(map[string][]bruteHit)
			}
			if b.limit.Kind == rule.Token && b.limit.Token.Capacity != p.Rule().Token.Capacity &&
				p.Rule().Kind == rule.Token {
				// a change of capacity is tested in package limit
				p = mustParse(name, b.text())
			}
			b.limit, b.shadow = Limit{Rule: *p.Rule()}, p.Shadow()
			c.e.SetPolicies(c.now, []*policy.Policy{p})
		}
		for _, name := range names {
			set(name)
		}
		for range 150 {
			c.now += []int64{0, 0, 1, 3, 10, 40}[r.IntN(6)]
			if r.IntN(10) == 0 {
				set(names[r.IntN(len(names))])
			}
			r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			called, id := names[:1+r.IntN(len(names))], fmt.Sprint(r.IntN(2))
			costs := randomCosts(r, len(called))
			costOf := func(i int) int64 { return costs[min(i, len(costs)-1)] }
			peek := slices.Max(costs) == 0
			admits := func(i int, at int64) bool {
				return !peek && costOf(i) == 0 || brute[called[i]].admits(id, at, costOf(i))
			}
			want, binding := true, false
			for i, name := range called {
				if b := brute[name]; !b.shadow {
					binding, want = true, want && admits(i, c.now)
				}
			}
			before := dump(c.e)
			c.force = r.IntN(6) == 0
			d, err := c.priced(id, strings.Join(called, " "), costs, "")
			require.NoError(t, err)
			require.Equal(
				t,
				want,
				d.Allowed,
				"laws 2, 3 and 5 at %d: %v cost %d of %s\n%s",
				c.now,
				called,
				costs,
				id,
				strings.Join(before, "\n"),
			)
			require.Equal(t, allowed(&brute[called[d.Index]].limit), d.Limit)
			require.True(t, !binding || !brute[called[d.Index]].shadow, "the answer is that of a policy in force")
			if !want && !c.force || peek {
				require.Equal(t, before, dump(c.e), "law 1")
			}
			checkRetry := func() {
				if want || d.RetryAfter == limit.Never {
					return
				}
				for wait, admitted := range map[int64]bool{d.RetryAfter - 1: false, d.RetryAfter: true} {
					all := true
					for i, name := range called {
						all = all && (brute[name].shadow || admits(i, c.now+wait))
					}
					require.Equal(t, admitted, all, "law 4: retry_after %d", d.RetryAfter)
				}
			}
			if !c.force {
				checkRetry()
			}
			for i, name := range called {
				b := brute[name]
				switch admits := admits(i, c.now); {
				case costOf(i) == 0:
				case c.force:
					b.taken[id] = append(b.taken[id], bruteHit{c.now, costOf(i)})
					if admits {
						b.counts[0]++
					} else {
						b.counts[1]++
					}
				case want && admits:
					b.taken[id] = append(b.taken[id], bruteHit{c.now, costOf(i)})
					b.counts[0]++
				case !admits && (want || !b.shadow):
					b.counts[1]++
				}
			}
			if c.force {
				checkRetry()
			}
			for _, name := range called {
				require.Equal(t, brute[name].counts, c.counts(name), "counts of %s", name)
			}
		}
		requireSound(t, c.e)
		require.Equal(t, dump(c.e), dump(c.log.replayed(Options{Databases: 2, Shards: 2, Seed: [2]uint64{seed, 1}})))
	}
}

// randomCosts returns one cost for all of n policies, or one for each.
func randomCosts(r *rand.Rand, n int) (costs []int64) {
	if r.IntN(2) == 0 {
		n = 1
	}
	for range n {
		costs = append(costs, r.Int64N(4))
	}
	return costs
}

// A policy with a cost of 0 neither denies nor counts, also in a retry, as long as others have one.
func TestCheckPricesEachPolicy(t *testing.T) {
	c := newChecker(t, "calls SLIDE 1 1m", "tokens SLIDE 10 1h", "money TOKEN 9 1 1h", "lease LEASE 1 10s",
		"trial SLIDE 2 1m SHADOW")
	const all = "calls tokens money lease trial"
	d, err := c.priced("ann", all, []int64{1, 7, 3, 1, 2}, "r1")
	require.NoError(t, err)
	require.Equal(t, limit.Decision{Allowed: true, Limit: 1, ResetAfter: 3 * 3600_000, Index: 0}, d)
	before := dump(c.e)
	d, _ = c.priced("ann", all, []int64{1, 7, 3, 1, 2}, "r1")
	require.True(t, d.Allowed && d.Free, "a retry")
	require.Equal(t, before, dump(c.e))
	for _, step := range []struct {
		costs   []int64
		request string
		allowed bool
		index   int
		shadow  bool
	}{
		{[]int64{0, 4, 1, 0, 0}, "r2", false, 1, false},
		{[]int64{1, 3, 1, 0, 0}, "r2", false, 0, false},
		{[]int64{0, 3, 6, 1, 0}, "r2", false, 3, false},
		{[]int64{0, 0, 0, 0, 3}, "r2", true, 0, true},
		{[]int64{0, 0, 0, 0, 0}, "r2", false, 0, false},
		{[]int64{0, 3, 6, 0, 1}, "r2", true, 0, true},
		{[]int64{0, 3, 7, 0, 1}, "r2", true, 0, false},
		{[]int64{0, 0, 1, 0, 0}, "r3", false, 2, false},
	} {
		d, err := c.priced("ann", all, step.costs, step.request)
		require.NoError(t, err)
		assert.Equal(t, step.allowed, d.Allowed, "%v", step)
		assert.Equal(t, step.shadow, d.ShadowDenied, "%v", step)
		assert.Equal(t, step.index, d.Index, "%v", step)
	}
	assert.Equal(t, [2]int64{1, 1}, c.counts("calls"))
	assert.Equal(t, [2]int64{2, 1}, c.counts("tokens"))
	assert.Equal(t, [2]int64{2, 1}, c.counts("money"))
	assert.Equal(t, [2]int64{1, 1}, c.counts("lease"))
	assert.Equal(t, [2]int64{1, 2}, c.counts("trial"))
}

// A call that has happened counts for each policy, once, and its denials are no news to RL.TOP.
func TestForceRecordsBeyondTheLimits(t *testing.T) {
	c := newChecker(t, "calls SLIDE 2 1m", "money TOKEN 10 10 1m", "lease LEASE 1 10s", "trial FIXED 3 1m SHADOW")
	const all = "calls money lease trial"
	c.force = true
	for i, step := range []struct {
		costs   []int64
		request string
		want    limit.Decision
	}{
		{[]int64{1, 4, 1, 1}, "a", limit.Decision{Allowed: true, Limit: 1, ResetAfter: 60_000, Index: 2}},
		{[]int64{1, 5, 1, 1}, "b", limit.Decision{Limit: 2, RetryAfter: 60_000, ResetAfter: 60_000}},
		{[]int64{1, 25, 1, 1}, "b", limit.Decision{
			Allowed: true, Limit: 2, ResetAfter: 60_000, Free: true}},
		{[]int64{0, 25, 0, 2}, "c", limit.Decision{
			Limit: 10, RetryAfter: limit.Never, ResetAfter: 204_000, Index: 1, ShadowDenied: true}},
		{[]int64{0, 10, 0, 0}, "d", limit.Decision{Limit: 10, RetryAfter: 264_000, ResetAfter: 264_000, Index: 1}},
		{[]int64{0, 0, 0, 0}, "", limit.Decision{Limit: 10, RetryAfter: 210_000, ResetAfter: 264_000, Index: 1}},
	} {
		request := step.request
		names := all
		if request == "" {
			names = "calls money"
			step.costs = step.costs[:2]
		}
		d, err := c.priced("ann", names, step.costs, request)
		require.NoError(t, err)
		assert.Equal(t, step.want, d, "step %d", i)
	}
	assert.Equal(t, [2]int64{2, 0}, c.counts("calls"))
	assert.Equal(t, [2]int64{2, 2}, c.counts("money"))
	assert.Equal(t, [2]int64{1, 1}, c.counts("lease"))
	assert.Equal(t, [2]int64{2, 1}, c.counts("trial"))
	assert.Empty(t, c.e.Memory().Top(denials.AllDatabases, 10))

	before := dump(c.e)
	_, err := c.priced("ann", "calls money", []int64{1, limit.MaxCount}, "e")
	require.Equal(t, ErrBeyondCount, err)
	require.Equal(t, before, dump(c.e))
}

// text returns the definition of a token bucket.
func (b *brutePolicy) text() string {
	text := fmt.Sprintf("TOKEN %d %d %dms", b.limit.Token.Capacity, b.limit.Token.Refill, b.limit.Token.Period)
	if b.shadow {
		text += " SHADOW"
	}
	return text
}

func TestChecksDoNotAllocate(t *testing.T) {
	e := New(Options{})
	names := [][]byte{[]byte("t"), []byte("s"), []byte("f")}
	e.SetPolicies(
		epoch,
		[]*policy.Policy{
			mustParse("t", "TOKEN 1000000 1 1s"),
			mustParse("s", "SLIDE 2 1s"),
			mustParse("f", "FIXED 2 1s SHADOW"),
		},
	)
	keys, tx := policyKeys(e, names, []byte("ann")), e.NewTx()
	now := int64(epoch)
	call := func() {
		now += 300
		tx.Begin(now, 0, keys, true)
		_, _ = tx.checkAt(names, keys, 1, nil)
		tx.End()
	}
	for range 20 {
		call()
	}
	if allocs := testing.AllocsPerRun(100, call); allocs != 0 {
		t.Errorf("a check allocates %v times", allocs)
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, policies := range []string{"t", "s", "t s f"} {
		b.Run(policies, func(b *testing.B) {
			e := New(Options{})
			e.SetPolicies(
				epoch,
				[]*policy.Policy{
					mustParse("t", "TOKEN 100 100 1s"),
					mustParse("s", "SLIDE 100 1m"),
					mustParse("f", "FIXED 100 1m SHADOW"),
				},
			)
			names := bytes.Fields([]byte(policies))
			keys, tx, now := policyKeys(e, names, []byte("ann")), e.NewTx(), int64(epoch)
			b.ReportAllocs()
			for b.Loop() {
				now++
				tx.Begin(now, 0, keys, true)
				_, _ = tx.checkAt(names, keys, 1, nil)
				tx.End()
			}
		})
	}
}

// The time for which all calls wait when a policy's algorithm changes.
func BenchmarkSwitchPolicy(b *testing.B) {
	const keys = 1_000_000
	e := New(Options{})
	tokens(e, keys)
	text := []string{"TOKEN 1 1 1s", "SLIDE 1 1s"}
	for i := 0; b.Loop(); i++ {
		e.SetPolicies(epoch, []*policy.Policy{mustParse("p", text[i%2])})
	}
}

// TestManyPoliciesTakeLinearMemory: setting or replaying four times as many policies allocates
// about four times as much.
func TestManyPoliciesTakeLinearMemory(t *testing.T) {
	set := func(n int) (setting, replaying uint64) {
		journal := discard{}
		e := New(Options{Journal: journal})
		list := make([]*policy.Policy, n)
		for i := range list {
			list[i] = mustParse(fmt.Sprint("p", i), "SLIDE 5 1m")
		}
		setting = bytesAllocated(func() { e.SetPolicies(1000, list) })
		require.Len(t, e.Policies(), n)

		copied := New(Options{})
		replaying = bytesAllocated(func() {
			for _, p := range list { // one by one, as in a snapshot
				require.NoError(t, copied.Apply(1000, []effect.Effect{p.Effect()}))
			}
		})
		require.Len(t, copied.Policies(), n)
		return setting, replaying
	}
	fewSetting, fewReplaying := set(1000)
	manySetting, manyReplaying := set(4000)
	assert.Less(t, manySetting, 6*fewSetting)
	assert.Less(t, manyReplaying, 6*fewReplaying)
}

func bytesAllocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// For the race detector.
func TestReadPoliciesDuringChanges(t *testing.T) {
	e := New(Options{})
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			tx := e.NewTx()
			for {
				select {
				case <-done:
					return
				default:
				}
				e.Policies()
				e.Policy("p1")
				k := e.Key([]byte("p1:{a}"))
				tx.Begin(1000, 0, []Key{k}, true)
				_, _ = tx.checkAt([][]byte{[]byte("p1")}, []Key{k}, 1, nil)
				tx.End()
			}
		})
	}
	for i := range 200 {
		e.SetPolicies(1000, []*policy.Policy{
			mustParse("p1", fmt.Sprintf("SLIDE %d 1m", i+1)), mustParse("p2", "SLIDE 5 1m"),
		})
		e.DeletePolicy(1000, "p2")
	}
	close(done)
	readers.Wait()
}

// A call whose keys were hashed before a policy changes counts nothing under the former key.
func TestKeysOfFormerNetworksAreRefused(t *testing.T) {
	e := New(Options{})
	names := [][]byte{[]byte("p"), []byte("q")}
	set := func(definition string) {
		_, err := e.SetPolicies(1, []*policy.Policy{mustParse("p", definition), mustParse("q", "SLIDE 5 1m")})
		require.NoError(t, err)
	}
	holds := func(id, first, second string) error {
		keys := []Key{e.Key([]byte("p:{" + first + "}")), e.Key([]byte("q:{" + second + "}"))}
		tx := e.NewTx()
		tx.Begin(1, 0, keys, true)
		defer tx.End()
		err := tx.KeysHold(names, keys, []byte(id))
		_, checked := tx.Check(CheckCall{Names: names, Keys: keys, Of: []byte(id), Costs: []int64{0}})
		assert.Equal(t, err, checked)
		return err
	}
	set("SLIDE 5 1m")
	assert.False(t, e.CountsNetworks())
	assert.NoError(t, holds("10.1.2.3", "10.1.2.3", "10.1.2.3"))
	assert.Equal(t, errOtherNetwork, holds("10.1.2.3", "10.1.2.0/24", "10.1.2.3"))
	set("SLIDE 5 1m IP4 24")
	assert.True(t, e.CountsNetworks())
	assert.NoError(t, holds("ann", "ann", "ann"))
	assert.NoError(t, holds("10.1.2.3", "10.1.2.0/24", "10.1.2.3"))
	assert.Equal(t, errOtherNetwork, holds("10.1.2.3", "10.1.2.3", "10.1.2.3"))
	assert.Equal(t, errOtherNetwork, holds("10.1.2.3", "10.1.0.0/16", "10.1.2.3"))
	assert.Equal(t, errOtherNetwork, holds("10.1.2.3", "10.1.2.0/24", "10.1.2.0/24"))
	_, err := e.DeletePolicy(2, "p")
	require.NoError(t, err)
	assert.False(t, e.CountsNetworks())
}

// Overrides that come with policies are set with them, and others stay.
func TestPoliciesComeWithOverrides(t *testing.T) {
	c := newChecker(t)
	p := mustParse("p", "SLIDE 1 1h")
	given := func(id, definition string) policy.Given {
		d, err := rule.ParsePolicy([]byte("p"), bytes.Fields([]byte(definition)))
		require.NoError(t, err)
		return policy.Given{ID: id, Definition: d}
	}
	with := func(shape string, list ...policy.Given) *policy.Policy {
		d, err := rule.ParsePolicy([]byte("p"), bytes.Fields([]byte(shape)))
		require.NoError(t, err)
		return policy.NewWith(d, list)
	}
	set := func(p *policy.Policy) {
		_, err := c.e.SetPolicies(c.now, []*policy.Policy{p})
		require.NoError(t, err)
	}
	set(p)
	set(with("SLIDE 1 1h", given("ann", "SLIDE 2 1h")))
	assert.EqualValues(t, 2, c.must("ann", "p", 0, "").Limit)
	assert.EqualValues(t, 1, c.must("bob", "p", 0, "").Limit)
	set(with("SLIDE 3 1h", given("bob", "SLIDE 4 1h")))
	assert.EqualValues(t, 2, c.must("ann", "p", 0, "").Limit)
	assert.EqualValues(t, 4, c.must("bob", "p", 0, "").Limit)
	set(with("TOKEN 3 1 1h", given("bob", "TOKEN 5 1 1h")))
	assert.EqualValues(t, 3, c.must("ann", "p", 0, "").Limit)
	assert.EqualValues(t, 5, c.must("bob", "p", 0, "").Limit)
	before := len(c.log.calls)
	set(with("TOKEN 3 1 1h", given("bob", "TOKEN 5 1 1h")))
	assert.Len(t, c.log.calls, before, "nothing has changed")
	require.Equal(t, dump(c.e), dump(c.log.replayed(Options{Databases: 2})))
}

// Names and definitions count; what a file has beyond the bound stays, and may become shorter.
func TestPoliciesHaveABound(t *testing.T) {
	e := New(Options{})
	set := func(most int64, name, definition string) error {
		_, err := e.SetPoliciesWithin(epoch, []*policy.Policy{mustParse(name, definition)}, most)
		return err
	}
	_, err := e.SetPolicies(epoch, []*policy.Policy{mustParse("a", "SLIDE 5 1m"), mustParse("b", "SLIDE 5 1m")})
	require.NoError(t, err)
	const refusal = "ERR the policies of a server may take %d bytes together, and would take %d: a file of policies " +
		"may have more"
	assert.EqualError(t, set(32, "c", "SLIDE 5 1m"), fmt.Sprintf(refusal, 32, 33))
	assert.Nil(t, e.Policy("c"))
	assert.NoError(t, set(33, "c", "SLIDE 5 1m"))
	assert.EqualError(t, set(33, "c", "SLIDE 50 1m"), fmt.Sprintf(refusal, 33, 34))
	assert.NoError(t, set(1, "c", "FIXED 5 1m"), "as long as before")
	_, err = e.DeletePolicy(epoch, "a")
	require.NoError(t, err)
	assert.NoError(t, set(33, "d", "SLIDE 5 1m"))
	assert.EqualError(t, set(33, "e", "SLIDE 5 1m"), fmt.Sprintf(refusal, 33, 44))
}
