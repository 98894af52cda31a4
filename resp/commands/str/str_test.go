package str_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command/commandtest"
	_ "rlserver/resp/commands/str"
)

// check runs calls one after the other, and compares their replies.
func check(t *testing.T, r *commandtest.Runner, calls [][2]string) {
	t.Helper()
	for _, call := range calls {
		assert.Equal(t, call[1], r.Do(call[0]), call[0])
	}
}

func TestSetConditions(t *testing.T) {
	check(t, commandtest.New(t), [][2]string{
		{"SET k a NX", "+OK"},
		{"SET k b NX", "$-1"},
		{"SET k b XX GET", "$1 a"},
		{"GETRANGE k 0 -1", "$1 b"},
		{"APPEND k cd", ":3"},
		{"STRLEN k", ":3"},
		{"SET k x NX XX", "-ERR syntax error"},
		{"GET k", "$3 bcd"},
	})
}

func TestDeadlineOfSet(t *testing.T) {
	r := commandtest.New(t)
	check(t, r, [][2]string{{"SET k v PX 1000", "+OK"}, {"GET k", "$1 v"}})
	r.Advance(1000)
	assert.Equal(t, "$1 v", r.Do("GET k"))
	r.Advance(1)
	assert.Equal(t, "$-1", r.Do("GET k"))
}

func TestNumbers(t *testing.T) {
	check(t, commandtest.New(t), [][2]string{
		{"INCR n", ":1"},
		{"INCRBY n 9223372036854775806", ":9223372036854775807"},
		{"INCR n", "-ERR increment or decrement would overflow"},
		{"GET n", "$19 9223372036854775807"},
		{"SET n x", "+OK"},
		{"DECR n", "-ERR value is not an integer or out of range"},
	})
}

func TestBits(t *testing.T) {
	check(t, commandtest.New(t), [][2]string{
		{"SETBIT b 9 1", ":0"},
		{"STRLEN b", ":2"},
		{"BITCOUNT b", ":1"},
		{"BITPOS b 1", ":9"},
		{"GETBIT b 100", ":0"},
		{"SETBIT b 1 2", "-ERR bit is not an integer or out of range"},
	})
}
