package keys_test

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/rdb"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// RESTORE brings back what DUMP returned, also for limiters, whose types Redis does not have.
func TestRestoreAfterDump(t *testing.T) {
	server := resptest.Start(t, config.Defaults{})
	client := server.Dial()
	for _, call := range [][]string{
		{"RL.TOKEN", "token", "10", "1", "1s", "COST", "3"}, {"RL.FIXED", "fixed", "10", "1h", "COST", "4"},
		{"RL.SLIDE", "slide", "10", "1m", "COST", "5"},
		{"SET", "string", "a\x00b"}, {"HSET", "hash", "f", "1", "g", ""},
		{"RPUSH", "list", "a", "", "a", "12"}, {"SADD", "set", "1", "a\x00"},
	} {
		client.SendWords(call...)
	}
	ask := map[string][]string{
		"token": {
			"RL.TOKEN",
			"token",
			"10",
			"1",
			"1s",
			"COST",
			"0",
		}, "fixed": {"RL.FIXED", "fixed", "10", "1h", "COST", "0"},
		"slide": {
			"RL.SLIDE",
			"slide",
			"10",
			"1m",
			"COST",
			"0",
		}, "string": {"GET", "string"}, "hash": {"HGETALL", "hash"},
		"list": {"LRANGE", "list", "0", "-1"}, "set": {"SMEMBERS", "set"},
	}
	for name, question := range ask {
		before, kind, ttl := client.SendWords(
			question...), client.SendWords(
			"TYPE",
			name,
		), client.SendWords("PTTL", name).(int64)
		payload := client.SendWords("DUMP", name).(string)
		client.SendWords("DEL", name)
		require.Equal(t, "OK", client.SendWords("RESTORE", name, fmt.Sprint(max(ttl, 0)), payload), name)
		assert.Equal(t, before, client.SendWords(question...), name)
		assert.Equal(t, kind, client.SendWords("TYPE", name), name)
		assert.Equal(t, ttl, client.SendWords("PTTL", name), name)
		assert.Equal(t, payload, client.SendWords("DUMP", name), name)
	}
}

func TestRestoreRefusesUnknownTypes(t *testing.T) {
	client := resptest.Start(t, config.Defaults{}).Dial()
	for kind, name := range map[byte]string{7: "module's value", 15: "stream"} {
		payload := string(rdb.AppendFooter([]byte{kind, 1, 1, 'a'}))
		assert.Equal(
			t,
			"ERR Bad data format: the payload holds a "+name+", which this server has no type for",
			client.SendWords("RESTORE", "k", "0", payload),
		)
	}
	for _, tokens := range []rdb.Numbers{{-1}, {0, 0, 0, 1 << 40}, {math.MaxInt64}, {0, 0, -1}, {0, 0, math.MaxInt64}} {
		payload := string(rdb.AppendFooter(rdb.AppendLimiter(nil, "rl.token", tokens)))
		assert.Equal(t, "ERR Bad data format", client.SendWords("RESTORE", "k", "0", payload))
	}
	assert.Equal(t, int64(0), client.SendWords("EXISTS", "k"))
}

// A payload decides how much RESTORE allocates. The amount is checked against maxmemory first,
// within a transaction as well.
func TestRestoreIsLimitedByMaxmemory(t *testing.T) {
	client := resptest.Start(t, config.Defaults{"maxmemory": "8388608", "maxmemory-policy": "noeviction"}).Dial()
	const oom = "OOM command not allowed when used memory > 'maxmemory'."
	many := rdb.AppendHash(nil, 60_000)
	for i := range 60_000 {
		many = rdb.AppendText(rdb.AppendText(many, strconv.Itoa(i)), "")
	}
	payload := string(rdb.AppendFooter(many))
	require.Less(t, len(payload), 1<<20)
	assert.Equal(t, oom, client.SendWords("RESTORE", "k", "0", payload))
	client.SendWords("MULTI")
	client.SendWords("RESTORE", "k", "0", payload)
	client.SendWords("RESTORE", "s", "0", string(rdb.AppendFooter(rdb.AppendString(nil, []byte("x")))))
	assert.Equal(t, []any{oom, "OK"}, client.SendWords("EXEC"))
	assert.Equal(t, int64(0), client.SendWords("EXISTS", "k"))
}

// A payload that was decoded for a call that then fails is not used by another call.
func TestRestoreUsesItsOwnPayload(t *testing.T) {
	client := resptest.Start(t, config.Defaults{}).Dial()
	one := string(rdb.AppendFooter(rdb.AppendString(nil, bytes.Repeat([]byte("1"), 20))))
	two := string(rdb.AppendFooter(rdb.AppendString(nil, bytes.Repeat([]byte("2"), 20))))
	client.SendWords("SET", "k", "old")
	assert.Equal(t, "BUSYKEY Target key name already exists.", client.SendWords("RESTORE", "k", "0", one))
	client.SendWords("MULTI")
	client.SendWords("RESTORE", "k", "0", two, "REPLACE")
	client.SendWords("EXEC")
	assert.Equal(t, "22222222222222222222", client.SendWords("GET", "k"))
	client.SendWords("RESTORE", "k", "0", one, "REPLACE")
	assert.Equal(t, "11111111111111111111", client.SendWords("GET", "k"))
}
