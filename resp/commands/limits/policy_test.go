package limits_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp"
	"rlserver/resp/commands/limits"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestPolicyReplies(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	for _, step := range []struct {
		wait int64 // ms before the call
		call string
		want string
	}{
		{0, "RL.POLICY LIST", "*0"},
		{0, "RL.POLICY GET login", "$-1"},
		{0, "RL.CHECK ann login", "-ERR no such policy 'login'"},
		{0, "RL.POLICY SET login slide 2 60", "+OK"},
		{0, "rl.policy get login", "$10 SLIDE 2 1m"},
		{0, "RL.CHECK ann login", "*6 :1 :2 :1 :0 :60000 :0"},
		{0, "RL.CHECK ann login COST 2", "*6 :0 :2 :1 :60000 :60000 :0"},
		{0, "RL.CHECK ann login COST 3", "*6 :0 :2 :1 :-1 :60000 :0"},
		{0, "RL.CHECK ann login COST 0", "*6 :1 :2 :1 :0 :60000 :0"},
		{0, "ZCARD login:{ann}", ":1"},
		{0, "RL.POLICY SET login SLIDE 3 1m", "+OK"},
		{0, "RL.CHECK ann login COST 2", "*6 :1 :3 :0 :0 :60000 :0"},
		{0, "RL.POLICY SET api TOKEN 2 1 1s", "+OK"},
		{0, "RL.CHECK ann api login", "*6 :0 :3 :0 :60000 :60000 :1"},
		{0, "EXISTS api:{ann}", ":0"},
		{59_999, "RL.CHECK ann login api", "*6 :0 :3 :0 :1 :1 :0"},
		{1, "RL.CHECK ann login api COST 2", "*6 :1 :2 :0 :0 :60000 :1"},
		{0, "RL.POLICY SET jobs LEASE 1 30s", "+OK"},
		{0, "RL.CHECK ann jobs", "-ERR policy 'jobs' is of leases: RL.CHECK needs ID and the lease's id"},
		{0, "RL.CHECK ann jobs ID a", "*6 :1 :1 :0 :0 :30000 :0"},
		{0, "RL.CHECK ann jobs ID b", "*6 :0 :1 :0 :30000 :30000 :0"},
		{0, "RL.POLICY SET day FIXED 9 day TZ UTC SHADOW", "+OK"},
		{0, "RL.CHECK ann day COST 10", "*6 :1 :9 :9 :0 :0 :0"},
		{0, "RL.POLICY SET login TOKEN 9 1 1h", "+OK, keys of the former algorithm dropped: 1"},
		{0, "EXISTS login:{ann}", ":0"},
		{0, "RL.POLICY SET login TOKEN 8 1 1h", "+OK"},
		{0, "RL.POLICY SET login FIXED 8 1h", "+OK, keys of the former algorithm dropped: 0"},
		{0, "RL.POLICY LIST", "*4 *8 $4 name $3 api $10 definition $12 TOKEN 2 1 1s $8 admitted :1 $6 denied :0 " +
			"*8 $4 name $3 day $10 definition $25 FIXED 9 day TZ UTC SHADOW $8 admitted :0 $6 denied :1 " +
			"*8 $4 name $4 jobs $10 definition $11 LEASE 1 30s $8 admitted :1 $6 denied :1 " +
			"*8 $4 name $5 login $10 definition $10 FIXED 8 1h $8 admitted :3 $6 denied :4"},
		{0, "RL.POLICY DEL login", ":1"},
		{0, "RL.POLICY DEL login", ":0"},
		{0, "RL.POLICY RELOAD", "-ERR there is no file of policies: the server was started without --policies"},
		{0, "FLUSHALL", "+OK"},
		{0, "RL.POLICY GET api", "$12 TOKEN 2 1 1s"},
		{0, "SELECT 3", "+OK"},
		{0, "RL.CHECK bob api", "*6 :1 :2 :1 :0 :1000 :0"},
		{0, "COMMAND GETKEYS RL.CHECK ann login api COST 1", "*1 $3 ann"},
	} {
		ts.Advance(step.wait)
		assert.Equal(t, step.want, c.Do(step.call), step.call)
	}
	assert.Contains(
		t,
		c.Do("INFO ratelimit"),
		"policy_api:shadow=0,admitted=2,denied=0\r\npolicy_day:shadow=1,admitted=0,denied=1\r\n",
	)
	assert.Equal(t, "+OK", c.Do("CONFIG RESETSTAT"))
	assert.Contains(t, c.Do("INFO ratelimit"), "policy_api:shadow=0,admitted=0,denied=0\r\n")
	c.Do("RL.POLICY SET a:b TOKEN 1 1 1h")
	c.Do("RL.POLICY SET a_b TOKEN 1 1 1h")
	assert.Regexp(t, "policy_a%3Ab:.*\r\npolicy_a_b:", c.Do("INFO ratelimit"), "each has a field of its own")
}

