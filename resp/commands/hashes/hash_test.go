package hashes_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command/commandtest"
	_ "rlserver/resp/commands/hashes"
)

// check runs calls one after the other, and compares their replies.
func check(t *testing.T, r *commandtest.Runner, calls [][2]string) {
	t.Helper()
	for _, call := range calls {
		assert.Equal(t, call[1], r.Do(call[0]), call[0])
	}
}

func TestFields(t *testing.T) {
	check(t, commandtest.New(t), [][2]string{
		{"HSET h a 1 b 2", ":2"},
		{"HSET h a 3", ":0"},
		{"HMGET h a x b", "*3 $1 3 $-1 $1 2"},
		{"HLEN h", ":2"},
		{"HDEL h a b c", ":2"},
		{"HEXISTS h a", ":0"},
		{"HGETALL h", "*0"},
	})
}

func TestHashErrorsChangeNothing(t *testing.T) {
	check(t, commandtest.New(t), [][2]string{
		{"HSET h a 1 b", "-ERR wrong number of arguments for 'hset' command"},
		{"HSET h a x", ":1"},
		{"HINCRBY h a 1", "-ERR hash value is not an integer"},
		{"HGET h a", "$1 x"},
		{"HINCRBY h n 5", ":5"},
		{"HGET h n", "$1 5"},
	})
}
