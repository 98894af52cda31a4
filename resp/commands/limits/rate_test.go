package limits_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// A mail is admitted if its sender, its domain, the day's quota and the workers all admit it.
// Otherwise it counts nowhere.
func TestAllOrNothing(t *testing.T) {
	const mail = "RL.ALL sender:ann SLIDE 2 1m domain TOKEN 5 1 1s quota FIXED 4 day TZ Europe/Berlin at-once LEASE " +
		"2 10s worker-"
	requireSteps(t, []limitStep{
		{"0s", mail + "1", "*6 :1 :2 :1 :0 :82800000 :0"},
		{"0s", mail + "2 COST 0", "*6 :1 :2 :1 :0 :82800000 :0"}, // a peek
		{"0s", "TTL sender:ann", ":60"},
		{"1s", mail + "2 COST 2", "*6 :0 :2 :1 :59000 :82799000 :0"},
		{"1s", "ZCARD sender:ann", ":1"},
		{"1s", "ZCARD at-once", ":1"},
		{"1s", "TTL domain", ":0"},
		{"1s", "RL.TOKEN domain 5 1 1s COST 5", "*5 :1 :5 :0 :0 :5000"},
		{"1s", mail + "2", "*6 :0 :5 :0 :1000 :82799000 :1"}, // the domain
		{"2s", mail + "2", "*6 :1 :2 :0 :0 :82798000 :0"},
		// the sender has to wait longer than for a worker
		{"2s", mail + "3", "*6 :0 :2 :0 :58000 :82798000 :0"},
		{"59.999s", mail + "3", "*6 :0 :2 :0 :1 :82740001 :0"},
		{"1m", mail + "3", "*6 :1 :2 :0 :0 :82740000 :0"},
		{"1m2s", mail + "3 COST 3", "*6 :0 :2 :1 :-1 :82738000 :0"}, // never
		{"1m2s", mail + "3", "*6 :1 :2 :0 :0 :82738000 :0"},
		{"2m3s", mail + "3", "*6 :0 :4 :0 :82677000 :82677000 :2"}, // the quota is used up
	})
}

// Two windows over one log record one hit, in any order among other rules.
func TestAllWithSeveralWindowsOverOneLog(t *testing.T) {
	requireSteps(t, []limitStep{
		{"0s", "RL.ALL log SLIDE 5 1h bucket TOKEN 9 1 1s log SLIDE 1 1m", "*6 :1 :1 :0 :0 :3600000 :2"},
		{"0s", "ZCARD log", ":1"},
		{"30s", "RL.ALL log SLIDE 5 1h bucket TOKEN 9 1 1s log SLIDE 1 1m", "*6 :0 :1 :0 :30000 :3570000 :2"},
		{"1m", "RL.ALL log SLIDE 1 1h bucket TOKEN 9 1 1s log SLIDE 1 1m", "*6 :0 :1 :0 :3540000 :3540000 :0"},
		// of equal waits, the first is reported
		{"1m", "RL.ALL a SLIDE 1 1m b SLIDE 1 1m", "*6 :1 :1 :0 :0 :60000 :0"},
		{"1m", "RL.ALL a SLIDE 1 1m b SLIDE 1 1m", "*6 :0 :1 :0 :60000 :60000 :0"},
	})
}

func TestLeases(t *testing.T) {
	requireSteps(t, []limitStep{
		{"0s", "RL.LEASE jobs 2 10s a", "*5 :1 :2 :1 :0 :10000"},
		{"4s", "RL.LEASE jobs 2 10s b", "*5 :1 :2 :0 :0 :10000"},
		{"5s", "RL.LEASE jobs 2 10s c", "*5 :0 :2 :0 :5000 :9000"},
		{"5s", "RL.LEASE jobs 2 10s a", "*5 :1 :2 :0 :0 :10000"}, // renewed when full
		{"5s", "RL.LEASE jobs 1 10s c", "*5 :0 :1 :0 :10000 :10000"},
		{"5s", "PTTL jobs", ":10000"},
		{"13.999s", "RL.LEASE jobs 2 10s c", "*5 :0 :2 :0 :1 :1001"},
		{"14s", "RL.RELEASE jobs b", ":0"}, // it has expired
		{"14s", "RL.LEASE jobs 2 10s b", "*5 :1 :2 :0 :0 :10000"},
		{"14s", "ZRANGE jobs 0 -1 WITHSCORES", "*4 $1 a $13 1767225615000 $1 b $13 1767225624000"},
		{"14s", "RL.RELEASE jobs b", ":1"},
		{"14s", "RL.RELEASE jobs b", ":0"},
		{"14s", "PTTL jobs", ":1000"}, // until the last lease expires
		{"14s", "RL.RELEASE jobs a", ":1"},
		{"14s", "EXISTS jobs", ":0"},
		{"14s", "RL.RELEASE jobs a", ":0"},
	})
}

