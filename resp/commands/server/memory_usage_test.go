package server_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestMemoryDiagnostics(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Check([]resptest.Answer{{"SET a 1", "+OK"}, {"SET b 1", "+OK"}, {"MEMORY PURGE", "+OK"}, {"MEMORY PURGE", "+OK"}})
	stats := c.Do("MEMORY STATS")
	assert.Regexp(t, ` \$10 keys\.count :2 \$18 keys\.bytes-per-key :[1-9]\d* \$13 dataset\.bytes :[1-9]`, stats)
	assert.NotRegexp(t, `allocated :0|resident :0|active :0|percentage \$1 0|ratio \$1 0`, stats)
	c.Check(
		[]resptest.Answer{
			{"MULTI", "+OK"},
			{"SET c 1", "+QUEUED"},
			{"MEMORY STATS", "+QUEUED"},
			{"EXEC", "*2 +OK *… keys.count :3 …"},
		},
	)
	assert.Contains(t, c.Do("MEMORY MALLOC-STATS"), "/memory/classes/heap/objects:bytes ")
	assert.Contains(t, c.Do("MEMORY DOCTOR"), "maxmemory is 0")
	c.Check([]resptest.Answer{{"CONFIG SET maxmemory 100mb", "+OK"}})
	assert.NotContains(t, c.Do("MEMORY DOCTOR"), "maxmemory is 0")
	ts.MemoryTaken(95 << 20)
	assert.Contains(t, c.Do("MEMORY DOCTOR"), "95.00M of maxmemory 100.00M are used")
	c.Check([]resptest.Answer{{"HELLO 3", "%7…"}})
	assert.Regexp(t, `^%28 \$14 peak\.allocated :[1-9]\d* \$15 total\.allocated :[1-9]`, c.Do("MEMORY STATS"))
}

func TestMemoryUsage(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	c.Check([]resptest.Answer{
		{"MEMORY USAGE nope", "$-1"},
		{"MEMORY USAGE nope SAMPLES", "-ERR syntax error"},
		{"MEMORY USAGE nope SAMPLES -1", "-ERR syntax error"},
		{"MEMORY USAGE nope FOO 1", "-ERR syntax error"},
		{"MEMORY USAGE", "-ERR wrong number of arguments for 'memory|usage' command"},
		{"MEMORY NOPE", "-ERR unknown subcommand 'NOPE'. Try MEMORY HELP."},
	})
	c.Send("SET", "s", strings.Repeat("x", 100_000))
	c.Do("RL.TOKEN t 5 5 1s")
	c.Do("RL.FIXED f 5 1m")
	c.Do("HSET h f v")
	for i := range 1000 {
		c.Do("HSET large field" + strconv.Itoa(i) + " value" + strconv.Itoa(i))
		c.Do("ZADD z " + strconv.Itoa(i) + " member" + strconv.Itoa(i))
	}
	for key, bounds := range map[string][2]int{
		"s": {100_000, 120_000}, "t": {48, 200}, "f": {48, 200}, "h": {64, 500}, "large": {40_000, 150_000},
		"z": {20_000, 150_000},
	} {
		for _, samples := range []string{"", " SAMPLES 0", " samples 100"} {
			n, err := strconv.Atoi(strings.TrimPrefix(c.Do("MEMORY USAGE "+key+samples), ":"))
			require.NoError(t, err)
			assert.True(t, bounds[0] <= n && n <= bounds[1], "%s takes %d bytes", key, n)
		}
	}
}
