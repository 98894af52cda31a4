package keys_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command/commandtest"
	_ "rlserver/resp/commands/keys"
	_ "rlserver/resp/commands/str"
)

// check runs calls one after the other, and compares their replies.
func check(t *testing.T, r *commandtest.Runner, calls [][2]string) {
	t.Helper()
	for _, call := range calls {
		assert.Equal(t, call[1], r.Do(call[0]), call[0])
	}
}

func TestDeadlines(t *testing.T) {
	r := commandtest.New(t)
	check(t, r, [][2]string{
		{"EXPIRE k 10", ":0"},
		{"SET k v", "+OK"},
		{"TTL k", ":-1"},
		{"PEXPIRE k 1500", ":1"},
		{"PTTL k", ":1500"},
		{"EXPIRE k 100 LT", ":0"},
		{"EXPIRE k 100 GT", ":1"},
		{"PERSIST k", ":1"},
		{"TTL missing", ":-2"},
		{"EXPIRE k 1", ":1"},
	})
	r.Advance(1000)
	assert.Equal(t, ":1", r.Do("EXISTS k"), "as in Redis, a key exists at its deadline")
	r.Advance(1)
	assert.Equal(t, ":0", r.Do("EXISTS k"))
}

func TestRenameAndCopy(t *testing.T) {
	check(t, commandtest.New(t), [][2]string{
		{"RENAME a b", "-ERR no such key"},
		{"SET a 1 EX 100", "+OK"},
		{"COPY a b", ":1"},
		{"COPY a b", ":0"},
		{"TTL b", ":100"},
		{"RENAMENX a b", ":0"},
		{"RENAME a c", "+OK"},
		{"EXISTS a b c c", ":3"},
		{"DEL b c x", ":2"},
	})
}
