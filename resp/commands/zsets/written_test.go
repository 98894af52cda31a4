package zsets_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// A log can have more hits than would fit in memory as members. Commands that need few of them
// work, and the others return an error.
func TestHitsThatDoNotFitInMemory(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	e, tx, c := ts.Engine, ts.Engine.NewTx(), ts.Dial()
	k := e.Key([]byte("log"))
	for i := range int64(1000) {
		tx.Begin(commandtest.Start+i/100, 0, []engine.Key{k}, true)
		d, err := tx.Slide(k, []limit.Window{{Limit: 1 << 40, Length: 1 << 40}}, 1_000_000, nil)
		require.True(t, err == nil && d.Allowed)
		tx.End()
	}
	first := strings.Fields(c.Do("ZRANGE log 0 0"))[2]
	const many = "-ERR the log has more than 2097152 hits, which is too many to write out at once"
	for _, step := range [][2]string{
		{"ZCARD log", ":1000000000"},
		{"ZRANK log " + first, ":0"},
		{"ZCOUNT log (1 +inf", ":1000000000"},
		{"ZREVRANGE log 999999999 -1", "*1 $15 " + first},
		{"ZADD few 1 a", ":1"},
		{"ZUNIONSTORE to 2 log few", many},
		{"ZINTER 2 log few", many},
		{"ZDIFF 2 few log", many},
		{"ZINTERCARD 2 few log", many},
		{"ZRANGESTORE to log 0 -1", many},
		{"ZRANGESTORE to log 5 6", ":2"},
		{"ZRANDMEMBER log 500000000", many},
		{"SORT log BY none", many},
		{"ZSCAN log 0", many},
		{"DUMP log", many},
		{"COPY log twin", ":1"},
		{"ZREM twin " + first, ":1"},
		{"ZREMRANGEBYRANK twin 1 -2", ":999999997"},
		{"ZCARD twin", ":2"},
		{"EXISTS to log few", ":3"},
	} {
		assert.Equal(t, step[1], c.Do(step[0]), step[0])
	}
	assert.Less(t, e.Weight(), int64(100_000))
}

// What one call with an id takes as members can exceed all memory. Each command answers at once, or
// refuses in words.
func TestCallsThatDoNotFitInMemory(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{"enable-debug-command": "yes"})
	c := ts.Dial()
	id := strings.Repeat("i", 60_000)
	const many = "-ERR the log has more than 2097152 hits, which is too many to write out at once"
	const most, all = "9007199254740991", " 9007199254740991"
	for _, name := range []string{"log", id} {
		for _, step := range [][2]string{
			{"DEL log", ""},
			{"RL.SLIDE log" + all + " 1h COST" + all + " ID " + name, "*5 :1 :" + most + " :0 :0 :3600000"},
			{"RL.SLIDE log" + all + " 1h COST 1 ID " + name, ""},
			{"RL.USAGE log", ""},
			{"ZCARD log", ":" + most},
			{"ZRANK log " + name, ":0"},
			{"ZRANK log " + name + ":2", ""},
			{"ZSCORE log " + name + ":3", ""},
			{"ZRANGE log 0 1", ""},
			{"ZRANGE log 4503599627370496 4503599627370497", ""},
			{"ZREVRANGE log 0 1", ""},
			{"ZCOUNT log -inf +inf", ":" + most},
			{"ZLEXCOUNT log - +", ":" + most},
			{"ZRANGEBYSCORE log -inf +inf LIMIT 4503599627370496 2", ""},
			{"ZRANGEBYLEX log [" + name + ":5 + LIMIT 0 2", ""},
			{"ZUNIONSTORE to 1 log", many},
			{"ZINTERCARD 1 log", many},
			{"ZRANGESTORE to log 0 -1", many},
			{"ZRANDMEMBER log 500000000", many},
			{"ZRANDMEMBER log", ""},
			{"SORT log BY none", many},
			{"ZSCAN log 0", many},
			{"DUMP log", many},
			{"OBJECT ENCODING log", "$8 skiplist"},
			{"MEMORY USAGE log", ""},
			{"COPY log twin", ":1"},
			{"RENAME twin other", "+OK"},
			{"ZADD other 5 " + name + ":7", ":0"},
			{"ZREM other " + name + " " + name + ":9", ":2"},
			{"RL.REFUND other 1000 ID " + name, ":0"},
			{"RL.REFUND log 4503599627370496 ID " + name, ":4503599627370496"},
			{"RL.REFUND log 10", ":10"},
			{"ZREMRANGEBYRANK other 10 -11", ":9007199254740969"},
			{"ZCARD other", ":20"},
			{"ZPOPMIN other", ""},
			{"ZREMRANGEBYSCORE other 6 +inf", ":19"},
			{"DEBUG DIGEST", ""},
			{"DEBUG RELOAD", "+OK"},
			{"ZCARD log", ":4503599627370485"},
			{"DEL other to", ""},
		} {
			answer := c.Do(step[0])
			label := step[0][:min(len(step[0]), 60)]
			assert.False(t, step[1] == "" && strings.HasPrefix(answer, "-ERR"), "%s: %.80s", label, answer)
			if step[1] != "" {
				assert.Equal(t, step[1], answer, label)
			}
		}
	}
	assert.Less(t, ts.Engine.Weight(), int64(1_000_000))
}
