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

func TestConfig(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"CONFIG GET maxmemory", "*2 $9 maxmemory $1 0"},
		{"CONFIG GET MAXMEMORY", "*2 $9 MAXMEMORY $1 0"},
		{"CONFIG GET nope", "*0"},
		{"CONFIG GET nope*", "*0"},
		{"CONFIG GET hash-max-ziplist-value", "*2 $22 hash-max-ziplist-value $2 64"},
		{"CONFIG GET maxmemory maxmemory", "*2 $9 maxmemory $1 0"},
		{"CONFIG GET maxmemory-pol* nope", "*2 $16 maxmemory-policy $9 ratelimit"},
		{"CONFIG GET", "-ERR wrong number of arguments for 'config|get' command"},
		{"CONFIG SET hash-max-ziplist-value 10", "+OK"},
		{"CONFIG GET hash-max-listpack-value", "*2 $23 hash-max-listpack-value $2 10"},
		{"CONFIG SET hash-max-listpack-value 1kb hash-max-listpack-entries 7", "+OK"},
		{"CONFIG GET hash-max-ziplist-value", "*2 $22 hash-max-ziplist-value $4 1024"},
		{"CONFIG SET hash-max-listpack-value 64 hash-max-listpack-entries 512", "+OK"},
		{
			"CONFIG SET timeout 5 maxclients x",
			"-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument couldn't be parsed into " +
				"an integer",
		},
		{"CONFIG GET timeout", "*2 $7 timeout $1 0"},
		{
			"CONFIG SET timeout -1",
			"-ERR CONFIG SET failed (possibly related to argument 'timeout') - argument must be between 0 and " +
				"2147483647 inclusive",
		},
		{
			"CONFIG SET timeout 2147483648",
			"-ERR CONFIG SET failed (possibly related to argument 'timeout') - argument must be between 0 and " +
				"2147483647 inclusive",
		},
		{
			"CONFIG SET maxclients 0",
			"-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be between 1 and " +
				"4294967295 inclusive",
		},
		{
			"CONFIG SET proto-max-bulk-len 1",
			"-ERR CONFIG SET failed (possibly related to argument 'proto-max-bulk-len') - argument must be between " +
				"1048576 and 9223372036854775807 inclusive",
		},
		{
			"CONFIG SET proto-max-bulk-len much",
			"-ERR CONFIG SET failed (possibly related to argument 'proto-max-bulk-len') - argument must be a memory " +
				"value",
		},
		{
			"CONFIG SET proto-max-bulk-len -1",
			"-ERR CONFIG SET failed (possibly related to argument 'proto-max-bulk-len') - argument must be a memory " +
				"value",
		},
		{
			"CONFIG SET protected-mode maybe",
			"-ERR CONFIG SET failed (possibly related to argument 'protected-mode') - argument must be 'yes' or 'no'",
		},
		{
			"CONFIG SET loglevel loud",
			"-ERR CONFIG SET failed (possibly related to argument 'loglevel') - argument(s) must be one of the " +
				"following: debug, verbose, notice, warning…",
		},
		{
			"CONFIG SET databases 3",
			"-ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config",
		},
		{
			"CONFIG SET timeout 0 timeout 0",
			"-ERR CONFIG SET failed (possibly related to argument 'timeout') - duplicate parameter",
		},
		{"CONFIG SET nope 1", "-ERR Unknown option or number of arguments for CONFIG SET - 'nope'"},
		{"CONFIG SET timeout x nope 1", "-ERR Unknown option or number of arguments for CONFIG SET - 'nope'"},
		{
			"CONFIG SET timeout x databases 1",
			"-ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config",
		},
		{"CONFIG SET timeout 0 x", "-ERR syntax error"},
		{"CONFIG SET timeout", "-ERR wrong number of arguments for 'config|set' command"},
		{"CONFIG SET maxmemory-policy noeviction appendonly no maxmemory 0", "+OK"},
		{"CONFIG REWRITE", "-ERR The server is running without a config file"},
		{"CONFIG RESETSTAT", "+OK"},
		{"CONFIG NOPE", "-ERR unknown subcommand 'NOPE'. Try CONFIG HELP."},
		{"HELLO 3", "%7…"},
		{"CONFIG GET maxmemory", "%1 $9 maxmemory $1 0"},
	})
}

// Parameters of features that the server lacks refuse other values; they do not silently accept
// them.
func TestConfigOfMissingFeatures(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{
			"CONFIG SET replica-read-only no",
			"-ERR CONFIG SET failed (possibly related to argument 'replica-read-only') - this server only " +
				"supports 'yes': there are no replicas",
		},
		{
			"CONFIG SET hash-max-ziplist-value 1 hash-max-listpack-value 1",
			"-ERR CONFIG SET failed (possibly related to argument 'hash-max-listpack-value') - duplicate parameter",
		},
		{
			"CONFIG SET timeout 5 activedefrag yes",
			"-ERR CONFIG SET failed (possibly related to argument 'activedefrag') …",
		},
		{"CONFIG GET timeout", "*2 $7 timeout $1 0"},
	})
}

func TestConfigSetAcceptsTheCurrentValue(t *testing.T) {
	c := resptest.Start(t, config.Defaults{
		"loglevel": "notice", "timeout": "3600", "port": "1",
		"bind": "-192.0.2.1 -192.0.2.2", // this machine does not have the addresses
	}).Dial()
	for i := range config.Parameters {
		p := &config.Parameters[i]
		if p.StartOnly {
			require.Equal(t, "*0", c.Do("CONFIG GET "+p.Name))
			continue
		}
		list := strings.SplitN(c.Do("CONFIG GET "+p.Name), " ", 5)
		require.Equal(t, []string{"*2", "$" + strconv.Itoa(len(p.Name)), p.Name}, list[:3])
		value := ""
		if len(list) == 5 {
			value = list[4]
		}
		got := c.Send("CONFIG", "SET", p.Name, value)
		if p.Set == nil {
			assert.Contains(t, got, "can't set immutable config")
		} else {
			assert.Equal(t, "+OK", got, p.Name)
		}
	}
	require.Equal(t, "*2 $4 bind $21 -192.0.2.1 -192.0.2.2", c.Do("CONFIG GET bind"))
}

func TestResetStat(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c, other := ts.Dial(), ts.Dial()
	other.Do("GET nope")
	other.Quit()
	require.Contains(t, c.Do("INFO stats"), "total_connections_received:2\r\ntotal_commands_processed:2\r\n")
	c.Do("CONFIG RESETSTAT")
	stats := c.Do("INFO stats")
	for _, field := range []string{"connections_received", "net_output_bytes", "error_replies"} {
		assert.Regexp(t, "total_"+field+`:\d{1,3}\r\n`, stats)
	}
	// CONFIG RESETSTAT itself
	assert.Contains(t, stats, "total_connections_received:0\r\ntotal_commands_processed:1\r\n")
	assert.Contains(t, stats, "keyspace_misses:0\r\n")
	require.Equal(t, ":1", c.Do("CLIENT ID"))
	require.Equal(t, ":3", ts.Dial().Do("CLIENT ID"))
}