func TestRefunds(t *testing.T) {
	requireSteps(t, []limitStep{
		{"0s", "RL.REFUND none 1", ":0"},
		{"0s", "RL.SLIDE s 5 1m COST 3 ID req", "*5 :1 :5 :2 :0 :60000"},
		{"1s", "RL.SLIDE s 5 1m COST 2", "*5 :1 :5 :0 :0 :60000"},
		{"2s", "RL.REFUND s 1", ":1"},
		{"2s", "RL.REFUND s 9 ID other", ":0"},
		{"2s", "RL.REFUND s 2 ID req", ":2"},
		{"2s", "PTTL s", ":59000"},
		{"2s", "RL.SLIDE s 5 1m COST 3 ID req", "*5 :1 :5 :3 :0 :59000"}, // the id is still known
		{"2s", "RL.REFUND s 9007199254740991", ":2"},
		{"2s", "EXISTS s", ":0"},
		{"2s", "RL.TOKEN t 5 1 10s COST 4", "*5 :1 :5 :1 :0 :40000"},
		{"4s", "RL.REFUND t 3", ":3"},
		{"4s", "RL.TOKEN t 5 1 10s COST 0", "*5 :1 :5 :4 :0 :8000"},
		{"4s", "PTTL t", ":38000"},
		{"4s", "RL.REFUND t 3", ":1"},
		{"4s", "EXISTS t", ":0"},
		{"4s", "RL.FIXED f 5 1m COST 4", "*5 :1 :5 :1 :0 :56000"},
		{"5s", "RL.REFUND f 1", ":1"},
		{"5s", "RL.FIXED f 5 1m COST 0", "*5 :1 :5 :2 :0 :55000"},
		{"1m", "RL.REFUND f 1", ":0"}, // the window is over
	})
}

func TestLeakyReplies(t *testing.T) {
	requireSteps(t, []limitStep{
		{"0s", "RL.LEAKY k 3 10s QUEUE 2", "*6 :1 :3 :2 :0 :3334 :0"},
		{"0s", "RL.LEAKY k 3 10s QUEUE 2", "*6 :1 :3 :1 :0 :6667 :3334"},
		{"0s", "RL.LEAKY k 3 10s QUEUE 2 COST 0", "*6 :1 :3 :1 :0 :6667 :6667"},
		{"1s", "RL.LEAKY k 3 10s COST 1 QUEUE 2", "*6 :1 :3 :0 :0 :9000 :5667"},
		{"1s", "RL.LEAKY k 3 10s QUEUE 2", "*6 :0 :3 :0 :2334 :9000 :0"},
		{"3.333s", "RL.LEAKY k 3 10s QUEUE 2", "*6 :0 :3 :0 :1 :6667 :0"},
		{"3.334s", "RL.LEAKY k 3 10s QUEUE 2", "*6 :1 :3 :0 :0 :10000 :6666"},
		{"3.334s", "RL.LEAKY k 3 10s", "*6 :0 :1 :0 :10000 :10000 :0"}, // a queue of 0
		{"3.334s", "TYPE k", "+rl.token"},
		{"1m", "RL.LEAKY k 3 10s", "*6 :1 :1 :0 :0 :3334 :0"},
		{"1m", "RL.LEAKY k 3 10s COST 2", "*6 :0 :1 :0 :-1 :3334 :0"},
	})
}