// Policies are kept in memory and do not count for maxmemory, so they have a bound of their own.
func TestPoliciesAreBounded(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	definition := "FIXED 9007199254740991 month TZ America/Argentina/Buenos_Aires " +
		"BAN 1000 300d 360d IP4 24 IP6 64 SHADOW"
	const most = 4 << 20
	size, set, reply := 0, 0, "+OK"
	for reply == "+OK" && size <= most {
		name := fmt.Sprintf("%064d", set)
		reply = c.Do("RL.POLICY SET " + name + " " + definition)
		size, set = size+len(name)+len(definition), set+1
	}
	assert.Equal(t, fmt.Sprintf("-ERR the policies of a server may take %d bytes together, and would take %d: a file "+
		"of policies may have more", most, size), reply)
	assert.Equal(t, ":1", c.Do(fmt.Sprintf("RL.POLICY DEL %064d", 0)))
	assert.Equal(t, "+OK", c.Do("RL.POLICY SET another "+definition), "there is room again")
}

func TestPolicyErrors(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Do("RL.POLICY SET a SLIDE 5 1m")
	c.Do("RL.POLICY SET b SLIDE 5 1m")
	const badID = "-ERR the id of RL.CHECK must be 1 to 65536 bytes without { and }"
	for call, want := range map[string]string{
		"RL.CHECK ann":                 "-ERR wrong number of arguments for 'rl.check' command",
		"RL.CHECK {ann} a":             badID,
		"RL.CHECK an}n a":              badID,
		"RL.CHECK {ann a":              badID,
		"RL.CHECK ann a b a":           "-ERR policy 'a' is named twice",
		"RL.CHECK ann a a:{b}":         "-ERR no such policy 'a:{b}'",
		"RL.CHECK ann COST 5":          "-ERR no such policy 'COST'",
		"RL.CHECK ann a COST -1":       "-ERR COST must be from 0 to 9007199254740991",
		"RL.CHECK ann a COST 1 COST 1": "-ERR syntax error",
		"RL.CHECK ann a ID x ID x":     "-ERR syntax error",
		"RL.CHECK ann a COST 1 b":      "-ERR syntax error",
		"RL.CHECK ann a b COST 900000": "*6 :0 :5 :5 :-1 :0 :0",
		"RL.POLICY SET a SLIDE 5":      "-ERR wrong number of arguments for 'rl.policy|set' command",
		"RL.POLICY SET a LEAKS 5 1s": "-ERR unknown algorithm 'LEAKS': a policy is SLIDE, TOKEN, FIXED, " +
			"LEASE, LEAKY or COUNTER",
		"RL.POLICY SET a+b SLIDE 5 1s": "-ERR a policy's name is 1 to 64 letters, digits and ._-/:@, not 'a+b'",
		"RL.POLICY SET a SLIDE 5 1s SHADOW NO": "-ERR 'NO' has no place there: a policy is SLIDE limit window " +
			"[BAN denials for [max]] [IP4 bits] [IP6 bits] [SHADOW]",
		"RL.POLICY SET a TOKEN 5 1s SHADOW": "-ERR value is not an integer or out of range: refill must be from " +
			"1 to 9007199254740991",
		"RL.POLICY FROB": "-ERR unknown subcommand 'FROB'. Try RL.POLICY HELP.",
	} {
		assert.Equal(t, want, c.Do(call), call)
	}
	assert.Equal(t, badID, c.Send("RL.CHECK", "", "a"))
	assert.Equal(
		t,
		"-ERR id is too long: it has 65537 bytes, and proto-max-key-len allows 65536",
		c.Send("RL.CHECK", strings.Repeat("x", limits.MaxCheckID+1), "a"),
	)
	assert.Equal(t, "-ERR ID must not be empty", c.Send("RL.CHECK", "ann", "a", "ID", ""))
	assert.Equal(t, "-ERR no such policy ''", c.Send("RL.CHECK", "ann", "a", ""))
	assert.Equal(
		t,
		"-ERR a policy's name is 1 to 64 letters, digits and ._-/:@, not ''",
		c.Send("RL.POLICY", "SET", "", "SLIDE", "5", "1s"),
	)
	assert.Equal(t, ":0", c.Do("DBSIZE"), "errors change nothing")
	assert.Equal(t, "$10 SLIDE 5 1m", c.Do("RL.POLICY GET a"))
}

