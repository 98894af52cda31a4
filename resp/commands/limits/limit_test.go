package limits_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/limit"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/commands/limits"
)

// check runs calls one after the other, and compares their replies.
func check(t *testing.T, r *commandtest.Runner, calls [][2]string) {
	t.Helper()
	for _, call := range calls {
		assert.Equal(t, call[1], r.Do(call[0]), call[0])
	}
}

func TestSlidingWindow(t *testing.T) {
	r := commandtest.New(t)
	assert.Equal(t, "*5 :1 :2 :1 :0 :1000", r.Do("RL.SLIDE k 2 1s"))
	r.Advance(400)
	check(t, r, [][2]string{
		{"RL.SLIDE k 2 1s", "*5 :1 :2 :0 :0 :1000"},
		{"RL.SLIDE k 2 1s", "*5 :0 :2 :0 :600 :1000"},
		{"RL.SLIDE k 2 1s COST 0", "*5 :0 :2 :0 :600 :1000"},
	})
	r.Advance(600)
	assert.Equal(t, "*5 :1 :2 :0 :0 :1000", r.Do("RL.SLIDE k 2 1s"))
}

func TestWaitOnlyIfTheTimeoutSuffices(t *testing.T) {
	r := commandtest.New(t)
	check(t, r, [][2]string{
		{"RL.SLIDE k 1 1s", "*5 :1 :1 :0 :0 :1000"},
		{"RL.SLIDE k 1 1s WAIT 1s", commandtest.Waits},
		{"RL.SLIDE k 1 1s WAIT 999ms", "*5 :0 :1 :0 :1000 :1000"},
	})
	r.Queued = true
	assert.Equal(t, commandtest.Waits, r.Do("RL.SLIDE other 1 1s WAIT 1s"), "other calls wait for the key")
}

func TestADeniedRuleOfSeveral(t *testing.T) {
	check(t, commandtest.New(t), [][2]string{
		{"RL.FIXED b 1 1h", "*5 :1 :1 :0 :0 :3600000"},
		{"RL.ALL a SLIDE 1 1h b FIXED 1 1h", "*6 :0 :1 :0 :3600000 :3600000 :1"},
		{"RL.SLIDE a 1 1h", "*5 :1 :1 :0 :0 :3600000"},
	})
}

func TestWriteDecision(t *testing.T) {
	r := commandtest.New(t)
	limits.WriteDecision(&r.Reply, limit.Decision{Allowed: true, Limit: 5, Remaining: 4, ResetAfter: 60})
	assert.Equal(t, "*5\r\n:1\r\n:5\r\n:4\r\n:0\r\n:60\r\n", string(r.Reply.B))
}
