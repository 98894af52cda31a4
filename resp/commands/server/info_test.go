package server_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/stats"
	"rlserver/resp/command"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestInfo(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{"port": "6379"})
	c, other := ts.Dial(), ts.Dial()
	c.Do("SET a 1")
	c.Do("SET b 1 EX 1")
	c.Do("GET a")
	c.Do("GET nope")
	c.Do("NOPE")
	other.Do("SELECT 3")
	other.Do("SET x 1")
	other.Quit()

	all := c.Do("INFO")
	for _, field := range []string{
		"# Server\r\nredis_version:7.0.15\r\nserver_name:rlserver\r\nrlserver_version:test\r\n" +
			"redis_mode:standalone\r\n", "tcp_port:6379\r\n",
		"server_time_usec:1767225600000000\r\n", "# Clients\r\nconnected_clients:1\r\nmaxclients:1000\r\n",
		"# Memory\r\nused_memory:", "maxmemory:0\r\n",
		"total_connections_received:2\r\ntotal_commands_processed:7\r\n", "keyspace_hits:1\r\nkeyspace_misses:1\r\n",
		"total_error_replies:1\r\n",
		"# Replication\r\nrole:master\r\n", "# CPU\r\nused_cpu_sys:", "# Cluster\r\ncluster_enabled:0\r\n",
		"# Keyspace\r\ndb0:keys=2,expires=1\r\ndb3:keys=1,expires=0\r\n",
	} {
		assert.Contains(t, all, field)
	}
	for line := range strings.Lines(strings.TrimLeft(all, "$0123456789 ")) {
		assert.Regexp(t, `^(\r\n|# \w+\r\n|[a-z0-9_]+:[^:]*|errorstat_ERR:count=1\r\n)$`, line)
	}
	for section, extra := range map[string]int{"all": 2, "DEFAULT": 0, "everything": 2, "nope everything": 2} {
		assert.Equal(t, strings.Count(all, "# ")+extra, strings.Count(c.Do("INFO "+section), "# "), section)
	}
	assert.Equal(t, "$0 ", c.Do("INFO nope"))
	assert.Equal(t, "$30 # Cluster\r\ncluster_enabled:0\r\n", c.Do("info cluster"))
	assert.Regexp(t, `^\$\d+ # CPU\r\n(.*\r\n)+\r\n# Cluster\r\ncluster_enabled:0\r\n$`, c.Do("INFO cluster nope cpu"))
	c.Do("HELLO 3")
	assert.Equal(t, "=34 txt:# Cluster\r\ncluster_enabled:0\r\n", c.Do("INFO cluster"))
}

func TestCallsAreCountedAndTimed(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c, other := ts.Dial(), ts.Dial()
	counts := func(name string) stats.CommandCounts {
		counts := ts.Stats.Command(command.Table.Find([]byte(name)).Index)
		if counts == nil {
			return stats.CommandCounts{}
		}
		return *counts
	}

	c.Pipe("SET a 1", "GET a", "GET b", "INCR a", "SET a x", "INCR a", "GET", "NOPE", "SET a 2")
	assert.EqualValues(t, 3, counts("set").Calls)
	assert.EqualValues(t, 2, counts("get").Calls)
	assert.EqualValues(t, 1, counts("get").Rejected)
	assert.EqualValues(t, 2, counts("incr").Calls)
	assert.EqualValues(t, 1, counts("incr").Failed)
	assert.Equal(t, map[string]int64{"ERR": 3}, ts.Stats.Errors.Snapshot())

	c.Pipe("MULTI", "SET a 1", "INCR a", "HGET a b", "INCR a", "GET", "EXEC")
	assert.EqualValues(t, 1, counts("multi").Calls)
	assert.EqualValues(t, 2, counts("incr").Calls, "queued calls have not run")
	assert.EqualValues(t, 1, counts("exec").Failed)
	c.Pipe("MULTI", "SET a 1", "INCR a", "HGET a b", "INCR a", "EXEC")
	assert.EqualValues(t, 4, counts("incr").Calls)
	assert.EqualValues(t, 1, counts("hget").Failed)
	assert.EqualValues(t, 2, counts("exec").Calls)
	assert.Equal(t, map[string]int64{"ERR": 4, "EXECABORT": 1, "WRONGTYPE": 1}, ts.Stats.Errors.Snapshot())

	// A call that waits is counted once, without the time that it waits.
	c.Do("RL.LEASE l 1 1h a")
	io.WriteString(c, commandtest.Frame("RL.LEASE", "l", "1", "1h", "b", "WAIT", "30000"))
	require.Eventually(t, func() bool { return ts.Queues().Waiting.Load() == 1 }, time.Minute, time.Millisecond)
	ts.Advance(5000)
	other.Do("RL.RELEASE l a")
	c.Read()
	assert.EqualValues(t, 2, counts("rl.lease").Calls)
	assert.Zero(t, counts("rl.lease").Time)

	c.Do("CONFIG RESETSTAT")
	assert.Zero(t, counts("set"))
	assert.Empty(t, ts.Stats.Errors.Snapshot())
}

func TestCommandStatistics(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Pipe("SET a x", "SET a x", "GET", "INCR a", "CONFIG GET port")
	text := c.Do("INFO commandstats")
	for _, line := range []string{
		"cmdstat_set:calls=2,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0\r\n",
		"cmdstat_get:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0\r\n",
		"cmdstat_incr:calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=1\r\n",
		"cmdstat_config|get:calls=1,",
	} {
		assert.Contains(t, text, line)
	}
	assert.Contains(
		t,
		c.Pipe("ECHO x", "INFO commandstats")[1],
		"cmdstat_echo:calls=1",
		"calls of the same pipeline are counted",
	)
	assert.Contains(t, c.Do("INFO latencystats"), "latency_percentiles_usec_set:p50=0.250,p99=0.250,p99.9=0.250\r\n")
	c.Send("CONFIG", "SET", "latency-tracking-info-percentiles", "1 99.99")
	assert.Contains(t, c.Do("INFO latencystats"), "latency_percentiles_usec_set:p1=0.250,p99.99=0.250\r\n")
	c.Send("CONFIG", "SET", "latency-tracking-info-percentiles", "")
	assert.Contains(t, c.Do("INFO latencystats"), "latency_percentiles_usec_set:\r\n")
}
