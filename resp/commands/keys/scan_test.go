package keys_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/glob"
	"rlserver/resp/resptest"
)

// The replies are those of Redis 7.0.15.
func TestScanReplies(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
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

// A complete scan returns every key that exists throughout, once. COUNT sets the approximate number
// of steps.
func TestScanCursors(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	const n = 1000
	for i := range n {
		require.Equal(t, "+OK", c.Send("SET", fmt.Sprint("key ", i), "v"))
	}
	var seen []string
	cursor, calls := "0", 0
	for ok := true; ok; ok = cursor != "0" {
		words := strings.Split(c.Send("SCAN", cursor, "COUNT", "50", "MATCH", "key *5"), " ")
		cursor = words[2] // *2 $n cursor *n …
		for i := 4; i < len(words); i += 3 {
			seen = append(seen, words[i+1]+" "+words[i+2])
		}
		calls++
		require.Less(t, calls, n)
	}
	assert.Len(t, seen, n/10)
	slices.Sort(seen)
	assert.Len(t, slices.Compact(seen), n/10)
	assert.InDelta(t, n/50, calls, 10)
}

// The empty string is a key. Of the patterns with a star, only * itself matches it, as in Redis.
func TestScanFindsTheEmptyKey(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	c.Check([]resptest.Answer{
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

// Each command that takes a pattern refuses one that takes too long to match.
func TestHostilePatterns(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	long, pattern := strings.Repeat("a", 1<<17), "*"+strings.Repeat("?", 50_000)+"b*"
	require.Equal(t, "+OK", c.Send("SET", long, "v"))
	require.Equal(t, ":1", c.Send("HSET", "h", long, "v"))
	require.Equal(t, ":1", c.Send("ZADD", "z", "1", long))
	for _, call := range [][]string{
		{"KEYS", pattern}, {"SCAN", "0", "COUNT", "1000", "MATCH", pattern},
		{"HSCAN", "h", "0", "MATCH", pattern}, {"ZSCAN", "z", "0", "MATCH", pattern},
	} {
		assert.Equal(t, "-"+string(glob.ErrTooComplex), c.Send(call...), call[0])
	}
	class := "[" + strings.Repeat("x", 1<<20) + "]"
	assert.Equal(t, "-"+string(glob.ErrTooComplex), c.Send("CONFIG", "GET", "*"+class+"*"))
	assert.Equal(t, "-"+string(glob.ErrTooComplex), c.Send("COMMAND", "LIST", "FILTERBY", "PATTERN", "*"+class+"*"))
}

// A call visits a bounded number of elements, whatever COUNT says.
func TestScanCountIsLimited(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	for i := range 10_000 {
		fmt.Fprintf(c, "HSET h f%d v\r\nZADD z %d m%d\r\n", i, i%7, i)
	}
	for range 20_000 {
		require.Equal(t, ":1 ", c.Read())
	}
	for _, call := range [][]string{{"HSCAN", "h"}, {"ZSCAN", "z"}} {
		seen, calls := make(map[string]bool), 0
		for cursor, more := "0", true; more; more = cursor != "0" {
			words := strings.Split(c.Send(call[0], call[1], cursor, "COUNT", "1000000"), " ")
			cursor, calls = words[2], calls+1
			for i := 5; i < len(words); i += 4 {
				seen[words[i]] = true
			}
		}
		assert.Len(t, seen, 10_000, call[0])
		assert.GreaterOrEqual(t, calls, 3, call[0])
	}
}
