package limits_test

import (
	"testing"

	"rlserver/resp/command/commandtest"
)

func TestCallsReserveAndSettle(t *testing.T) {
	check(t, commandtest.New(t), [][2]string{
		{"RL.TOKEN t 10 1 1h COST 6 HOLD 5s ID a", "*5 :1 :10 :4 :0 :5000"},
		{"RL.TOKEN t 10 1 1h COST 5 HOLD 5s ID b", "*5 :0 :10 :4 :5000 :5000"},
		{"RL.TOKEN t 10 1 1h COST 6 ID a HOLD 8s", "*5 :1 :10 :4 :0 :8000"},
		{"RL.HOLDS t", "*1 *3 $1 a :6 :8000"},
		{"TYPE t", "+rl.token"},
		{"RL.SETTLE t 2 ID a", "*1 *4 :1 :6 :2 :8"},
		{"RL.SETTLE t 2 ID a", "*1 *4 :0 :0 :2 :8"},
		{"RL.SETTLE t 20 ID unknown", "*1 *4 :1 :0 :20 :0"},
		{"RL.HOLDS t", "*0"},
		{"RL.SLIDE s 3 1m COST 2 HOLD 5s ID a", "*5 :1 :3 :1 :0 :5000"},
		{"ZCARD s", ":0"},
		{"RL.MULTI m 3 1m 5 1h COST 2 HOLD 5s ID a", "*6 :1 :3 :1 :0 :5000 :0"},
		{"RL.SETTLE s 1 m 3 ID a", "*2 *4 :1 :2 :1 :2 *4 :1 :2 :3 :0"},
		{"ZCARD s", ":1"},
		{"RL.ALL f FIXED 9 1h c COUNTER 5 1h COST 4 5 HOLD 5s ID a", "*6 :1 :5 :0 :0 :5000 :1"},
		{"RL.POLICY SET requests SLIDE 10 1m", "+OK"},
		{"RL.POLICY SET tokens TOKEN 1000 1000 1m", "+OK"},
		{"RL.CHECK ann requests tokens COST 1 400 HOLD 30s ID r1", "*6 :1 :10 :9 :0 :30000 :0"},
		{"RL.SETTLE CHECK ann requests tokens COST 1 123 ID r1", "*2 *4 :1 :1 :1 :9 *4 :1 :400 :123 :877"},
		{"RL.SETTLE CHECK bob requests tokens COST 1 300 ID r1", "*2 *4 :1 :0 :1 :9 *4 :1 :0 :300 :700"},
		{"RL.SETTLE requests:{bob} 1 tokens:{bob} 300 ID r1", "*2 *4 :0 :0 :1 :9 *4 :0 :0 :300 :700"},
		{"RL.SETTLE tokens:{bob} 300 ID r2", "*1 *4 :1 :0 :300 :400"},
		{"SET text x", "+OK"},
		{"RL.HOLDS text", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"RL.SETTLE text 1 ID a", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"RL.TOKEN t 10 1 1h HOLD 5s", "-ERR HOLD needs ID and the call's id"},
		{"RL.TOKEN t 10 1 1h ID a", "-ERR ID goes with HOLD here: only sliding windows know their hits by name"},
		{"RL.TOKEN t 10 1 1h COST 0 HOLD 5s ID a", "-ERR HOLD reserves the cost: COST must be 1 or more"},
		{"RL.SETTLE missing 1 ID a",
			"-ERR key 'missing' has no reservations, so its rule is not known: use RL.CHARGE key rule n"},
	})
}
