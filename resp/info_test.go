package resp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/config"
)

func TestInfo(t *testing.T) {
	ts := startServer(t, config.Defaults{Port: 6379})
	c, other := ts.dial(), ts.dial()
	c.do("SET a 1")
	c.do("SET b 1 EX 1")
	c.do("GET a")
	c.do("GET nope")
	c.do("NOPE")
	other.do("SELECT 3")
	other.do("SET x 1")
	other.quit()

	all := c.do("INFO")
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
		assert.Regexp(t, `^(\r\n|# \w+\r\n|[a-z0-9_]+:[^:]*\r\n)$`, line)
	}
	for _, section := range []string{"all", "DEFAULT", "everything", "nope everything"} {
		assert.Equal(t, strings.Count(all, "# "), strings.Count(c.do("INFO "+section), "# "), section)
	}
	assert.Equal(t, "$0 ", c.do("INFO nope"))
	assert.Equal(t, "$30 # Cluster\r\ncluster_enabled:0\r\n", c.do("info cluster"))
	assert.Regexp(t, `^\$\d+ # CPU\r\n(.*\r\n)+\r\n# Cluster\r\ncluster_enabled:0\r\n$`, c.do("INFO cluster nope cpu"))
	c.do("HELLO 3")
	assert.Equal(t, "=34 txt:# Cluster\r\ncluster_enabled:0\r\n", c.do("INFO cluster"))
}
