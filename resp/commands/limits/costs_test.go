package limits_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestEachRuleHasItsPrice(t *testing.T) {
	const rules = "RL.ALL r SLIDE 2 1m t TOKEN 100 100 1m m FIXED 9 1h"
	check(t, commandtest.New(t), [][2]string{
		{rules + " COST 1 70 0", "*6 :1 :2 :1 :0 :60000 :0"},
		{rules + " COST 1 31 1", "*6 :0 :100 :30 :600 :60000 :1"},
		{rules + " COST 1 101 1", "*6 :0 :100 :30 :-1 :60000 :1"},
		{rules + " COST 0 30 9", "*6 :1 :100 :0 :0 :3600000 :1"},
		{rules + " COST 0 0 1", "*6 :0 :9 :0 :3600000 :3600000 :2"},
		{rules + " COST 1 0 0", "*6 :1 :2 :0 :0 :3600000 :0"},
		{rules + " COST 0 0 0", "*6 :0 :9 :0 :3600000 :3600000 :2"},
		{rules + " COST 0", "*6 :0 :9 :0 :3600000 :3600000 :2"},
		{"ZCARD r", ":2"},
		{rules + " COST 0 5 0 WAIT 3s", commandtest.Waits},
		{rules + " WAIT 4s COST 0 5 0", commandtest.Waits},
		{rules + " COST 0 5 0 WAIT 2s", "*6 :0 :100 :0 :3000 :3600000 :1"},
		{"RL.ALL COST SLIDE 2 1m t TOKEN 100 100 1m COST 1 0", "*6 :1 :100 :0 :0 :60000 :1"},
		{"ZCARD COST", ":1"},
		{"RL.ALL r SLIDE 2 1m r SLIDE 3 1h COST 0 1",
			"-ERR the rules of key 'r' share its log: COST must be the same for each of them"},
	})
}

func TestPricesThatDoNotFit(t *testing.T) {
	const rules = "RL.ALL r SLIDE 2 1m t TOKEN 100 100 1m "
	r := commandtest.New(t)
	for call, want := range map[string]string{
		"COST 1 2 3":       "-ERR COST takes one number, or one for each of the 2 rules: it has 3",
		"COST 1 x":         "",
		"COST 1 -2":        "-ERR COST must be from 0 to 9007199254740991",
		"COST 1 2x":        "-ERR value is not an integer or out of range: COST must be from 0 to 9007199254740991",
		"COST x":           "-ERR value is not an integer or out of range: COST must be from 0 to 9007199254740991",
		"COST":             "",
		"COST 1 2 COST 1":  "",
		"COST WAIT 1s":     "",
		"COST 1 2 WAIT":    "",
		"COST 1000001 1":   "*6 :0 :2 :2 :-1 :0 :0",
		"COST 1 99 ID one": "-ERR ID goes with HOLD here: only sliding windows know their hits by name",
	} {
		got := r.Do(rules + call)
		if want == "" {
			assert.True(t, strings.HasPrefix(got, "-ERR syntax error: a rule is a key and ") ||
				strings.HasPrefix(got, "-ERR value is not an integer or out of range: COST"), "%s: %s", call, got)
		} else {
			assert.Equal(t, want, got, call)
		}
	}
	assert.Equal(t, ":0", r.Do("EXISTS r t"))
}

func TestEachPolicyHasItsPrice(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	for _, step := range [][2]string{
		{"RL.POLICY SET requests SLIDE 2 1m", "+OK"},
		{"RL.POLICY SET tokens TOKEN 10000 10000 1m", "+OK"},
		{"RL.CHECK ann requests tokens COST 1 4000", "*6 :1 :2 :1 :0 :60000 :0"},
		{"RL.CHECK ann requests tokens COST 1 6001 ID a", "*6 :0 :10000 :6000 :6 :60000 :1"},
		{"RL.CHECK ann requests tokens ID a COST 1 6000 WAIT 1s", "*6 :1 :2 :0 :0 :60000 :0"},
		{"RL.CHECK ann requests tokens COST 1 6000 ID a", "*6 :1 :2 :0 :0 :60000 :0"},
		{"RL.CHECK ann requests tokens COST 0 1", "*6 :0 :10000 :0 :6 :60000 :1"},
		{"RL.CHECK ann requests tokens COST 0 1 WAIT 5ms ID a", "*6 :0 :10000 :0 :6 :60000 :1"},
		{"RL.CHECK ann requests tokens COST 0 0", "*6 :0 :2 :0 :60000 :60000 :0"},
		{"RL.CHECK ann requests tokens COST 1 2 3",
			"-ERR COST takes one number, or one for each of the 2 policies: it has 3"},
		{"RL.CHECK ann requests COST 1 2", "-ERR COST takes one number, or one for each of the 1 policies: it has 2"},
		{"RL.POLICY LIST", "*2 *8 $4 name $8 requests $10 definition $10 SLIDE 2 1m $8 admitted :2 $6 denied :0 " +
			"*8 $4 name $6 tokens $10 definition $20 TOKEN 10000 10000 1m $8 admitted :2 $6 denied :3"},
	} {
		assert.Equal(t, step[1], c.Do(step[0]), step[0])
	}
}
