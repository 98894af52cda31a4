package resp

import (
	"rlserver/resp/config"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMemoryDiagnostics(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	c.check([]answer{{"SET a 1", "+OK"}, {"SET b 1", "+OK"}, {"MEMORY PURGE", "+OK"}, {"MEMORY PURGE", "+OK"}})
	stats := c.do("MEMORY STATS")
	assert.Regexp(t, `^\*\d+ \$15 total\.allocated :\d+ \$14 overhead\.total :\d+ \$10 keys\.count :2 \$18 keys\.bytes-per-key :\d+ \$13 dataset\.bytes :\d+ `, stats)
	c.check([]answer{{"MULTI", "+OK"}, {"SET c 1", "+QUEUED"}, {"MEMORY STATS", "+QUEUED"}, {"EXEC", "*2 +OK *… keys.count :3 …"}})
	assert.Contains(t, c.do("MEMORY MALLOC-STATS"), "/memory/classes/heap/objects:bytes ")
	assert.Contains(t, c.do("MEMORY DOCTOR"), "maxmemory is 0")
	c.check([]answer{{"CONFIG SET maxmemory 100mb", "+OK"}})
	assert.NotContains(t, c.do("MEMORY DOCTOR"), "maxmemory is 0")
	ts.MemoryTaken(95 << 20)
	assert.Contains(t, c.do("MEMORY DOCTOR"), "95.00M of maxmemory 100.00M are used")
	c.check([]answer{{"HELLO 3", "%7…"}})
	assert.Regexp(t, `^%\d+ \$15 total\.allocated :`, c.do("MEMORY STATS"))
}
