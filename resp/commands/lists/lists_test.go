package lists_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command/commandtest"
	_ "rlserver/resp/commands/keys"
	_ "rlserver/resp/commands/lists"
	_ "rlserver/resp/commands/sets"
)

// check runs calls one after the other, and compares their replies, which Redis 7.0.15 has given.
func check(t *testing.T, calls [][2]string) {
	t.Helper()
	r := commandtest.New(t)
	for _, call := range calls {
		assert.Equal(t, call[1], r.Do(call[0]), call[0])
	}
}

func TestElementsAtBothEnds(t *testing.T) {
	check(t, [][2]string{
		{"RPUSH l b c", ":2"},
		{"LPUSH l a z", ":4"},
		{"LRANGE l 0 -1", "*4 $1 z $1 a $1 b $1 c"},
		{"LPOP l", "$1 z"},
		{"RPOP l 2", "*2 $1 c $1 b"},
		{"LLEN l", ":1"},
		{"LPUSHX missing x", ":0"},
		{"RPUSHX l d e", ":3"},
		{"LINDEX l -1", "$1 e"},
		{"LINDEX l 9", "$-1"},
		{"LPOP missing 1", "*-1"},
		{"LPOP missing", "$-1"},
		{"RPOP l -1", "-ERR value is out of range, must be positive"},
		{"LPOP l 100", "*3 $1 a $1 d $1 e"},
		{"EXISTS l", ":0"},
	})
}

func TestElementsInTheMiddle(t *testing.T) {
	check(t, [][2]string{
		{"RPUSH l a b c b a", ":5"},
		{"LSET l 1 B", "+OK"},
		{"LSET l 5 x", "-ERR index out of range"},
		{"LSET missing 0 x", "-ERR no such key"},
		{"LINSERT l BEFORE c x", ":6"},
		{"LINSERT l AFTER none x", ":-1"},
		{"LPOS l a RANK -1", ":5"},
		// As Redis since 7.2; 7.0.15 finds all elements.
		{"LPOS l a RANK -9223372036854775808",
			"-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"},
		{"LPOS l a COUNT 0", "*2 :0 :5"},
		{"LREM l -1 a", ":1"},
		{"LTRIM l 1 -2", "+OK"},
		{"LRANGE l 0 -1", "*3 $1 B $1 x $1 c"},
		{"LTRIM l 5 9", "+OK"},
		{"LLEN l", ":0"},
	})
}

func TestElementsBetweenLists(t *testing.T) {
	check(t, [][2]string{
		{"RPUSH l a b c", ":3"},
		{"LMOVE l m LEFT RIGHT", "$1 a"},
		{"RPOPLPUSH l l", "$1 c"},
		{"LRANGE l 0 -1", "*2 $1 c $1 b"},
		{"LMPOP 2 none l RIGHT COUNT 5", "*2 $1 l *2 $1 b $1 c"},
		{"LMOVE l m LEFT UP", "-ERR syntax error"},
		{"LMOVE l m LEFT LEFT", "$-1"},
		{"SADD s 1", ":1"},
		{"LMOVE m s LEFT LEFT", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"LLEN s", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
	})
}
