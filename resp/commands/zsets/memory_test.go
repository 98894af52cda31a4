package zsets_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

const oom = "-OOM command not allowed when used memory > 'maxmemory'."

// A short call with a large result is refused if it does not fit in memory, also in a transaction,
// and changes nothing.
func TestLargeResultsNeedMemory(t *testing.T) {
	c := resptest.Start(t, config.Defaults{"maxmemory-policy": "noeviction"}).Dial()
	words := []string{"ZADD", "z"}
	for i := range 20_000 {
		words = append(words, strconv.Itoa(i), fmt.Sprint("member:", i))
	}
	require.Equal(t, ":20000", c.Send(words...))
	require.Equal(t, "+OK", c.Send("SET", "s", strings.Repeat("x", 1<<20)))
	require.Equal(t, ":20000", c.Do("ZUNIONSTORE old 1 z"))
	c.Check([]resptest.Answer{
		{"CONFIG SET maxmemory " + strconv.Itoa(c.InfoNumber("used_memory_dataset")+500_000), "+OK"},
		{"ZUNIONSTORE new 1 z", oom},
		{"ZINTERSTORE new 2 z z", oom},
		{"ZDIFFSTORE new 2 z missing", oom},
		{"ZRANGESTORE new z 0 -1", oom},
		{"COPY z new", oom},
		{"COPY s new", oom},
		{"EXISTS new", ":0"},
		{"ZRANGESTORE few z 0 9", ":10"},
		{"ZUNIONSTORE old 1 z", ":20000"}, // replaces a result of the same size
		{"COPY z old REPLACE", ":1"},
		{"MULTI", "+OK"},
		{"ZUNIONSTORE new 1 z", "+QUEUED"},
		{"SET k v", "+QUEUED"},
		{"EXEC", "*2 " + oom + " +OK"},
		{"DEL old", ":1"},
		{"ZUNIONSTORE new 1 z", ":20000"},
	})
}

// Keys are evicted for a result that a call stores, as they are for data that a client sends.
func TestLargeResultsEvict(t *testing.T) {
	c := resptest.Start(t, config.Defaults{"maxmemory-policy": "volatile-ttl"}).Dial()
	words := []string{"ZADD", "z"}
	for i := range 20_000 {
		words = append(words, strconv.Itoa(i), fmt.Sprint("member:", i))
	}
	require.Equal(t, ":20000", c.Send(words...))
	for i := range 2000 {
		require.Equal(t, "+OK", c.Send("SET", fmt.Sprint("key:", i), strings.Repeat("x", 1000), "EX", "1000"))
	}
	c.Check([]resptest.Answer{
		{"CONFIG SET maxmemory " + strconv.Itoa(c.InfoNumber("used_memory_dataset")+100_000), "+OK"},
		{"ZUNIONSTORE new 3 z z z", ":20000"},
		{"EXISTS z new", ":2"},
	})
	assert.Greater(t, c.InfoNumber("evicted_keys"), 500)
	assert.Less(t, c.InfoNumber("evicted_keys"), 1900)
}
