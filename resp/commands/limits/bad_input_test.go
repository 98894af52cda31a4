package limits_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/resptest"
)

const (
	badDuration = "ERR invalid duration '%s': use seconds, or a number with ms, s, m, h, d or w" +
		"; HOLD takes from 1ms to 10 years"
	badSettle = "ERR syntax error: RL.SETTLE takes key actual [key actual ...] ID call, or " +
		"CHECK id policy [policy ...] COST actual [actual ...] ID call"
	needsID     = "ERR HOLD needs ID and the call's id"
	nothingHeld = "ERR HOLD reserves the cost: COST must be 1 or more"
	wrongType   = "WRONGTYPE Operation against a key holding the wrong kind of value"
	noRule      = "ERR key '%s' has no reservations, so its rule is not known: use RL.CHARGE key rule n"
	noHold      = "ERR HOLD is for calls that reserve their cost: RL.SLIDE, RL.MULTI, RL.TOKEN, RL.FIXED, " +
		"RL.COUNTER, RL.ALL and RL.CHECK"
	oneCost     = "ERR COST takes one number here: only RL.ALL and RL.CHECK take one for each limit"
	notNegative = "ERR %s must be from 0 to 9007199254740991"
	badID       = "ERR the id of RL.CHECK must be 1 to 65536 bytes without { and }"
)

