package resp

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/resp/config"
)

func TestShutdownRepliesToReceivedCalls(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	idle, c := ts.dial(), ts.dial()
	require.Equal(t, "+PONG", idle.do("PING"))
	_, err := c.Write([]byte("SET k v\r\nSHUTDOWN ABORT\r\nSHUTDOWN SAVE NOSAVE\r\nSHUTDOWN\r\nPING\r\n"))
	require.NoError(t, err)
	got, _ := io.ReadAll(c.r)
	require.Equal(t, "+OK\r\n-ERR No shutdown in progress.\r\n-ERR syntax error\r\n", string(got))
	<-ts.ShutdownRequested()
	require.Zero(t, ts.Shutdown(t.Context()))
	idle.requireClosed()
	_, err = net.Dial("tcp", ts.addr)
	require.Error(t, err)
}

// A client that never stops sending gets the replies to all calls that ran, and then the end of the
// stream.
func TestShutdownUnderLoad(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	go func() {
		batch := []byte(strings.Repeat("INCR n\r\n", 1000))
		for {
			if _, err := c.Write(batch); err != nil {
				return
			}
		}
	}()
	_, err := c.r.ReadString('\n')
	require.NoError(t, err)
	go ts.Shutdown(t.Context())

	last := ":1\r\n"
	for err == nil {
		var line string
		if line, err = c.r.ReadString('\n'); line != "" {
			last = line
		}
	}
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, ts.Shutdown(t.Context()))
	tx := ts.Engine.NewTx()
	keys := []engine.Key{ts.Engine.Key([]byte("n"))}
	tx.Begin(ts.Clock(), 0, keys, false)
	value, _, err := tx.Get(keys[0])
	require.NoError(t, err)
	require.Equal(t, ":"+string(value)+"\r\n", last)
	tx.End()
}
