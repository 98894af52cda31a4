package diagnose_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"rlserver/resp"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// ticking advances the clock by a millisecond at each reading.
func ticking(o *resp.Options) {
	now := new(atomic.Int64)
	now.Store(resptest.StartTime)
	o.Clock = commandtest.ClockBy(func() int64 { return now.Add(1) })
}

func TestSlowCallsAreLogged(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{}, ticking)
	c := ts.Dial()
	c.Do("CONFIG SET slowlog-log-slower-than 1000000")
	c.Pipe("SET a 1", "INCR a")
	assert.Equal(t, ":0", c.Do("SLOWLOG LEN"))
	c.Do("CONFIG SET slowlog-log-slower-than 1000")
	c.Do("SLOWLOG RESET")
	c.Do("CLIENT SETNAME me")
	c.Do("GET a")
	assert.Regexp(t, `^\*1 \*6 :\d+ :1767225600 :\d+000 \*2 \$3 GET \$1 a \$\d+ 127.0.0.1:\d+ \$2 me$`,
		c.Do("SLOWLOG GET 1"))
	c.Do("SLOWLOG RESET")

	// Calls that run as a group each take less than the threshold, and together more: the first is
	// logged.
	c.Do("CONFIG SET slowlog-log-slower-than -1")
	c.Do("SLOWLOG RESET")
	var calls []string
	for i := range 8 {
		calls = append(calls, fmt.Sprint("INCRBY a ", i))
	}
	c.Do("CONFIG SET slowlog-log-slower-than 1000")
	c.Do("SLOWLOG RESET")
	c.Pipe(calls...)
	c.Do("CONFIG SET slowlog-log-slower-than -1")
	logged := c.Do("SLOWLOG GET")
	assert.Contains(t, logged, "$6 INCRBY $1 a $1 0 ")
	assert.LessOrEqual(t, strings.Count(logged, "INCRBY"), 8)

	c.Do("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 3")
	c.Pipe("MULTI", "GET a", "HGET a b", "EXEC")
	logged = c.Do("SLOWLOG GET")
	assert.Contains(t, logged, "$4 HGET ")
	assert.NotContains(t, logged, "EXEC")
}

func TestLatencyEvents(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{"appendonly": "yes", "appendfsync": "always"}, ticking)
	c := ts.Dial()
	c.Do("DBSIZE")
	assert.Equal(t, "*0", c.Do("LATENCY LATEST"))
	c.Do("CONFIG SET latency-monitor-threshold 1")
	c.Do("SET a 1")
	c.Do("GET a")
	latest := c.Do("LATENCY LATEST")
	assert.Contains(t, latest, "*4 $7 command :1767225600 :")
	assert.Contains(t, latest, "*4 $12 fast-command :1767225600 :")
	ts.ObserveSync(50 * time.Millisecond)
	assert.Contains(t, c.Do("LATENCY HISTORY aof-fsync-always"), ":50")
	assert.EqualValues(t, 1, ts.Stats.Fsync.Snapshot().Count)
	assert.Contains(t, c.Do("LATENCY DOCTOR"), "fast-command: 1 latency spikes")
	assert.Contains(t, c.Do("LATENCY GRAPH command"), "command - high ")
	assert.Contains(t, c.Do("LATENCY RESET"), ":3")
}
