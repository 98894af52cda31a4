package server_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// The other replies are in the transcripts.
func TestReplicaOfIsExplained(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"REPLICAOF 127.0.0.1 6379", "-ERR this server is not a replica of another one: …"},
		{"SLAVEOF 127.0.0.1 6379", "-ERR this server is not a replica of another one: …"},
	})
	for _, line := range []string{"REPLICAOF NO ONE", "slaveof a 1"} { // as in Redis Cluster
		p := command.Prepare(bytes.Fields([]byte(line)))
		assert.EqualError(t, p.Command.Refused(p.Words), "ERR REPLICAOF not allowed in cluster mode.")
	}
}
