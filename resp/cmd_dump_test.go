package resp

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
)

// sendWords sends words, which may hold any bytes, and returns the reply.
func (c *testClient) sendWords(words ...string) any {
	fmt.Fprint(c, frame(words...))
	return readValue(c.t, c.r)
}

// RESTORE brings back what DUMP returned, also for limiters, whose types Redis does not have.
func TestRestoreAfterDump(t *testing.T) {
	server := startServer(t, config.Defaults{})
	client := server.dial()
	for _, call := range [][]string{
		{"RL.TOKEN", "token", "10", "1", "1s", "COST", "3"}, {"RL.FIXED", "fixed", "10", "1h", "COST", "4"},
		{"RL.SLIDE", "slide", "10", "1m", "COST", "5"},
		{"SET", "string", "a\x00b"}, {"HSET", "hash", "f", "1", "g", ""},
		{"RPUSH", "list", "a", "", "a", "12"}, {"SADD", "set", "1", "a\x00"},
	} {
		client.sendWords(call...)
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
		before, kind, ttl := client.sendWords(
			question...), client.sendWords(
			"TYPE",
			name,
		), client.sendWords("PTTL", name).(int64)
		payload := client.sendWords("DUMP", name).(string)
		client.sendWords("DEL", name)
		require.Equal(t, "OK", client.sendWords("RESTORE", name, fmt.Sprint(max(ttl, 0)), payload), name)
		assert.Equal(t, before, client.sendWords(question...), name)
		assert.Equal(t, kind, client.sendWords("TYPE", name), name)
		assert.Equal(t, ttl, client.sendWords("PTTL", name), name)
		assert.Equal(t, payload, client.sendWords("DUMP", name), name)
	}
}

func TestRestoreRefusesUnknownTypes(t *testing.T) {
	client := startServer(t, config.Defaults{}).dial()
	for kind, name := range map[byte]string{7: "module's value", 15: "stream"} {
		payload := string(rdb.AppendFooter([]byte{kind, 1, 1, 'a'}))
		assert.Equal(
			t,
			"ERR Bad data format: the payload holds a "+name+", which this server has no type for",
			client.sendWords("RESTORE", "k", "0", payload),
		)
	}
	for _, tokens := range []rdb.Numbers{{-1}, {0, 0, 0, 1 << 40}, {math.MaxInt64}, {0, 0, -1}, {0, 0, math.MaxInt64}} {
		payload := string(rdb.AppendFooter(rdb.AppendLimiter(nil, "rl.token", tokens)))
		assert.Equal(t, "ERR Bad data format", client.sendWords("RESTORE", "k", "0", payload))
	}
	assert.Equal(t, int64(0), client.sendWords("EXISTS", "k"))
}

// A payload decides how much RESTORE allocates. The amount is checked against maxmemory first,
// within a transaction as well.
func TestRestoreIsLimitedByMaxmemory(t *testing.T) {
	client := startServer(t, config.Defaults{MaxMemory: 8 << 20, MemoryPolicy: "noeviction"}).dial()
	const oom = "OOM command not allowed when used memory > 'maxmemory'."
	many := rdb.AppendHash(nil, 60_000)
	for i := range 60_000 {
		many = rdb.AppendText(rdb.AppendText(many, strconv.Itoa(i)), "")
	}
	payload := string(rdb.AppendFooter(many))
	require.Less(t, len(payload), 1<<20)
	assert.Equal(t, oom, client.sendWords("RESTORE", "k", "0", payload))
	client.sendWords("MULTI")
	client.sendWords("RESTORE", "k", "0", payload)
	client.sendWords("RESTORE", "s", "0", string(rdb.AppendFooter(rdb.AppendString(nil, []byte("x")))))
	assert.Equal(t, []any{oom, "OK"}, client.sendWords("EXEC"))
	assert.Equal(t, int64(0), client.sendWords("EXISTS", "k"))
}

// A payload that was decoded for a call that then fails is not used by another call.
func TestRestoreUsesItsOwnPayload(t *testing.T) {
	client := startServer(t, config.Defaults{}).dial()
	one := string(rdb.AppendFooter(rdb.AppendString(nil, bytes.Repeat([]byte("1"), 20))))
	two := string(rdb.AppendFooter(rdb.AppendString(nil, bytes.Repeat([]byte("2"), 20))))
	client.sendWords("SET", "k", "old")
	assert.Equal(t, "BUSYKEY Target key name already exists.", client.sendWords("RESTORE", "k", "0", one))
	client.sendWords("MULTI")
	client.sendWords("RESTORE", "k", "0", two, "REPLACE")
	client.sendWords("EXEC")
	assert.Equal(t, "22222222222222222222", client.sendWords("GET", "k"))
	client.sendWords("RESTORE", "k", "0", one, "REPLACE")
	assert.Equal(t, "11111111111111111111", client.sendWords("GET", "k"))
}
