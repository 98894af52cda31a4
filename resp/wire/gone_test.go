package wire

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

func TestGuardDetectsDisconnect(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	conn, err := ln.Accept()
	require.NoError(t, err)
	g := NewGuard(conn, config.NewConnectionLimits(), nil)
	assert.False(t, g.Gone())
	client.Close()
	assert.Eventually(t, g.Gone, time.Minute, time.Millisecond)
	conn.Close()
	assert.True(t, g.Gone(), "closed by the server")
}