func TestRateErrors(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	require.Equal(t, "+OK", c.Do("SET text x"))
	require.Equal(t, ":1", c.Do("HSET hash f v"))
	require.Regexp(t, "^.5 :1", c.Do("RL.TOKEN bucket 5 1 1s"))
	const (
		wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value"
		badRule   = "-ERR syntax error: a rule is a key and SLIDE limit window, TOKEN capacity refill period, FIXED " +
			"limit window [TZ zone], LEASE limit ttl id, LEAKY rate period [QUEUE queue] or COUNTER limit window; " +
			"COST cost [cost ...], HOLD ttl ID id and WAIT timeout may follow the rules"
		shared = "-ERR key 'k' is in more than one rule: only those of SLIDE may share a key"
	)
	for _, step := range []struct{ call, want string }{
		{"RL.ALL", "-ERR wrong number of arguments for 'rl.all' command"},
		{"RL.ALL k SLIDE 1", "-ERR wrong number of arguments for 'rl.all' command"},
		{"RL.ALL k SLID 1 1s", badRule},
		{"RL.ALL k TOKEN 1 1s", badRule},
		{"RL.ALL k LEASE 1 1s", badRule},
		{"RL.ALL k SLIDE 1 1s r", badRule},
		{"RL.ALL k SLIDE 1 1s r TOKEN", badRule},
		{"RL.ALL k SLIDE 1 1s r TOKEN 1 1", badRule},
		{"RL.ALL k SLIDE 1 1s r ZSET 1 1", badRule},
		{"RL.ALL k FIXED 1 day TZ", badRule},
		{"RL.ALL k SLIDE 1 1s COST", badRule},
		{"RL.ALL k SLIDE 1 1s COST 1 COST 1", badRule},
		{"RL.ALL k SLIDE 1 1s COST 1 r SLIDE 1 1s", badRule},
		{"RL.ALL k SLIDE 1 1s COST -1", "-ERR COST must be from 0 to 9007199254740991"},
		{"RL.ALL k SLIDE 1 1s COST 9007199254740992", "-ERR COST must be from 0 to 9007199254740991"},
		{"RL.ALL k SLIDE 0 1s r SLIDE 1 1s", "-ERR limit must be from 1 to 9007199254740991"},
		{"RL.ALL r SLIDE 1 1s k SLIDE 1 0", "-ERR invalid duration '0': use seconds, or a number with ms, s, m, h, " +
			"d or w"},
		{"RL.ALL r SLIDE 1 1s k TOKEN 1 x 1s", "-ERR value is not an integer or out of range: refill must be from 1 " +
			"to 9007199254740991"},
		{"RL.ALL r SLIDE 1 1s k FIXED 1 1d TZ UTC", "-ERR TZ goes with a window of the calendar: minute, hour, day, " +
			"week, month or year"},
		{"RL.ALL r SLIDE 1 1s k FIXED 1 day TZ Utopia", "-ERR unknown time zone 'Utopia': TZ takes an IANA name " +
			"such as UTC or Europe/Berlin"},
		{"RL.ALL k SLIDE 1 1s k TOKEN 1 1 1s", shared},
		{"RL.ALL k LEASE 1 1s a k LEASE 1 1s b", shared},
		{"RL.ALL k FIXED 1 1s r SLIDE 1 1s k SLIDE 1 1s", shared},
		{"RL.ALL k SLIDE 1 1s text TOKEN 1 1 1s", wrongType},
		{"RL.ALL k SLIDE 1 1s bucket LEASE 1 1s a", wrongType},
		{"RL.ALL" + strings.Repeat(" k SLIDE 1 1s", 129), "-ERR too many rules: RL.ALL takes at most 128"},
		{"RL.LEASE k 1 1s", "-ERR wrong number of arguments for 'rl.lease' command"},
		{"RL.LEASE k 1 1s a b", "-ERR syntax error"},
		{"RL.LEASE k 0 1s a", "-ERR limit must be from 1 to 9007199254740991"},
		{"RL.LEASE k 1 11y a", "-ERR invalid duration '11y': use seconds, or a number with ms, s, m, h, d or w"},
		{"RL.LEASE hash 1 1s a", wrongType},
		{"RL.RELEASE hash a", wrongType},
		{"RL.REFUND k 0", "-ERR hits must be from 1 to 9007199254740991"},
		{"RL.REFUND k -1", "-ERR hits must be from 1 to 9007199254740991"},
		{"RL.REFUND k 9007199254740992", "-ERR hits must be from 1 to 9007199254740991"},
		{"RL.REFUND k many", "-ERR value is not an integer or out of range: hits must be from 1 to 9007199254740991"},
		{"RL.REFUND k 1 ID", "-ERR syntax error"},
		{"RL.REFUND k 1 ID a ID b", "-ERR syntax error"},
		{"RL.REFUND k 1 COST 1", "-ERR syntax error"},
		{"RL.REFUND text 1", wrongType},
		{"RL.REFUND bucket 1 ID a", "-ERR ID goes with a sliding window: no other limiter knows its hits by name"},
		{"RL.LEAKY k 0 1s", "-ERR rate must be from 1 to 9007199254740991"},
		{"RL.LEAKY k 1 1x", "-ERR invalid duration '1x': use seconds, or a number with ms, s, m, h, d or w"},
		{"RL.LEAKY k 1 1s QUEUE -1", "-ERR QUEUE must be from 0 to 9007199254740990"},
		{"RL.LEAKY k 1 1s QUEUE 9007199254740991", "-ERR QUEUE must be from 0 to 9007199254740990"},
		{"RL.LEAKY k 1 1s QUEUE 1 QUEUE 1", "-ERR syntax error"},
		{"RL.LEAKY k 1 1s QUEUE", "-ERR syntax error"},
		{"RL.LEAKY k 1 1s WHATEVER", "-ERR syntax error"},
		{"RL.LEAKY text 1 1s", wrongType},
	} {
		require.Equal(t, step.want, c.Do(step.call), step.call)
	}
	assert.Equal(
		t,
		"-ERR id must not be empty: a lease is renewed and released by its id",
		c.Send("RL.LEASE", "k", "1", "1s", ""),
	)
	assert.Equal(
		t,
		"-ERR id must not be empty: a lease is renewed and released by its id",
		c.Send("RL.RELEASE", "k", ""),
	)
	assert.Equal(
		t,
		"-ERR id must not be empty: a lease is renewed and released by its id",
		c.Send("RL.ALL", "r", "SLIDE", "1", "1s", "k", "LEASE", "1", "1s", ""),
	)
	assert.Equal(t, "-ERR ID must not be empty", c.Send("RL.REFUND", "k", "1", "ID", ""))
	assert.Equal(t, ":0", c.Do("EXISTS k r"), "errors change nothing")
	assert.Regexp(t, `^\*6 :1 `, c.Do("RL.ALL"+strings.Repeat(" k SLIDE 1 1s", 128)))
}

