package zsets_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command/commandtest"
	_ "rlserver/resp/commands/zsets"
)

// check runs calls one after the other, and compares their replies.
func check(t *testing.T, r *commandtest.Runner, calls [][2]string) {
	t.Helper()
	for _, call := range calls {
		assert.Equal(t, call[1], r.Do(call[0]), call[0])
	}
}

func TestMembersByScore(t *testing.T) {
	check(t, commandtest.New(t), [][2]string{
		{"ZADD z 1 a 2 b 3 c", ":3"},
		{"ZADD z GT CH 0 a 5 b", ":1"},
		{"ZRANGE z 0 -1", "*3 $1 a $1 c $1 b"},
		{"ZRANGEBYSCORE z (1 3", "*1 $1 c"},
		{"ZRANK z b", ":2"},
		{"ZPOPMIN z", "*2 $1 a $1 1"},
		{"ZADD z NX XX 1 a", "-ERR XX and NX options at the same time are not compatible"},
		{"ZADD z 1 a nan b", "-ERR value is not a valid float"},
		{"ZCARD z", ":2"},
	})
}

func TestBlockingPopWaitsForMembers(t *testing.T) {
	r := commandtest.New(t)
	assert.Equal(t, commandtest.Waits, r.Do("BZPOPMIN z 0"))
	r.Do("ZADD z 1 a")
	assert.Equal(t, "*3 $1 z $1 a $1 1", r.Do("BZPOPMIN z 0"))
}

func TestStoreReplacesItsDestination(t *testing.T) {
	check(t, commandtest.New(t), [][2]string{
		{"ZADD a 1 x 2 y", ":2"},
		{"ZADD b 10 y 20 z", ":2"},
		{"ZUNIONSTORE d 2 a b", ":3"},
		{"ZSCORE d y", "$2 12"},
		{"ZINTERSTORE d 2 a missing", ":0"},
		{"ZCARD d", ":0"},
	})
}
