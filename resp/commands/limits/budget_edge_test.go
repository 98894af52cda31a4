package limits_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/resptest"
)

// budgetForms are limits of five, by their commands and as rules.
var budgetForms = []struct{ command, rule string }{
	{"RL.SLIDE k 5 1h", "SLIDE 5 1h"},
	{"RL.TOKEN k 5 1 1h", "TOKEN 5 1 1h"},
	{"RL.FIXED k 5 1000h", "FIXED 5 1000h"},
	{"RL.COUNTER k 5 1000h", "COUNTER 5 1000h"},
}

// However much is charged beyond the limit, nothing is admitted until it is worked off.
func TestDebtsDoNotOverflow(t *testing.T) {
	for _, form := range budgetForms {
		t.Run(form.rule, func(t *testing.T) {
			s := resptest.Start(t, nil)
			c := s.Dial()
			most := "9007199254740991"
			if strings.HasPrefix(form.rule, "SLIDE") {
				most = "1000000" // of one call
			}
			c.Do(form.command + " HOLD 1m ID a")
			for i := range 1100 { // together more than 2^63
				// an error, if it cannot be counted any more
				c.Do("RL.CHARGE k " + form.rule + " " + most)
				c.Do(fmt.Sprint("RL.SETTLE k ", most, " ID ", i))
				s.Advance(1)
			}
			for _, more := range []string{"", " COST 5", " HOLD 1m ID b"} {
				reply := c.Do(form.command + more)
				assert.Contains(t, reply, "*5 :0 :5 :0 :")
				assert.NotContains(t, reply, ":-")
			}
		})
	}
}

// A key is there as long as something is reserved, and no command minds that it is empty.
func TestKeysOfReservationsAlone(t *testing.T) {
	for _, form := range budgetForms {
		t.Run(form.rule, func(t *testing.T) {
			s := resptest.Start(t, nil)
			c := s.Dial()
			require.Equal(t, "*5 :1 :5 :2 :0 :7200000", c.Do(form.command+" COST 3 HOLD 2h ID a"))
			c.Check([]resptest.Answer{
				{"EXISTS k", ":1"}, {"DBSIZE", ":1"}, {"RANDOMKEY", "$1 k"}, {"PERSIST k", "…"},
				{"OBJECT ENCODING k", "$…"}, {"MEMORY USAGE k", ":…"}, {"TOUCH k", ":1"}, {"SCAN 0", "*2 $1 0 *1 $1 k"},
				{"KEYS *", "*1 $1 k"},
			})
			if strings.HasPrefix(form.rule, "SLIDE") {
				c.Check([]resptest.Answer{
					{"TYPE k", "+zset"}, {"ZCARD k", ":0"}, {"ZRANGE k 0 -1", "*0"}, {"ZPOPMIN k", "*0"},
					{"ZPOPMAX k 5", "*0"},
					{"ZMPOP 1 k MIN", "*-1"}, {"ZRANDMEMBER k", "$-1"}, {"ZSCORE k a", "$-1"},
					{"ZREM k a", ":0"}, {"ZREMRANGEBYRANK k 0 -1", ":0"}, {"ZREMRANGEBYSCORE k -inf +inf", ":0"},
					{"ZSCAN k 0", "*2 $1 0 *0"}, {"ZUNION 1 k", "*0"}, {"ZDIFF 1 k", "*0"}, {"SORT k BY nosort", "*0"},
					{"ZCOUNT k -inf +inf", ":0"}, {"ZLEXCOUNT k - +", ":0"}, {"ZRANK k a", "$-1"}, {"ZADD k 1 a", ":1"},
					{"ZPOPMIN k", "*2 $1 a $1 1"},
				})
			}
			assert.Equal(t, "*1 *3 $1 a :3 :7200000", c.Do("RL.HOLDS k"))
			assert.Contains(t, c.Do(form.command+" COST 3"), "*5 :0 :5 :2 :7200000 :")
			for call := range strings.SplitSeq("RENAME k other,MOVE other 1,SELECT 1,COPY other k DB 0,SELECT 0", ",") {
				assert.NotContains(t, c.Do(call), "-", call)
			}
			assert.Equal(t, "*1 *3 $1 a :3 :7200000", c.Do("RL.HOLDS k"), "it is in a copy of a copy")
			assert.Equal(t, "*1 *4 :1 :3 :0 :5", c.Do("RL.SETTLE k 0 ID a"))
			assert.Equal(t, "*0", c.Do("RL.HOLDS k"))
			assert.Equal(t, ":1", c.Do("EXISTS k"), "the call is remembered")
			c.Do("SET k text")
			assert.Contains(t, c.Do("RL.HOLDS k"), "-WRONGTYPE")
			assert.Contains(t, c.Do("RL.SETTLE k 0 ID a"), "-WRONGTYPE")
			c.Do("DEL k")
			assert.Equal(t, "*0", c.Do("RL.HOLDS k"))
			assert.Contains(t, c.Do("RL.SETTLE k 0 ID a"), "-ERR ")
		})
	}
}