// Which words are keys depends on the rules before them. A keyword may also be a key.
func TestKeysOfAllRules(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	for _, step := range []struct{ call, want string }{
		{"k SLIDE 1 1s", "*1 $1 k"},
		{"a slide 1 1s b token 1 1 1s c fixed 1 day tz UTC d lease 1 1s id e FIXED 1 1d f SLIDE 1 1s COST 3",
			"*6 $1 a $1 b $1 c $1 d $1 e $1 f"},
		{"COST SLIDE 1 1s TZ SLIDE 1 1s COST 1", "*2 $4 COST $2 TZ"},
		{"k FIXED 1 1d TZ SLIDE 1 1s", "*2 $1 k $2 TZ"},
		{"SLIDE SLIDE 1 1s SLIDE TOKEN 1 1 1s", "*2 $5 SLIDE $5 SLIDE"},
	} {
		require.Equal(t, step.want, c.Do("COMMAND GETKEYS RL.ALL "+step.call), step.call)
		c.Do("FLUSHALL")
		require.NotRegexp(
			t,
			"^-",
			strings.Replace(c.Do("RL.ALL "+step.call), "-ERR key 'SLIDE' is in more", "", 1),
			step.call,
		)
	}
	require.Equal(
		t,
		"*2 *2 $1 a *3 +RW +access +update *2 $1 b *3 +RW +access +update",
		c.Do("COMMAND GETKEYSANDFLAGS RL.ALL a SLIDE 1 1s b SLIDE 1 1s"),
	)
	require.Contains(t, c.Do("COMMAND INFO RL.ALL"), "*5 +write +denyoom +fast +blocking +movablekeys :1 :1 :1 ")
}

// EXEC locks the keys of all rules together with those of the other calls.
func TestAllWithinATransaction(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Do("MULTI")
	require.Equal(t, "+QUEUED", c.Do("RL.ALL a SLIDE 1 1m b TOKEN 1 1 1s"))
	require.Equal(t, "+QUEUED", c.Do("RL.LEASE l 1 1m id"))
	require.Equal(t, "+QUEUED", c.Do("RL.ALL b TOKEN 1 1 1s c SLIDE 1 1m"))
	require.Equal(t, "*3 *6 :1 :1 :0 :0 :60000 :0 *5 :1 :1 :0 :0 :60000 *6 :0 :1 :0 :1000 :1000 :0", c.Do("EXEC"))
	require.Equal(t, ":0", c.Do("EXISTS c"))
}
