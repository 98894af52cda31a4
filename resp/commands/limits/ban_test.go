package limits_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestBans(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	for _, step := range [][2]string{
		{"RL.POLICY SET login SLIDE 1 1m BAN 2 10m 1h", "+OK"},
		{"RL.POLICY GET login", "$23 SLIDE 1 1m BAN 2 10m 1h"},
		{"RL.CHECK ann login", "*6 :1 :1 :0 :0 :60000 :0"},
		{"RL.CHECK ann login", "*6 :0 :1 :0 :60000 :60000 :0"},
		{"RL.CHECK ann login COST 0", "*6 :0 :1 :0 :60000 :60000 :0"},
		{"RL.CHECK ann login", "*6 :0 :1 :0 :600000 :600000 :0"},
		{"RL.CHECK ann login COST 0", "*6 :0 :1 :0 :600000 :600000 :0"},
		{"RL.CHECK ann login FORCE", "*6 :0 :1 :0 :600000 :600000 :0"},
		{"ZCARD login:{ann}", ":2"},
		{"RL.CHECK ann login WAIT 1ms", "*6 :0 :1 :0 :600000 :600000 :0"},
		{"RL.BANNED COUNT 100000", "*2 $1 0 *1 *8 $2 id $3 ann $6 policy $5 login $3 ban :600000 $4 bans :1"},
		{"RL.BANNED COUNT 100000 MATCH b*", "*2 $1 0 *0"},
		{"RL.USAGE ann", "*1 *16 $4 name $5 login $7 allowed :0 $5 limit :1 $9 remaining :0 $11 retry_after :600000 " +
			"$11 reset_after :600000 $4 held :0 $3 ban :600000"},
		{"PTTL login:{ann}", ":4200000"}, // the ban, and an hour of memory
		{"RL.UNBAN ann other", "-ERR no such policy 'other'"},
		{"RL.UNBAN ann login", ":1"},
		{"RL.UNBAN ann", ":0"},
		{"RL.BANNED COUNT 100000", "*2 $1 0 *0"},
		{"RL.CHECK ann login", "*6 :0 :1 :0 :60000 :60000 :0"},
		{"RL.POLICY SET p SLIDE 1 1m BAN 0 1m", "-ERR BAN must be from 1 to 1000"},
		{"RL.POLICY SET p SLIDE 1 1m BAN 1001 1m", "-ERR BAN must be from 1 to 1000"},
		{"RL.POLICY SET p SLIDE 1 1m BAN 2 10m 1m",
			"-ERR BAN takes a longest ban that is not shorter than the first one"},
		{"RL.POLICY SET p SLIDE 1 1m BAN 2 1m FOR ann", "-ERR a policy has its BAN, IP4, IP6 and SHADOW for all ids: " +
			"FOR takes other numbers of the same algorithm"},
		{"RL.BANNED TYPE x", "-ERR syntax error"},
		{"RL.BANNED CURSOR x", "-ERR invalid cursor"},
		{"RL.POLICY SET trial SLIDE 1 1m BAN 1 10m SHADOW", "+OK"},
		{"RL.CHECK bob trial", "*6 :1 :1 :0 :0 :60000 :0"},
		{"RL.CHECK bob trial", "*6 :1 :1 :0 :0 :60000 :0"},
		{"RL.CHECK bob trial", "*6 :1 :1 :0 :0 :60000 :0"},
		{"RL.BANNED COUNT 100000", "*2 $1 0 *0"},
	} {
		assert.Equal(t, step[1], c.Do(step[0]), step[0])
	}
}
