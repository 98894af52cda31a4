package wire

import (
	"bufio"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

// The sender also works with a net.Conn that is not a socket.
func TestSenderWithoutASocket(t *testing.T) {
	here, there := net.Pipe()
	g := NewGuard(there, config.NewConnectionLimits(), nil)
	done := make(chan error, 1)
	go func() {
		_, err := g.Write([]byte("+OK\r\n"))
		done <- err
	}()
	line, err := bufio.NewReader(here).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "+OK\r\n", line)
	require.NoError(t, <-done)
	require.NoError(t, g.Close())
	_, err = g.Write([]byte("x"))
	assert.ErrorIs(t, err, net.ErrClosed)
}
