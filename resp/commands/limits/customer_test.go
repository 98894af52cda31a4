package limits_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func usageOf(name string, allowed, limit, remaining, retry, reset int) string {
	return fmt.Sprintf("*16 $%d name $%d %s $7 allowed :%d $5 limit :%d $9 remaining :%d $11 retry_after :%d "+
		"$11 reset_after :%d $4 held :0 $3 ban :0", 4, len(name), name, allowed, limit, remaining, retry, reset)
}

func TestOneCustomerAtAGlance(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Do("RL.POLICY SET calls SLIDE 2 1m")
	c.Do("RL.POLICY SET money TOKEN 100 100 1m")
	c.Do("RL.POLICY SET jobs LEASE 1 30s")
	c.Do("RL.POLICY SET trial FIXED 1 1h SHADOW")
	c.Do("RL.POLICY SET net FIXED 5 1h IP4 24")
	c.Do("RL.CHECK ann calls money jobs trial COST 2 30 1 2 ID a")
	calls, money := usageOf("calls", 0, 2, 0, 60000, 60000), usageOf("money", 1, 100, 70, 0, 18000)
	before := c.Do("DEBUG DIGEST")
	for _, step := range [][2]string{
		{"RL.USAGE ann calls money", "*2 " + calls + " " + money},
		{"RL.USAGE ann jobs", "*1 " + usageOf("jobs", 0, 1, 0, 30000, 30000)},
		{"RL.USAGE bob jobs", "*1 " + usageOf("jobs", 1, 1, 1, 0, 0)},
		{"RL.USAGE ann", "*5 " + calls + " " + usageOf("jobs", 0, 1, 0, 30000, 30000) + " " + money + " " +
			usageOf("net", 1, 5, 5, 0, 0) + " " + usageOf("trial", 1, 1, 1, 0, 0)},
		{"RL.USAGE ann calls other", "-ERR no such policy 'other'"},
		{"RL.USAGE {ann} calls", "-ERR the id of RL.CHECK must be 1 to 65536 bytes without { and }"},
		{"RL.RESET ann calls other", "-ERR no such policy 'other'"},
		{"RL.POLICY IDS other", "-ERR no such policy 'other'"},
		{"RL.POLICY IDS calls COUNT 0", "-ERR COUNT must be from 1 to 9007199254740991"},
		{"RL.POLICY IDS calls TYPE x", "-ERR syntax error"},
		{"RL.POLICY IDS calls CURSOR x", "-ERR invalid cursor"},
		{"RL.POLICY IDS calls COUNT 100000", "*2 $1 0 *1 *8 $2 id $3 ann $4 used :2 $5 limit :2 $4 held :0"},
		{"RL.POLICY IDS calls MATCH b* COUNT 100000", "*2 $1 0 *0"},
	} {
		assert.Equal(t, step[1], c.Do(step[0]), step[0])
	}
	assert.Equal(t, before, c.Do("DEBUG DIGEST"))
	assert.Equal(t, "*0", c.Do("RL.TOP"))
	assert.Contains(t, c.Do("RL.POLICY LIST"), "SLIDE 2 1m $8 admitted :1 $6 denied :0")

	c.Do("RL.CHECK 10.1.2.3 net")
	assert.Equal(t, "*1 "+usageOf("net", 1, 5, 4, 0, 3600000), c.Do("RL.USAGE 10.1.2.99 net"))
	assert.Equal(t, "*2 $1 0 *1 *8 $2 id $11 10.1.2.0/24 $4 used :1 $5 limit :5 $4 held :0",
		c.Do("RL.POLICY IDS net COUNT 100000"))
	assert.Equal(t, ":1", c.Do("RL.RESET 10.1.2.7"))
	assert.Equal(t, ":1", c.Do("RL.RESET ann calls"))
	assert.Equal(t, "*1 "+usageOf("calls", 1, 2, 2, 0, 0), c.Do("RL.USAGE ann calls"))
	assert.Equal(t, ":2", c.Do("RL.RESET ann"))
	assert.Equal(t, ":0", c.Do("RL.RESET ann"))

	c.Do("MULTI")
	c.Do("RL.CHECK eve calls")
	c.Do("RL.USAGE eve calls")
	c.Do("RL.POLICY IDS calls COUNT 100000")
	c.Do("RL.RESET eve")
	assert.Equal(t, "*4 *6 :1 :2 :1 :0 :60000 :0 *1 "+usageOf("calls", 1, 2, 1, 0, 60000)+
		" *2 $1 0 *1 *8 $2 id $3 eve $4 used :1 $5 limit :2 $4 held :0 :1", c.Do("EXEC"))
	c.Do("HELLO 3")
	assert.True(t, strings.HasPrefix(c.Do("RL.USAGE ann calls"), "*1 %8 $4 name $5 calls"))
}

func TestWithoutPoliciesNothingIsUsed(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	assert.Equal(t, "*0", c.Do("RL.USAGE ann"))
	assert.Equal(t, ":0", c.Do("RL.RESET ann"))
}

// Each id that has a key throughout is returned, however the walk is cut into steps.
func TestIDsAreWalkedInSteps(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	c.Do("RL.POLICY SET p TOKEN 9 9 1h")
	c.Do("RL.POLICY SET pp TOKEN 9 9 1h")
	want := map[string]bool{}
	for i := range 300 {
		id := fmt.Sprint("id-", i)
		want[id] = true
		c.Do("RL.CHECK " + id + " p")
		c.Do("RL.CHECK other-" + id + " pp")
		c.Do("SET p:" + id + " v")
	}
	c.Do("SET p:{text} v")
	each := regexp.MustCompile(`\$2 id \$\d+ (\S+) \$4 used :1 \$5 limit :9`)
	found, cursor, steps := map[string]bool{}, "0", 0
	for ok := true; ok; ok = cursor != "0" {
		reply := c.Do("RL.POLICY IDS p COUNT 7 CURSOR " + cursor)
		cursor = strings.Fields(reply)[2]
		for _, m := range each.FindAllStringSubmatch(reply, -1) {
			found[m[1]] = true
		}
		steps++
		require.Less(t, steps, 1000)
	}
	assert.Equal(t, want, found)
	assert.Greater(t, steps, 30)
}
