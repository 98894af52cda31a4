package server_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp"
	"rlserver/resp/clientmem"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

const oom = "-OOM command not allowed when used memory > 'maxmemory'."

func TestMaxmemoryParameters(t *testing.T) {
	c := resptest.Start(t, config.Defaults{"maxmemory": "1073741824", "maxmemory-policy": "allkeys-lru"}).Dial()
	c.Check([]resptest.Answer{
		{"CONFIG GET maxmemory", "*2 $9 maxmemory $10 1073741824"},
		{"CONFIG GET maxmemory-policy", "*2 $16 maxmemory-policy $11 allkeys-lru"},
		{"CONFIG GET maxmemory-samples", "*2 $17 maxmemory-samples $1 5"},
		{
			"CONFIG SET maxmemory-policy volatile-what",
			"-ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument(s) must be one of " +
				"the following: ratelimit, noeviction, …",
		},
		{
			"CONFIG SET maxmemory-samples 0",
			"-ERR CONFIG SET failed (possibly related to argument 'maxmemory-samples') - argument must be between 1 " +
				"and 2147483647 inclusive",
		},
		{
			"CONFIG SET maxmemory -1",
			"-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value",
		},
		{"CONFIG SET maxmemory 10 maxmemory-policy volatile-ttl maxmemory-samples 10", "+OK"},
		{"CONFIG GET maxmemory", "*2 $9 maxmemory $2 10"},
	})
	for _, policy := range []string{"noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru",
		"volatile-lfu", "volatile-random", "volatile-ttl", "ratelimit"} {
		assert.Equal(t, "+OK", c.Do("CONFIG SET maxmemory-policy "+policy))
		assert.Equal(t, policy, c.Info("maxmemory_policy"))
	}
}

// The overhead of the process reduces the memory that is left to the keys.
func TestOverheadCountsTowardsMaxmemory(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{"maxmemory": "1048576", "maxmemory-policy": "noeviction"})
	c := ts.Dial()
	require.Equal(t, "+OK", c.Do("SET k v"))
	weight := c.InfoNumber("used_memory_dataset")
	assert.Equal(t, weight+clientmem.ConnectionSize, c.InfoNumber("used_memory"))
	// the memory of the connection is not taken from the keys
	const taken = 1<<20 + 1000 + clientmem.ConnectionSize
	ts.MemoryTaken(taken)
	assert.Equal(t, taken, c.InfoNumber("used_memory"))
	assert.Equal(t, taken-weight, c.InfoNumber("used_memory_overhead"))
	assert.Equal(t, clientmem.ConnectionSize, c.InfoNumber("mem_not_counted_for_evict"))
	assert.Equal(t, oom, c.Do("SET k v"))
	ts.MemoryTaken(1000)
	assert.Equal(t, "+OK", c.Do("SET k v"))
}

func TestInfoCountsDecisions(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c, other := ts.Dial(), ts.Dial()
	assert.Contains(t, c.Do("INFO ratelimit"), "# Ratelimit\r\ndecisions_admitted:0\r\ndecisions_denied:0\r\n")
	for range 5 {
		c.Do("RL.SLIDE s 3 1m")
		other.Do("RL.SLIDE s 3 1m")
		c.Do("RL.SLIDE s 3 1m COST 0")
		c.Do("RL.TOKEN t 2 1 1h")
		c.Do("RL.FIXED f 2 nonsense")
	}
	c.Do("RL.MULTI m 1 1m 2 1h")
	c.Check([]resptest.Answer{{"MULTI", "+OK"}, {"RL.MULTI m 1 1m 2 1h", "+QUEUED"}, {"EXEC", "*1 *6 :0…"}})
	assert.True(
		t,
		strings.HasSuffix(
			strings.TrimSpace(c.Do("INFO ratelimit")),
			"# Ratelimit\r\ndecisions_admitted:6\r\ndecisions_denied:11\r\ndecisions_shadow_denied:0\r\n"+
				"rl_multi:admitted=1,denied=1\r\nrl_slide:admitted=3,denied=7\r\nrl_token:admitted=2,denied=3",
		),
		c.Do("INFO ratelimit"),
	)
	c.Do("CONFIG RESETSTAT")
	assert.Contains(
		t,
		c.Do("INFO"),
		"# Ratelimit\r\ndecisions_admitted:0\r\ndecisions_denied:0\r\ndecisions_shadow_denied:0\r\n\r\n",
	)
}

func TestDecisionCountsOfAllSessionsAddUp(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	const clients, calls = 40, 20
	done := make(chan struct{})
	for range clients {
		c := ts.Dial()
		go func() {
			for range calls {
				c.Do("RL.TOKEN t 100 1 1h")
			}
			done <- struct{}{}
		}()
	}
	for range clients {
		<-done
	}
	c := ts.Dial()
	assert.Equal(t, 100, c.InfoNumber("decisions_admitted"))
	assert.Equal(t, clients*calls-100, c.InfoNumber("decisions_denied"))
	assert.Equal(t, fmt.Sprintf("*2 $1 t :%d", clients*calls-100), c.Do("RL.TOP"))
}

func TestWarningAboutSmallMaxMemory(t *testing.T) {
	var text commandtest.LogBuffer
	ts := resptest.Start(t,
		config.Defaults{"maxmemory": "3145728"},
		func(o *resp.Options) { o.Log = slog.New(slog.NewTextHandler(&text, nil)) },
	)
	assert.Contains(t, text.String(), "maxmemory is too small")
	c := ts.Dial()
	c.Do("CONFIG SET maxmemory 100mb")
	ts.MemoryTaken(50 << 20)
	c.Do("CONFIG SET maxmemory 60mb")
	c.Do("CONFIG SET timeout 5")
	assert.NotContains(t, text.String(), "less than what is in use")
	assert.Equal(t, 1, strings.Count(text.String(), "too small"))
	c.Do("CONFIG SET maxmemory 20mb")
	assert.Contains(t, text.String(), "maxmemory is less than what is in use")
}
