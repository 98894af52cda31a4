package limits_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command"
	"rlserver/resp/resptest"
)

// Who may access some keys can look at, settle, charge, reset and unban no others, under policies
// either: their keys are policy:{id}.
func TestAccessToIDs(t *testing.T) {
	s := resptest.Start(t, nil)
	admin := s.Dial()
	for call := range strings.SplitSeq(`RL.POLICY SET login SLIDE 1 1h BAN 1 1h
		RL.POLICY SET tokens TOKEN 9 1 1h IP4 24
		RL.CHECK ann login COST 1 HOLD 1m ID a
		RL.CHECK bob login COST 1 HOLD 1m ID a
		RL.CHECK bob login
		RL.CHECK 10.1.2.3 tokens
		RL.TOKEN bob 5 1 1h HOLD 1m ID a`, "\n") {
		assert.NotContains(t, admin.Do(strings.TrimSpace(call)), "-ERR")
	}
	c := s.As("ann", "~login:{ann} ~ann ~tokens:{10.1.2.0/24} +@all")
	const denied = "-NOPERM this user has no permissions to access one of the keys used as arguments"
	for _, call := range []string{
		"RL.CHECK bob login", "RL.CHECK bob login FORCE", "RL.CHECK ann tokens", "RL.CHECK 10.1.3.1 tokens",
		"RL.SETTLE bob 1 ID a", "RL.SETTLE ann 1 bob 1 ID a", "RL.SETTLE CHECK bob login COST 1 ID a",
		"RL.SETTLE CHECK ann login tokens COST 1 ID a", "RL.SETTLE check bob login COST 1 ID a",
		"RL.USAGE bob login", "RL.USAGE bob", "RL.USAGE ann", "RL.RESET bob login", "RL.RESET bob", "RL.RESET ann",
		"RL.UNBAN bob login", "RL.UNBAN bob", "RL.UNBAN ann", "RL.CHARGE bob TOKEN 5 1 1h 1", "RL.HOLDS bob",
		"RL.HOLDS login:{bob}", "RL.REFUND login:{bob} 1", "RL.ALL ann SLIDE 5 1m login:{bob} SLIDE 5 1m",
		"RL.SETTLE CHECK 1 ID a",
	} {
		assert.Equal(t, denied, c.Do(call), call)
	}
	for call, reply := range map[string]string{
		"RL.USAGE ann login":                                                "*1 *16 $4 name $5 login …",
		"RL.USAGE 10.1.2.9 tokens":                                          "*1 *16 $4 name $6 tokens …",
		"RL.SETTLE CHECK ann login COST 1 ID a":                             "*1 *4 :1 :1 :1 :0",
		"RL.UNBAN ann login":                                                ":0",
		"RL.POLICY IDS login COUNT 1000":                                    "*2 $1 0 *1 *8 $2 id $3 ann …",
		"RL.BANNED COUNT 1000":                                              "*2 $1 0 *0",
		"COMMAND GETKEYS RL.SETTLE k 1 j 2 ID a":                            "*2 $1 k $1 j",
		"COMMAND GETKEYS RL.SETTLE CHECK 1 ID a":                            "*1 $5 CHECK",
		"COMMAND GETKEYS RL.CHECK ann a b COST 1":                           "*1 $3 ann",
		"COMMAND GETKEYS RL.UNBAN ann a":                                    "*1 $3 ann",
		"COMMAND GETKEYS RL.CHARGE k SLIDE 5 1m 1":                          "*1 $1 k",
		"COMMAND GETKEYS RL.SETTLE CHECK ann requests tokens COST 1 2 ID a": "*1 $3 ann",
		"COMMAND GETKEYSANDFLAGS RL.SETTLE CHECK ann a COST 1 ID a":         "*1 *2 $3 ann *3 +RW +access +update",
	} {
		got := c.Do(call)
		if prefix, cut := strings.CutSuffix(reply, "…"); cut {
			assert.Truef(t, strings.HasPrefix(got, prefix), "%s: %s", call, got)
			continue
		}
		assert.Equal(t, reply, got, call)
	}
	for call, key := range map[string]string{
		"RL.SETTLE CHECK ann a COST 1 ID a": "ann", "RL.SETTLE k 1 ID a": "k", "RL.CHECK ann a": "ann",
	} {
		p := command.Prepare(bytes.Fields([]byte(call)))
		assert.Equal(t, key, string(p.NamedKey()), "clients of a cluster choose a node by it")
	}
	assert.Contains(t, admin.Do("RL.BANNED COUNT 1000"), "$3 bob")
	assert.Contains(t, admin.Do("RL.POLICY IDS login COUNT 1000"), "$3 bob")
}
