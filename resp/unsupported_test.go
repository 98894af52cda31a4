package resp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

// Clients retry endlessly after an unknown command, and send the script again if the error contains
// NOSCRIPT.
func TestScriptErrorsDoNotCauseRetries(t *testing.T) {
	c := startServer(t, config.Defaults{}).dial()
	for _, line := range []string{
		"FCALL f 0", "FCALL_RO f 0", "FUNCTION LOAD x",
	} {
		got := c.do(line)
		assert.True(t, strings.HasPrefix(got, "-ERR this server has no functions"), "%s: %s", line, got)
		assert.Contains(t, got, "RL.SLIDE")
		assert.NotContains(t, strings.ToUpper(got), "NOSCRIPT")
		assert.NotContains(t, strings.ToLower(got), "unknown command")
	}
	c.check([]answer{
		{"MULTI", "+OK"},
		{"FCALL x 0", c.do("FCALL x 0")},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{"EVALX x 0", "-ERR unknown command 'EVALX', with args beginning with: 'x' '0' "},
		{"SCRIPT NOPE", "-ERR unknown subcommand 'NOPE'. Try SCRIPT HELP."},
		{"COMMAND INFO fcall script|debug function|load", "*3 $-1 $-1 $-1"},
		{"COMMAND LIST FILTERBY PATTERN fcall*", "*0"},
		{
			"COMMAND LIST FILTERBY PATTERN script|*",
			"*6 $13 script|exists $12 script|flush $11 script|help $11 script|kill $11 script|load " +
				"$11 script|show",
		},
	})
}

func TestFunctionFlush(t *testing.T) {
	startServer(t, config.Defaults{}).dial().check([]answer{
		{"FUNCTION FLUSH", "+OK"},
		{"FUNCTION FLUSH ASYNC", "+OK"},
		{"FUNCTION FLUSH sync", "+OK"},
		{"FUNCTION FLUSH nope", "-ERR FUNCTION FLUSH only supports SYNC|ASYNC option"},
	})
	require.Equal(
		t,
		"-ERR unknown subcommand 'LIST'. Try FUNCTION HELP.",
		startServer(t, config.Defaults{}).dial().do("FUNCTION LIST"),
	)
}

// Without a cluster the commands about it reply like a Redis without cluster-enabled.
func TestClusterCommandsWithoutACluster(t *testing.T) {
	c := startServer(t, config.Defaults{}).dial()
	for _, call := range []string{
		"CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES", "CLUSTER INFO", "CLUSTER MYID", "CLUSTER KEYSLOT k",
		"CLUSTER COUNTKEYSINSLOT 1", "CLUSTER GETKEYSINSLOT 1 1", "CLUSTER MEET 127.0.0.1 7000", "CLUSTER HELP",
		"READONLY", "READWRITE", "ASKING",
	} {
		assert.Equal(t, "-ERR This instance has cluster support disabled", c.do(call), call)
	}
	assert.Equal(t, "-ERR wrong number of arguments for 'cluster' command", c.do("CLUSTER"))
	assert.Equal(t, "-ERR unknown subcommand 'FOO'. Try CLUSTER HELP.", c.do("CLUSTER FOO"))
}
