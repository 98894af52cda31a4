package limits_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/resptest"
)

// Calls with BAN ban like policies, on keys of all algorithms that have it.
func TestCallsBan(t *testing.T) {
	for call, reply := range map[string][3]string{ // the call, denied, and banned
		"RL.SLIDE k 1 1m": {"*5 :1 :1 :0 :0 :60000", "*5 :0 :1 :0 :60000 :60000", "*5 :0 :1 :0 :600000 :600000"},
		"RL.MULTI k 1 1m 9 1m": {"*6 :1 :1 :0 :0 :60000 :0", "*6 :0 :1 :0 :60000 :60000 :0",
			"*6 :0 :1 :0 :600000 :600000 :0"},
		"RL.TOKEN k 1 1 1m": {"*5 :1 :1 :0 :0 :60000", "*5 :0 :1 :0 :60000 :60000", "*5 :0 :1 :0 :600000 :600000"},
		"RL.FIXED k 1 1m":   {"*5 :1 :1 :0 :0 :60000", "*5 :0 :1 :0 :60000 :60000", "*5 :0 :1 :0 :600000 :600000"},
		"RL.COUNTER k 1 1m": {"*5 :1 :1 :0 :0 :120000", "*5 :0 :1 :0 :120000 :120000",
			"*5 :0 :1 :0 :600000 :600000"},
		"RL.SLIDE k 1 1m ID id": {"*5 :1 :1 :0 :0 :60000", "", ""},
	} {
		t.Run(call, func(t *testing.T) {
			s := resptest.Start(t, nil)
			c := s.Dial()
			banning := call + " BAN 2 10m 1h"
			is := func(call, want string) {
				t.Helper()
				assert.Equal(t, want, c.Do(call), call)
			}
			is(banning, reply[0])
			if reply[1] == "" { // a retry is no denial
				is(banning, reply[0])
				is(banning, reply[0])
				is("RL.BANNED COUNT 10000", "*2 $1 0 *0")
				return
			}
			is(banning, reply[1])
			is(call, reply[1]) // not counted
			is(banning+" COST 0", reply[1])
			is("RL.BANNED COUNT 10000", "*2 $1 0 *0")
			is(banning, reply[2])
			is(call+" BAN 9 1h COST 0", reply[2]) // denied by any call that bans
			is(call, reply[1])                    // and by no other
			banned := "*2 $1 0 *1 *8 $2 id $1 k $6 policy $0  $3 ban :600000 $4 bans :1"
			is("RL.BANNED COUNT 10000", banned)
			is("COPY k copy", ":1")
			is("DEL k", ":1")
			is(banning, reply[0])
			is("RENAME copy k", "+OK")
			is(banning, reply[2])
			c.Do("EVAL return(redis.call('RESTORE','other',0,redis.call('DUMP','k')).ok) 2 k other")
			is(strings.Replace(banning, " k ", " other ", 1), reply[2])
			is("RL.UNBAN other", ":1")
			is("RL.UNBAN other", ":0")
			is("MOVE k 1", ":1")
			is("SELECT 1", "+OK")
			is("RL.UNBAN k", ":1")
			is("RL.BANNED COUNT 10000", "*2 $1 0 *0")
			is(banning, reply[1])
			is(banning, reply[2])
			s.Advance(600_000)
			is(banning, reply[0])
		})
	}
}

// A call that bans is refused if a word of its BAN is bad, and changes nothing.
func TestBadBansOfCalls(t *testing.T) {
	c := resptest.Start(t, nil).Dial()
	c.Check([]resptest.Answer{
		{"RL.SLIDE k 1 1m BAN 0 1m", "-ERR BAN must be from 1 to 1000"},
		{"RL.SLIDE k 1 1m BAN 1001 1m", "-ERR BAN must be from 1 to 1000"},
		{"RL.TOKEN k 1 1 1m BAN 2", "-ERR something is missing: BAN takes denials for [max], such as BAN 3 15m 1d"},
		{"RL.MULTI k 1 1m BAN 2 soon",
			"-ERR invalid duration 'soon': use seconds, or a number with ms, s, m, h, d or w"},
		{"RL.FIXED k 1 1m BAN 2 10m 1m", "-ERR BAN takes a longest ban that is not shorter than the first one"},
		{"RL.COUNTER k 1 1m BAN 2 1m BAN 2 1m", "-ERR syntax error"},
		{"RL.LEASE k 1 1m id BAN 2 1m", "-ERR syntax error"},
		{"EXISTS k", ":0"},
		{"RL.FIXED k 1 day BAN 1 2h TZ Asia/Tokyo COST 1", "*5 :1 :1 :0 :0 :54000000"},
		{"RL.SLIDE {k}:1 1 1h BAN 1 2h", "*5 :1 :1 :0 :0 :3600000"},
		{"RL.SLIDE {k}:1 1 1h BAN 1 2h", "*5 :0 :1 :0 :7200000 :7200000"},
		{"RL.UNBAN {k}:1", ":1"},
		{"RL.UNBAN {k}:1 policy", "-ERR the id of RL.CHECK must be 1 to 65536 bytes without { and }"},
		{"RL.SLIDE h 1 1h HOLD 1h ID a BAN 1 2h", "*5 :1 :1 :0 :0 :3600000"},
		{"RL.SLIDE h 1 1h HOLD 1h ID b BAN 1 2h", "*5 :0 :1 :0 :7200000 :7200000"},
		{"RL.SLIDE h 1 1h HOLD 1h ID a BAN 1 2h", "*5 :0 :1 :0 :7200000 :7200000"},
		{"RL.SETTLE h 1 ID a", "*1 *4 :1 :1 :1 :0"},
		{"RL.SLIDE h 1 1h BAN 1 2h WAIT 1s", "*5 :0 :1 :0 :7200000 :7200000"},
	})
}
