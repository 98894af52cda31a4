package limits_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command/commandtest"
)

// The laws of decisions for RL.CHECK, where policies change, ids lapse, ids are banned, or others
// write to the keys. A step "+5" lets 5 ms pass, NOW is the time in Unix ms.
func TestLawsOfChecks(t *testing.T) {
	for name, steps := range map[string][][2]string{
		"a hit later than the clock is not a lease": {
			{"RL.POLICY SET s SLIDE 3 1m", "+OK"},
			{"RL.CHECK u s COST 3", "*6 :1 :3 :0 :0 :60000 :0"},
			{"ZADD s:{u} NOW.7 m", ":1"},
			{"RL.CHECK u s COST 0", "*6 :0 :3 :0 :60000 :60001 :0"},
			{"RL.CHECK u s COST 4", "*6 :0 :3 :0 :-1 :60001 :0"},
			{"RL.CHECK u s", "*6 :0 :3 :0 :60000 :60001 :0"},
			{"ZCARD s:{u}", ":4"},
		},
		"a denied call leaves the count of another window": {
			{"RL.POLICY SET f FIXED 5 1h", "+OK"},
			{"RL.CHECK u f COST 4", "*6 :1 :5 :1 :0 :3600000 :0"},
			{"RL.POLICY SET f FIXED 5 40m FOR u", "+OK"},
			{"RL.CHECK u f COST 9", "*6 :0 :5 :5 :-1 :0 :0"},
			{"RL.CHECK u f COST 0", "*6 :1 :5 :5 :0 :0 :0"},
			{"EXISTS f:{u}", ":1"},
			{"RL.CHECK u f COST 5", "*6 :1 :5 :0 :0 :2400000 :0"},
			{"RL.CHECK u f", "*6 :0 :5 :0 :2400000 :2400000 :0"},
		},
		"the wrong type of another policy changes nothing": {
			{"RL.POLICY SET p TOKEN 5 1 1h", "+OK"},
			{"RL.POLICY SET r SLIDE 5 1h", "+OK"},
			{"ZADD p:{u} 1 m", ":1"},
			{"EXPIRE p:{u} 100", ":1"},
			{"SET r:{u} x", "+OK"},
			{"RL.CHECK u p r", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
			{"RL.CHECK u p COST 0", "*6 :1 :5 :5 :0 :0 :0"},
			{"ZCARD p:{u}", ":1"},
			{"RL.CHECK u p", "*6 :1 :5 :4 :0 :3600000 :0"},
			{"TYPE p:{u}", "+rl.token"},
		},
		"a ban replaces what another definition has left": {
			{"RL.POLICY SET p TOKEN 5 1 1h BAN 1 10m", "+OK"},
			{"ZADD p:{u} 1 m", ":1"},
			{"EXPIRE p:{u} 100", ":1"},
			{"RL.CHECK u p COST 6", "*6 :0 :5 :0 :-1 :600000 :0"},
			{"RL.CHECK u p", "*6 :0 :5 :0 :600000 :600000 :0"},
		},
		"a retry whose id lapses before its lease is free is another call": {
			{"RL.POLICY SET l LEASE 1 100ms", "+OK"},
			{"RL.POLICY SET s SLIDE 5 150ms", "+OK"},
			{"RL.POLICY SET t TOKEN 1 1 1h", "+OK"},
			{"RL.CHECK u l s t ID x", "*6 :1 :1 :0 :0 :3600000 :0"},
			{"+101", ""},
			{"RL.CHECK u l ID y", "*6 :1 :1 :0 :0 :100 :0"},
			{"+20", ""},
			{"RL.CHECK u l s t ID x", "*6 :0 :1 :0 :3599879 :3599879 :2"},
		},
		"a retry whose id lapses is denied by the new limit": {
			{"RL.POLICY SET s SLIDE 5 1s", "+OK"},
			{"RL.POLICY SET m SLIDE 5 1m", "+OK"},
			{"RL.POLICY SET t TOKEN 1 1 600ms", "+OK"},
			{"RL.CHECK u s ID x", "*6 :1 :5 :4 :0 :1000 :0"},
			{"+900", ""},
			{"RL.CHECK u s COST 3", "*6 :1 :5 :1 :0 :1000 :0"},
			{"RL.POLICY SET s SLIDE 2 1s", "+OK"},
			{"RL.CHECK u t", "*6 :1 :1 :0 :0 :600 :0"},
			{"+50", ""},
			{"RL.CHECK u s m t ID x", "*6 :0 :1 :0 :950 :950 :2"},
			{"+949", ""},
			{"RL.CHECK u s m t ID x", "*6 :0 :2 :0 :1 :1 :0"},
			{"+1", ""},
			{"RL.CHECK u s m t ID x", "*6 :1 :1 :0 :0 :60000 :2"},
		},
		"a retry whose id lapses is denied by the limit, also where there was a reservation": {
			{"RL.POLICY SET a SLIDE 2 1s", "+OK"},
			{"RL.POLICY SET d SLIDE 1 150ms", "+OK"},
			{"RL.CHECK u a ID y HOLD 50ms", "*6 :1 :2 :1 :0 :50 :0"},
			{"+50", ""},
			{"RL.CHECK u a ID y", "*6 :1 :2 :1 :0 :1000 :0"},
			{"+600", ""},
			{"RL.CHECK u a", "*6 :1 :2 :0 :0 :1000 :0"},
			{"+300", ""},
			{"RL.CHECK u d", "*6 :1 :1 :0 :0 :150 :0"},
			{"+1", ""},
			{"RL.CHECK u a d COST 2 1 ID y", "*6 :0 :1 :0 :699 :699 :1"},
			{"+698", ""},
			{"RL.CHECK u a d COST 2 1 ID y", "*6 :0 :2 :1 :1 :1 :0"},
			{"+1", ""},
			{"RL.CHECK u a d COST 2 1 ID y", "*6 :1 :2 :0 :0 :1000 :0"},
		},
		"a retry is not paid twice beside a ban of a policy that is not asked": {
			{"RL.POLICY SET b SLIDE 1 1m BAN 1 10m", "+OK"},
			{"RL.POLICY SET s SLIDE 5 1m", "+OK"},
			{"RL.POLICY SET t TOKEN 5 1 1h", "+OK"},
			{"RL.CHECK u s t b COST 1 1 0 ID x", "*6 :1 :1 :1 :0 :3600000 :2"},
			{"RL.CHECK u b COST 2", "*6 :0 :1 :0 :-1 :600000 :0"},
			{"RL.CHECK u s t b COST 1 1 0 ID x", "*6 :1 :1 :0 :0 :3600000 :2"},
			{"RL.CHECK u t COST 0", "*6 :1 :5 :4 :0 :3600000 :0"},
		},
		"a call that a ban denies resets nothing": {
			{"RL.SLIDE k 1 1m BAN 1 10m", "*5 :1 :1 :0 :0 :60000"},
			{"RL.SLIDE k 1 1m BAN 1 10m", "*5 :0 :1 :0 :600000 :600000"},
			{"+570000", ""},
			{"RL.SLIDE k 1 1m BAN 1 10m", "*5 :0 :1 :0 :30000 :30000"},
			{"RL.SLIDE k 1 1m BAN 1 10m COST 0", "*5 :0 :1 :0 :30000 :30000"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := commandtest.New(t)
			now := int64(commandtest.Start)
			for _, step := range steps {
				if ms, is := strings.CutPrefix(step[0], "+"); is {
					n, _ := strconv.ParseInt(ms, 10, 64)
					r.Advance(n)
					now += n
					continue
				}
				assert.Equal(t, step[1], r.Do(strings.ReplaceAll(step[0], "NOW", fmt.Sprint(now))), step[0])
			}
		})
	}
}
