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
