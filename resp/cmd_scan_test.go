package resp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The replies are those of Redis 7.0.15.
func TestScanReplies(t *testing.T) {
	converse(t, startServer(t, Defaults{}).dial(), []exchange{
		{"SCAN 0", "*2 $1 0 *0"},
		{"KEYS *", "*0"},
		{"MSET k1 1 k2 2 other 3", "+OK"},
		{"HSET h f v", ":1"},
		{"KEYS k1", "*1 $2 k1"},
		{"KEYS ?", "*1 $1 h"},
		{"KEYS nothing", "*0"},
		{"KEYS *th*", "*1 $5 other"},
		{"SCAN 0 MATCH k1 COUNT 1000", "*2 $1 0 *1 $2 k1"},
		{"SCAN 0 COUNT 1000 MATCH * TYPE hash", "*2 $1 0 *1 $1 h"},
		{"SCAN 0 TYPE HASH MATCH x COUNT 1000", "*2 $1 0 *0"},
		{"SCAN 0 TYPE list", "*2 $1 0 *0"},
		{"SCAN 0 TYPE none COUNT 1000", "*2 $1 0 *0"},
		{"SCAN 0 TYPE nonsense COUNT 1000", "*2 $1 0 *0"},
		{"SCAN +0 MATCH k1 COUNT 1000", "*2 $1 0 *1 $2 k1"},
		{"SCAN x COUNT x", "-ERR invalid cursor"},
		{"SCAN 1.5", "-ERR invalid cursor"},
		{"SCAN -", "-ERR invalid cursor"},
		{"SCAN 18446744073709551616", "-ERR invalid cursor"},
		{"SCAN 0 COUNT x", "-ERR value is not an integer or out of range"},
		{"SCAN 0 COUNT 0", "-ERR syntax error"},
		{"SCAN 0 COUNT -1", "-ERR syntax error"},
		{"SCAN 0 COUNT", "-ERR syntax error"},
		{"SCAN 0 MATCH", "-ERR syntax error"},
		{"SCAN 0 TYPE", "-ERR syntax error"},
		{"SCAN 0 nonsense", "-ERR syntax error"},
		{"SCAN 0 COUNT x nonsense", "-ERR value is not an integer or out of range"},
		{"SCAN", "-ERR wrong number of arguments for 'scan' command"},
		{"KEYS", "-ERR wrong number of arguments for 'keys' command"},
		{"KEYS a b", "-ERR wrong number of arguments for 'keys' command"},
	})
}

// A scan that follows its cursors meets every key that was there all the time, once; COUNT says in how many steps, more or less.
func TestScanCursors(t *testing.T) {
	ts := startServer(t, Defaults{})
	c := ts.dial()
	const n = 1000
	for i := range n {
		require.Equal(t, "+OK", c.send("SET", fmt.Sprint("key ", i), "v"))
	}
	var met []string
	cursor, calls := "0", 0
	for ok := true; ok; ok = cursor != "0" {
		words := strings.Split(c.send("SCAN", cursor, "COUNT", "50", "MATCH", "key *5"), " ")
		cursor = words[2] // *2 $n cursor *n …
		for i := 4; i < len(words); i += 3 {
			met = append(met, words[i+1]+" "+words[i+2])
		}
		calls++
		require.Less(t, calls, n)
	}
	assert.Len(t, met, n/10)
	slices.Sort(met)
	assert.Len(t, slices.Compact(met), n/10)
	assert.InDelta(t, n/50, calls, 10)
}

// An empty name is a name: a star finds it when it is the whole pattern, and no other pattern with a star does, as in Redis.
func TestEmptyName(t *testing.T) {
	c := startServer(t, Defaults{}).dial()
	converse(t, c, []exchange{
		{`SET "" v`, "+OK"},
		{"KEYS *", "*1 $0 "},
		{"KEYS **", "*0"},
		{`KEYS ""`, "*1 $0 "},
		{"SCAN 0 MATCH *", "*2 $1 0 *1 $0 "},
		{"SCAN 0 MATCH **", "*2 $1 0 *0"},
		{`SCAN ""`, "*2 $1 0 *1 $0 "},
		{`DEL ""`, ":1"},
	})
}
