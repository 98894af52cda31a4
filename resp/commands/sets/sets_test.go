package sets_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command/commandtest"
	_ "rlserver/resp/commands/keys"
	_ "rlserver/resp/commands/lists"
	_ "rlserver/resp/commands/sets"
	_ "rlserver/resp/commands/str"
)

// check runs calls one after the other, and compares their replies, which Redis 7.0.15 has given.
func check(t *testing.T, calls [][2]string) {
	t.Helper()
	r := commandtest.New(t)
	for _, call := range calls {
		assert.Equal(t, call[1], r.Do(call[0]), call[0])
	}
}

func TestMembers(t *testing.T) {
	check(t, [][2]string{
		{"SADD s a b a", ":2"},
		{"SADD s b c", ":1"},
		{"SCARD s", ":3"},
		{"SISMEMBER s a", ":1"},
		{"SMISMEMBER s a x", "*2 :1 :0"},
		{"SREM s a x", ":1"},
		{"SMOVE s t b", ":1"},
		{"SMOVE s t b", ":0"},
		{"SMEMBERS t", "*1 $1 b"},
		{"SPOP t 0", "*0"},
		{"SPOP t 5", "*1 $1 b"},
		{"SPOP t", "$-1"},
		{"SRANDMEMBER t", "$-1"},
		{"SRANDMEMBER s 5", "*1 $1 c"},
		{"SPOP s -1", "-ERR value is out of range, must be positive"},
		{"SSCAN missing 0 COUNT x", "*2 $1 0 *0"},
		{"LLEN s", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
	})
}

func TestCombinedSets(t *testing.T) {
	check(t, [][2]string{
		{"SADD a 1 2 3", ":3"},
		{"SADD b 3 2 9", ":3"},
		{"SINTER a b", "*2 $1 2 $1 3"},
		{"SUNION a b", "*4 $1 1 $1 2 $1 3 $1 9"},
		{"SDIFF a b", "*1 $1 1"},
		{"SDIFF a missing", "*3 $1 1 $1 2 $1 3"},
		{"SINTER a missing", "*0"},
		{"SINTERCARD 2 a b LIMIT 1", ":1"},
		{"SINTERCARD 2 a b LIMIT -1", "-ERR LIMIT can't be negative"},
		{"SINTERCARD 0 a", "-ERR numkeys should be greater than 0"},
		{"SINTERCARD 3 a b", "-ERR Number of keys can't be greater than number of args"},
	})
}

func TestStoreReplacesItsDestination(t *testing.T) {
	check(t, [][2]string{
		{"SADD a 1 2 3", ":3"},
		{"SADD b 3 2 9", ":3"},
		{"SET d x", "+OK"},
		{"SUNIONSTORE d a b", ":4"},
		{"SINTERSTORE a a b", ":2"},
		{"SMEMBERS a", "*2 $1 2 $1 3"},
		{"SDIFFSTORE a a b", ":0"},
		{"EXISTS a", ":0"},
		{"RPUSH l x", ":1"},
		{"SUNIONSTORE d b l", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
	})
}
