package resp

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

// A client may send a whole pipeline before it reads the first reply, whatever the size of both.
func TestPipelineIsReadWhileRepliesAreUnread(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	value := strings.Repeat("v", 4000)
	require.Equal(t, "+OK", c.send("SET", "k", value))
	const calls = 20000 // 80 MB of replies: more than any socket holds
	_, err := c.Write(bytes.Repeat([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), calls))
	require.NoError(t, err)
	_, err = c.Write([]byte("*1\r\n$4\r\nPING\r\n"))
	require.NoError(t, err)
	want := "$4000\r\n" + value + "\r\n"
	got := make([]byte, len(want))
	for range calls {
		_, err := io.ReadFull(c.r, got)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	assert.Equal(t, "+PONG", strings.TrimSpace(c.read()))
}

// Replies that are unread at QUIT still reach the client.
func TestUnreadRepliesAreSentAfterQuit(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	value := strings.Repeat("v", 1<<20)
	require.Equal(t, "+OK", c.send("SET", "k", value))
	_, err := c.Write(append(bytes.Repeat([]byte("GET k\r\n"), 20), "QUIT\r\n"...))
	require.NoError(t, err)
	all, err := io.ReadAll(c.r)
	require.NoError(t, err)
	assert.Len(t, all, 20*(len("$1048576\r\n\r\n")+1<<20)+len("+OK\r\n"))
}
