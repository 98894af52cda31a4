package limits_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestChargeGoesBeyondTheLimit(t *testing.T) {
	r := commandtest.New(t)
	check(t, r, [][2]string{
		{"RL.CHARGE t TOKEN 10 10 10s 4", "*5 :1 :10 :6 :0 :4000"},
		{"RL.CHARGE t TOKEN 10 10 10s 7", "*5 :0 :10 :0 :8000 :11000"},
		{"RL.CHARGE t TOKEN 10 10 10s 11", "*5 :0 :10 :0 :-1 :22000"},
		{"RL.TOKEN t 10 10 10s", "*5 :0 :10 :0 :13000 :22000"},
		{"RL.REFUND t 13", ":13"},
		{"RL.TOKEN t 10 10 10s", "*5 :1 :10 :0 :0 :10000"},
		{"RL.CHARGE s SLIDE 2 1m 3", "*5 :0 :2 :0 :-1 :60000"},
		{"RL.CHARGE s SLIDE 2 1m 0", "*5 :0 :2 :0 :60000 :60000"},
		{"ZCARD s", ":3"},
		{"RL.CHARGE m MULTI 2 1m 9 1h 3", "*6 :0 :2 :0 :-1 :3600000 :0"},
		{"RL.CHARGE m MULTI 4 1m 9 1h 4", "*6 :0 :9 :2 :3600000 :3600000 :1"},
		{"RL.CHARGE m MULTI 4 1m 9 1h 2", "*6 :0 :9 :0 :3600000 :3600000 :1"},
		{"RL.CHARGE m MULTI 99 1m 1", "*6 :1 :99 :89 :0 :60000 :0"},
		{"ZCARD m", ":10"},
		{"RL.CHARGE f FIXED 5 day TZ Europe/Berlin 6", "*5 :0 :5 :0 :-1 :82800000"},
		{"RL.FIXED f 5 day TZ Europe/Berlin", "*5 :0 :5 :0 :82800000 :82800000"},
		{"RL.CHARGE c COUNTER 10 1m 25", "*5 :0 :10 :0 :-1 :120000"},
		{"RL.COUNTER c 10 1m", "*5 :0 :10 :0 :98400 :120000"},
		{"RL.CHARGE l LEAKY 1 1s QUEUE 2 5", "*5 :0 :3 :0 :-1 :5000"},
		{"RL.LEAKY l 1 1s QUEUE 2", "*6 :0 :3 :0 :3000 :5000 :0"},
	})
	r.Advance(98_399)
	check(t, r, [][2]string{
		{"RL.COUNTER c 10 1m COST 0", "*5 :0 :10 :0 :1 :21601"},
		{"RL.LEAKY l 1 1s QUEUE 2", "*6 :1 :3 :2 :0 :1000 :0"},
	})
	r.Advance(1)
	assert.Equal(t, "*5 :1 :10 :0 :0 :81600", r.Do("RL.COUNTER c 10 1m"))
}

func TestChargeErrors(t *testing.T) {
	r := commandtest.New(t)
	r.Do("SET string v")
	const form = "-ERR RL.CHARGE takes a key, a rule and the hits: the rule is SLIDE limit window, " +
		"TOKEN capacity refill period, FIXED limit window [TZ zone], LEAKY rate period [QUEUE queue], " +
		"COUNTER limit window or MULTI limit window [limit window ...]"
	for call, want := range map[string]string{
		"RL.CHARGE k TOKEN 5 5 1s":       form,
		"RL.CHARGE k SLIDES 5 1s 1":      form,
		"RL.CHARGE k MULTI 5 1s 5 1":     form,
		"RL.CHARGE k FIXED 5 day TZ UTC": form,
		"RL.CHARGE k LEASE 5 1s a 1": "-ERR RL.CHARGE records hits, and leases have none: " +
			"take one with RL.LEASE",
		"RL.CHARGE k SLIDE 5 1s 1 2":       "-ERR syntax error",
		"RL.CHARGE k SLIDE 5 1s 1 WAIT 5s": "-ERR syntax error",
		"RL.CHARGE k SLIDE 5 1s -1":        "-ERR hits must be from 0 to 9007199254740991",
		"RL.CHARGE k SLIDE 0 1s 1":         "-ERR limit must be from 1 to 9007199254740991",
		"RL.CHARGE string SLIDE 5 1s 1": "-WRONGTYPE Operation against a key " +
			"holding the wrong kind of value",
		"RL.CHARGE t TOKEN 5 1 1s 9007199254740991": "*5 :0 :5 :0 :-1 :9007199254740991000",
		"RL.CHARGE f FIXED 5 1y 1": "-ERR invalid duration '1y': use seconds, or a number with ms, s, m, h, d or w" +
			"; or minute, hour, day, week, month or year for a window of the calendar",
	} {
		assert.Equal(t, want, r.Do(call), call)
	}
	assert.Equal(t, "-ERR the hits of this limiter would be more than 9007199254740991",
		r.Do("RL.CHARGE t TOKEN 5 1 1s 1"))
	assert.Equal(t, ":0", r.Do("EXISTS k f"))
}

func TestForcedCheck(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	for _, step := range [][2]string{
		{"RL.POLICY SET requests SLIDE 2 1m", "+OK"},
		{"RL.POLICY SET tokens TOKEN 1000 1000 1m", "+OK"},
		{"RL.CHECK ann requests tokens COST 1 2000 FORCE", "*6 :0 :1000 :0 :-1 :120000 :1"},
		{"RL.CHECK ann requests tokens COST 1 500 FORCE ID a", "*6 :0 :1000 :0 :120000 :150000 :1"},
		{"RL.CHECK ann requests tokens FORCE COST 1 500 ID a", "*6 :1 :2 :0 :0 :150000 :0"},
		{"RL.CHECK ann requests COST 0 FORCE", "*6 :0 :2 :0 :60000 :60000 :0"},
		{"ZCARD requests:{ann}", ":2"},
		{"RL.CHECK ann requests FORCE WAIT 1s",
			"-ERR FORCE records the call at once: RL.CHECK takes FORCE or WAIT, not both"},
		{"RL.CHECK ann requests FORCE FORCE", "-ERR syntax error"},
		{"RL.POLICY SET force SLIDE 1 1s", "-ERR a policy cannot be called 'force': that is an option of RL.CHECK"},
		{"RL.TOP", "*0"},
		{"MULTI", "+OK"},
		{"RL.CHARGE k TOKEN 2 1 1s 3", "+QUEUED"},
		{"RL.CHECK bob requests FORCE", "+QUEUED"},
		{"EXEC", "*2 *5 :0 :2 :0 :-1 :3000 *6 :1 :2 :1 :0 :60000 :0"},
	} {
		assert.Equal(t, step[1], c.Do(step[0]), step[0])
	}
}