// Of several keys, all are settled or none.
func TestSettleIsAllOrNothing(t *testing.T) {
	c := resptest.Start(t, nil).Dial()
	c.Do("RL.ALL a SLIDE 5 1h b TOKEN 5 1 1h COST 3 HOLD 1h ID x")
	c.Do("SET text v")
	for _, call := range []string{
		"RL.SETTLE a 1 text 1 ID x", "RL.SETTLE a 1 none 1 ID x", "RL.SETTLE a 1 b ID x", "RL.SETTLE a 1 b -1 ID x",
		"RL.SETTLE a 1 b 9007199254740992 ID x", "RL.SETTLE a 1 b 1", "RL.SETTLE a 1 a 1 ID x", "RL.SETTLE a 1 b 1 ID",
	} {
		assert.Equal(t, "-", c.Do(call)[:1], call)
		assert.Equal(t, "*1 *3 $1 x :3 :3600000", c.Do("RL.HOLDS a"), call)
	}
	many := strings.Repeat(" k 1", 128)
	assert.Contains(t, c.Do("RL.SETTLE"+many+" ID x"), "-ERR key 'k' ")
	assert.Contains(t, c.Do("RL.SETTLE a 1"+many+" ID x"), "-ERR too many keys: RL.SETTLE takes at most 128")
	assert.Equal(t, "*2 *4 :1 :3 :1 :4 *4 :1 :3 :5 :0", c.Do("RL.SETTLE a 1 b 5 ID x"))
}

// Reservations in transactions and scripts are those of other calls.
func TestReservationsInTransactionsAndScripts(t *testing.T) {
	s := resptest.Start(t, nil)
	c := s.Dial()
	const hold = "RL.SLIDE k 5 1h COST 2 HOLD 1h ID"
	for _, call := range []string{"MULTI", hold + " a", hold + " b", hold + " c", "RL.SETTLE k 0 ID a", hold + " c"} {
		c.Do(call)
	}
	assert.Equal(t, "*5 *5 :1 :5 :3 :0 :3600000 *5 :1 :5 :1 :0 :3600000 *5 :0 :5 :1 :3600000 :3600000 "+
		"*1 *4 :1 :2 :0 :3 *5 :1 :5 :1 :0 :3600000", c.Do("EXEC"))
	script := `redis.call('RL.SETTLE', KEYS[1], 1, 'ID', 'b')
return redis.call('RL.SLIDE', KEYS[1], 5, '1h', 'COST', 2, 'HOLD', '30m', 'ID', 'd')`
	assert.Equal(t, "*5 :1 :5 :0 :0 :3600000", c.Send("EVAL", script, "1", "k"))
	s.Advance(1_800_000)
	assert.Equal(t, "*1 *3 $1 c :2 :1800000", c.Do("RL.HOLDS k"))
}
