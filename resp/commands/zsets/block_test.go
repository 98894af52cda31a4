package zsets_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// Cases that Redis' own suite (integration/conformance) lacks. Redis 7.0.15 replies the same,
// except to commands that only this server has.
func TestBlockingPops(t *testing.T) {
	for _, step := range []struct {
		name  string
		waits []string // one client each, in order
		calls string
		want  []string
	}{
		{"in the order of the calls, until there are no elements left",
			[]string{"BZPOPMIN z 0", "BZPOPMAX z 0", "BZMPOP 0 1 z MIN COUNT 5", "BZPOPMIN z 0"},
			"ZADD z 1 a 2 b 3 c 4 d\nZADD z 5 e",
			[]string{"100 x :4", "100 x :1", "100 0 *3 $1 z $1 a $1 1", "100 1 *3 $1 z $1 d $1 4", "100 2 *2 $1 z " +
				"*2 *2 $1 b $1 2 *2 $1 c $1 3", "100 3 *3 $1 z $1 e $1 5"}},
		{"by the key that got an element", []string{"BZPOPMIN a b a c 0"}, "ZADD b 1 x",
			[]string{"100 x :1", "100 0 *3 $1 b $1 x $1 1"}},
		{"after a transaction, by what it left", []string{"BZPOPMIN a b 0", "BZPOPMIN a 0"}, "MULTI\nZADD a 1 x\n" +
			"DEL a\nZADD b 1 y\nEXEC",
			[]string{"100 x +OK", "100 x +QUEUED", "100 x +QUEUED", "100 x +QUEUED", "100 x *3 :1 :1 :1",
				"100 0 *3 $1 b $1 y $1 1"}},
		{"by RENAME", []string{"BZPOPMIN z 0"}, "ZADD y 1 a\nRENAME y z",
			[]string{"100 x :1", "100 x +OK", "100 0 *3 $1 z $1 a $1 1"}},
		{"by COPY", []string{"BZPOPMIN z 0"}, "ZADD y 1 a\nCOPY y z\nEXISTS y z",
			[]string{"100 x :1", "100 x :1", "100 x :1", "100 0 *3 $1 z $1 a $1 1"}},
		{"by MOVE", []string{"SELECT 1\nBZPOPMIN z 0"}, "ZADD z 1 a\nMOVE z 1\nEXISTS z",
			[]string{"100 x :1", "100 x :1", "100 x :0", "100 0 *3 $1 z $1 a $1 1"}},
		{"by SWAPDB", []string{"SELECT 1\nBZPOPMIN z 0"}, "ZADD z 1 a\nSWAPDB 0 1\nSWAPDB 0 1\nEXISTS z",
			[]string{"100 x :1", "100 x +OK", "100 x +OK", "100 x :0", "100 0 *3 $1 z $1 a $1 1"}},
		{"by ZUNIONSTORE", []string{"BZPOPMIN z 0"}, "ZADD y 1 a 2 b\nZUNIONSTORE z 1 y\nZCARD z",
			[]string{"100 x :2", "100 x :2", "100 x :1", "100 0 *3 $1 z $1 a $1 1"}},
		{"by a limiter whose log is a sorted set", []string{"BZPOPMIN z 0"}, "RL.SLIDE z 1 1s\nEXISTS z",
			[]string{"100 x *5 :1 :1 :0 :0 :1000", "100 x :0", "100 0 *3 $1 z $14 946684800100-0 $12 946684800100"}},
		{"not by a key of another type", []string{"BZPOPMIN z 0"}, "SET z x\nDEL z\nFLUSHALL\nZADD z 1 a",
			[]string{"100 x +OK", "100 x :1", "100 x +OK", "100 x :1", "100 0 *3 $1 z $1 a $1 1"}},
		{"not in another database", []string{"BZPOPMIN z 0.5"}, "SELECT 1\nZADD z 1 a",
			[]string{"100 x +OK", "100 x :1", "500 0 *-1"}},
		{"until the timeout", []string{"BZPOPMAX a b 0.2", "BZMPOP 0.3 2 a b MAX", "HELLO 3\nBZPOPMIN a 0.15",
			"HELLO 3\nBZMPOP 0.25 1 a MIN"}, "SET a x",
			[]string{"100 x +OK", "150 2 _", "200 0 *-1", "250 3 _", "300 1 *-1"}},
		{"until the timeout, for lists", []string{"BLPOP a b 0.2", "BLMPOP 0.3 2 a b LEFT", "BRPOPLPUSH a b 0.25",
			"HELLO 3\nBRPOP a 0.15", "HELLO 3\nBLMOVE a b LEFT LEFT 0.35"}, "SET a x",
			[]string{"100 x +OK", "150 3 _", "200 0 *-1", "250 2 *-1", "300 1 *-1", "350 4 _"}},
		{"in RESP3", []string{"HELLO 3\nBZPOPMAX z 0", "HELLO 3\nBZMPOP 0 1 z MIN"}, "ZADD z 1 a 2 b",
			[]string{"100 x :2", "100 0 *3 $1 z $1 b ,2", "100 1 *2 $1 z *1 *2 $1 a ,1"}},
		{"an error is returned at once",
			[]string{"SET s x\nBZPOPMIN z s 0", "BZPOPMIN z inf", "BZPOPMIN z -1", "BZPOPMIN z nan",
				"BZMPOP x 1 z MIN"}, "PING",
			[]string{"100 x +PONG"}},
	} {
		t.Run(step.name, func(t *testing.T) {
			resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
				for i, wait := range step.waits {
					b.Calls(string(rune('0'+i)), wait)
				}
				b.Replies()
				b.PassUntil(100)
				b.Calls("x", step.calls)
				b.PassUntil(1000)
				assert.ElementsMatch(t, step.want, b.Replies())
			})
		})
	}
}

func TestBlockingPopsThatDoNotBlock(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"SET s x", "+OK"},
		{"ZADD z 1 a 2 b 3 c", ":3"},
		{"BZPOPMIN none z 0", "*3 $1 z $1 a $1 1"},
		{"BZPOPMAX z s 0", "*3 $1 z $1 c $1 3"},
		{"BZPOPMIN s z 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"BZPOPMIN none s 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"BZMPOP 0 2 none z MAX COUNT 10", "*2 $1 z *1 *2 $1 b $1 2"},
		{"BZPOPMIN z", "-ERR wrong number of arguments for 'bzpopmin' command"},
		{"BZPOPMIN z x", "-ERR timeout is not a float or out of range"},
		{"BZPOPMIN z nan", "-ERR timeout is not a float or out of range"},
		{"BZPOPMIN z -1", "-ERR timeout is negative"},
		{"BZPOPMIN z inf", "-ERR timeout is negative"},
		{"BZPOPMIN z 1e300", "-ERR timeout is negative"},
		{"BZMPOP x 1 z MIN", "-ERR timeout is not a float or out of range"},
		{"BZMPOP x 0 z MIN", "-ERR numkeys should be greater than 0"},
		{"BZMPOP -1 1 z MIN", "-ERR timeout is negative"},
		{"BZMPOP 0 1 z MIN COUNT", "-ERR syntax error"},
		{"BZMPOP 0 2 z MIN", "-ERR syntax error"},
	})
}