func TestChecksAreLimited(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	call := "RL.CHECK ann"
	for i := range limits.MaxPolicies {
		c.Do(fmt.Sprintf("RL.POLICY SET p%d SLIDE 5 1m", i))
		call += fmt.Sprintf(" p%d", i)
	}
	assert.Equal(t, "*6 :1 :5 :4 :0 :60000 :0", c.Do(call))
	assert.Equal(t, ":128", c.Do("DBSIZE"))
	assert.Equal(t, "-ERR too many policies: RL.CHECK takes at most 128", c.Do(call+" p"))
	c.Do("RL.POLICY SET p0 SLIDE 5000000 1m")
	assert.Equal(t, "*6 :1 :5000000 :3999999 :0 :60000 :0", c.Do("RL.CHECK bob p0 COST 1000001 ID x"))
	assert.Equal(t, "*6 :1 :5000000 :2999998 :0 :60000 :0", c.Do("RL.CHECK bob p0 COST 1000001"))
}

// RL.CHECK runs in a transaction, under its locks. RL.POLICY SET takes time and locks of its own,
// and is refused there.
func TestChecksInTransactions(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Do("RL.POLICY SET a SLIDE 1 1m")
	c.Do("RL.POLICY SET b TOKEN 5 1 1m")
	for _, step := range [][2]string{
		{"MULTI", "+OK"},
		{"RL.CHECK ann a b", "+QUEUED"},
		{"RL.CHECK ann b a", "+QUEUED"},
		{"RL.CHECK {} b", "+QUEUED"},
		{"RL.CHECK bob a", "+QUEUED"},
		{"RL.POLICY GET a", "+QUEUED"},
		{"EXEC", "*5 *6 :1 :1 :0 :0 :60000 :0 *6 :0 :1 :0 :60000 :60000 :1 -ERR the id of RL.CHECK must be 1 to " +
			"65536 bytes without { and } " +
			"*6 :1 :1 :0 :0 :60000 :0 $10 SLIDE 1 1m"},
		{"MULTI", "+OK"},
		{"RL.POLICY SET a SLIDE 2 1m", "-ERR Command not allowed inside a transaction"},
		{"DISCARD", "+OK"},
	} {
		assert.Equal(t, step[1], c.Do(step[0]), step[0])
	}
}

func TestReloadPolicies(t *testing.T) {
	var fault error
	calls := 0
	ts := resptest.Start(t, config.Defaults{}, func(o *resp.Options) {
		o.ReloadPolicies = func() error { calls++; return fault }
	})
	c := ts.Dial()
	assert.Equal(t, "+OK", c.Do("RL.POLICY RELOAD"))
	fault = errors.New("policies.yaml:7: slide lacks window")
	assert.Equal(t, "-ERR no policy was changed: policies.yaml:7: slide lacks window", c.Do("RL.POLICY RELOAD"))
	assert.Equal(t, 2, calls)
}