// badBudgets are calls that are refused, with their errors.
var badBudgets = [][2]string{
	{"RL.SLIDE k 5 1m HOLD 1m", needsID},
	{"RL.MULTI k 5 1m 6 1h HOLD 1m", needsID},
	{"RL.TOKEN k 5 1 1m HOLD 1m", needsID},
	{"RL.FIXED k 5 1m HOLD 1m", needsID},
	{"RL.COUNTER k 5 1m HOLD 1m", needsID},
	{"RL.ALL k SLIDE 5 1m j TOKEN 5 1 1m HOLD 1m", needsID},
	{"RL.CHECK ann a b HOLD 1m", needsID},
	{"RL.CHECK ann a b HOLD 1m WAIT 1s", needsID},
	{"RL.TOKEN k 5 1 1m ID x", "ERR ID goes with HOLD here: only sliding windows know their hits by name"},
	{"RL.SLIDE k 5 1m COST 0 HOLD 1m ID x", nothingHeld},
	{"RL.TOKEN k 5 1 1m HOLD 1m ID x COST 0", nothingHeld},
	{"RL.ALL k SLIDE 5 1m j TOKEN 5 1 1m COST 0 0 HOLD 1m ID x", nothingHeld},
	{"RL.CHECK ann a b COST 0 HOLD 1m ID x", nothingHeld},
	{"RL.CHECK ann a HOLD 1m ID x FORCE", "ERR FORCE records the call at once: RL.CHECK takes FORCE or HOLD, not both"},
	{"RL.CHECK ann a FORCE HOLD 1m", "ERR FORCE records the call at once: RL.CHECK takes FORCE or HOLD, not both"},
	{"RL.CHECK ann a FORCE WAIT 1s", "ERR FORCE records the call at once: RL.CHECK takes FORCE or WAIT, not both"},
	{"RL.REFUND k 1 HOLD 1m ID x", noHold},
	{"RL.LEASE k 5 1m id HOLD 1m ID x", noHold},
	{"RL.LEAKY leaky 5 1m HOLD 1m ID x", noHold},
	{"RL.ALL k LEAKY 5 1m HOLD 1m ID x", "ERR LEAKY has no HOLD: it paces calls, use TOKEN with the same numbers"},
	{"RL.ALL j SLIDE 5 1m k LEAKY 5 1m HOLD 1m ID x",
		"ERR LEAKY has no HOLD: it paces calls, use TOKEN with the same numbers"},

	{"RL.SLIDE k 5 1m HOLD 0 ID x", fmt.Sprintf(badDuration, "0")},
	{"RL.MULTI k 5 1m HOLD -1 ID x", fmt.Sprintf(badDuration, "-1")},
	{"RL.TOKEN k 5 1 1m HOLD 3651d ID x", fmt.Sprintf(badDuration, "3651d")},
	{"RL.FIXED k 5 1m HOLD 0.0001 ID x", fmt.Sprintf(badDuration, "0.0001")},
	{"RL.ALL k SLIDE 5 1m HOLD 1y ID x", fmt.Sprintf(badDuration, "1y")},
	{"RL.CHECK ann a HOLD ID x", fmt.Sprintf(badDuration, "ID")},

	{"RL.SLIDE k 5 1m COST 1 2", oneCost},
	{"RL.TOKEN k 5 1 1m COST 1 2 HOLD 1m ID x", oneCost},
	{"RL.ALL k SLIDE 5 1m j TOKEN 5 1 1m COST 1 2 3",
		"ERR COST takes one number, or one for each of the 2 rules: it has 3"},
	{"RL.ALL k SLIDE 5 1m j TOKEN 5 1 1m l FIXED 5 1m COST 1 2 HOLD 1m ID x",
		"ERR COST takes one number, or one for each of the 3 rules: it has 2"},
	{"RL.CHECK ann a b COST 1 2 3", "ERR COST takes one number, or one for each of the 2 policies: it has 3"},
	{"RL.CHECK ann a b COST 1 -1", fmt.Sprintf(notNegative, "COST")},
	{"RL.ALL k SLIDE 5 1m k SLIDE 9 1h COST 1 2",
		"ERR the rules of key 'k' share its log: COST must be the same for each of them"},
	{"RL.CHECK ann a a", "ERR policy 'a' is named twice"},

	{"RL.POLICY SET nope SLIDE 5 1m FOR ann", "ERR no such policy 'nope'"},
	{"RL.POLICY GET nope FOR ann", "ERR no such policy 'nope'"},
	{"RL.POLICY DEL nope FOR ann", "ERR no such policy 'nope'"},
	{"RL.POLICY SET a TOKEN 5 1 1m FOR ann", "ERR policy 'a' is SLIDE: FOR takes other numbers of the same algorithm"},
	{"RL.POLICY SET a SLIDE 0 1m FOR ann", "ERR limit must be from 1 to 9007199254740991"},
	{"RL.POLICY SET a SLIDE 5 1m FOR {ann}", badID},
	{"RL.POLICY SET a SLIDE 5 1m IP4 24 FOR ann", "ERR a policy has its BAN, IP4, IP6 and SHADOW for all ids: " +
		"FOR takes other numbers of the same algorithm"},
	{"RL.POLICY SET new SLIDE 5 1m IP4 33", "ERR IP4 must be from 0 to 32"},
	{"RL.POLICY SET new SLIDE 5 1m IP4 -1", "ERR IP4 must be from 0 to 32"},
	{"RL.POLICY SET new SLIDE 5 1m IP6 129", "ERR IP6 must be from 0 to 128"},
	{"RL.POLICY SET new SLIDE 5 1m IP6 x", "ERR value is not an integer or out of range: IP6 must be from 0 to 128"},
	{"RL.POLICY SET new SLIDE 5 1m BAN 1001 1m", "ERR BAN must be from 1 to 1000"},
	{"RL.POLICY SET new SLIDE 5 1m BAN 3 10m 5m", "ERR BAN takes a longest ban that is not shorter than the first one"},

	{"RL.SETTLE text 1 ID x", wrongType},
	{"RL.SETTLE held 1 text 1 ID x", wrongType},
	{"RL.SETTLE list 1 ID x", wrongType},
	{"RL.HOLDS list", wrongType},
	{"RL.SETTLE zset 1 ID x", fmt.Sprintf(noRule, "zset")},
	{"RL.SETTLE leaky 1 ID x", fmt.Sprintf(noRule, "leaky")},
	{"RL.SETTLE missing 1 ID x", fmt.Sprintf(noRule, "missing")},
	{"RL.SETTLE held 1 missing 1 ID x", fmt.Sprintf(noRule, "missing")},
	{"RL.SETTLE held 1 held 2 ID x", "ERR key 'held' is named twice"},
	{"RL.SETTLE held -1 ID x", fmt.Sprintf(notNegative, "actual")},
	{"RL.SETTLE held 9007199254740992 ID x", fmt.Sprintf(notNegative, "actual")},
	{"RL.SETTLE held x ID x", "ERR value is not an integer or out of range: actual must be from 0 to 9007199254740991"},
	{"RL.SETTLE held 1 k ID x", badSettle},
	{"RL.SETTLE CHECK ann a ID x", badSettle},
	{"RL.SETTLE CHECK ann nope COST 1 ID x", "ERR no such policy 'nope'"},
	{"RL.SETTLE CHECK ann a b COST 1 2 3 ID x",
		"ERR COST takes one number, or one for each of the 2 policies: it has 3"},
	{"RL.SETTLE CHECK ann a COST -1 ID x", fmt.Sprintf(notNegative, "COST")},
	{"RL.SETTLE CHECK ann a a COST 1 ID x", "ERR policy 'a' is named twice"},
	{"RL.SETTLE CHECK ann a slots COST 1 ID x",
		"ERR policy 'slots' is of leases, which reserve nothing: use RL.RELEASE"},
	{"RL.SETTLE CHECK {ann} a COST 1 ID x", badID},
	{"RL.CHARGE k SLIDE 5 1m -1", fmt.Sprintf(notNegative, "hits")},
	{"RL.CHARGE k LEASE 5 1m id 1", "ERR RL.CHARGE records hits, and leases have none: take one with RL.LEASE"},
}

