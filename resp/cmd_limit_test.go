package resp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimiterReplies(t *testing.T) {
	ts := startServer(t, Defaults{})
	c := ts.dial()
	for _, step := range []struct {
		wait int64 // ms before the call
		call string
		want string
	}{
		{0, "RL.TOKEN t 2 1 1s", "*5 :1 :2 :1 :0 :1000"},
		{0, "rl.token t 2 1 1s COST 2", "*5 :0 :2 :1 :1000 :1000"},
		{0, "RL.TOKEN t 2 1 1s COST 3", "*5 :0 :2 :1 :-1 :1000"},
		{0, "RL.TOKEN t 2 1 1s COST 0", "*5 :1 :2 :1 :0 :1000"},
		{999, "RL.TOKEN t 2 1 1s cost 2", "*5 :0 :2 :1 :1 :1"},
		{1, "RL.TOKEN t 2 1 1s COST 2", "*5 :1 :2 :0 :0 :2000"},
		{0, "RL.FIXED f 2 1m", "*5 :1 :2 :1 :0 :59000"},
		{0, "RL.FIXED f 2 1m COST 2", "*5 :0 :2 :1 :59000 :59000"},
		{0, "RL.FIXED day 1 day TZ Europe/Berlin", "*5 :1 :1 :0 :0 :82799000"},
	} {
		ts.advance(step.wait)
		require.Equal(t, step.want, c.do(step.call), step.call)
	}
}