// Bad calls get an error that names the argument and what is allowed. They change nothing: alone,
// in a transaction, and in a script.
func TestBadBudgets(t *testing.T) {
	c := resptest.Start(t, nil).Dial()
	for call := range strings.SplitSeq(`RL.POLICY SET a SLIDE 5 1m,RL.POLICY SET b TOKEN 5 1 1m,
		RL.POLICY SET slots LEASE 5 1m,SET text x,RPUSH list x,ZADD zset 1 x,RL.LEAKY leaky 5 1m,
		RL.TOKEN held 5 1 1h COST 2 HOLD 1h ID x`, ",") {
		require.NotEqual(t, "-", c.Do(strings.TrimSpace(call))[:1])
	}
	state := func() string { return c.Do("DEBUG DIGEST") + c.Do("RL.POLICY LIST") + c.Do("RL.HOLDS held") }
	script := append([]string{"EVAL", "return redis.pcall(unpack(ARGV)).err", "13"},
		strings.Fields("k j l held text list zset leaky missing a:{ann} b:{ann} slots:{ann} nope:{ann}")...)
	before := state()
	for _, bad := range badBudgets {
		call, want := bad[0], bad[1]
		assert.Equal(t, "-"+want, c.Do(call), call)
		if !strings.HasPrefix(call, "RL.POLICY") { // which neither takes
			require.Equal(t, "+OK", c.Do("MULTI"))
			assert.Equal(t, "+QUEUED", c.Do(call), call)
			assert.Equal(t, "*1 -"+want, c.Do("EXEC"), call)
			inScript := c.Send(append(script, strings.Fields(call)...)...)
			assert.Equal(t, fmt.Sprintf("$%d %s", len(want), want), inScript, call)
		}
		require.Equal(t, before, state(), call)
	}
	c.Check([]resptest.Answer{
		{"RL.REFUND held 2", ":0"}, // what is reserved was not used
		{"RL.SLIDE k 5 1m COST 6 HOLD 1m ID x", "*5 :0 :5 :5 :-1 :0"},
		{"EXISTS k", ":0"},
		{"RL.SLIDE k 5 1m HOLD 1m ID x WAIT 1s", "*5 :1 :5 :4 :0 :60000"},
		{"RL.ALL k SLIDE 5 1m j TOKEN 5 1 1h COST 0 1 HOLD 1m ID y", "*6 :1 :5 :4 :0 :60000 :0"},
		{"RL.HOLDS k", "*1 *3 $1 x :1 :60000"},
		{"RL.SETTLE held 3 ID unknown", "*1 *4 :1 :0 :3 :0"}, // charges: two are reserved
		{"RL.SETTLE held 3 ID unknown", "*1 *4 :0 :0 :3 :0"},
		{"RL.SETTLE CHECK bob a COST 9 ID x", "*1 *4 :1 :0 :9 :0"},
		{"RL.CHECK bob a", "*6 :0 :5 :0 :60000 :60000 :0"},
	})
}
