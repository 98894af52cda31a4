package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

// sockets returns the two ends of a connection; the first one has a guard.
func sockets(t *testing.T) (g *Guard, client *net.TCPConn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	accepted, err := ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { accepted.Close() })
	return NewGuard(accepted, config.NewConnectionLimits(), nil), conn.(*net.TCPConn)
}

func TestSocketsAreReadToTheirEnd(t *testing.T) {
	g, client := sockets(t)
	for _, space := range []int{512, 16 << 10, 16<<10 + 1} {
		go client.Write([]byte("PING\r\n"))
		p := make([]byte, space)
		n, err := io.ReadAtLeast(readerFunc(g.readSocket), p, 6)
		require.NoError(t, err)
		assert.Equal(t, "PING\r\n", string(p[:n]))
		require.NoError(t, g.SetReadDeadline(past))
		n, err = g.readSocket(p)
		assert.Zero(t, n)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, g.SetReadDeadline(time.Time{}))
	}
	require.NoError(t, client.CloseWrite())
	for range 2 {
		_, err := g.readSocket(make([]byte, 512))
		require.Equal(t, io.EOF, err)
	}
	require.NoError(t, g.Conn.Close())
	_, err := g.readSocket(make([]byte, 512))
	require.ErrorIs(t, err, net.ErrClosed)
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestResetOfASocketIsAnErrorThatNamesIt(t *testing.T) {
	g, client := sockets(t)
	require.NoError(t, client.SetLinger(0))
	require.NoError(t, client.Close())
	_, err := g.readSocket(make([]byte, 512))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	where, ok := errors.AsType[*net.OpError](err)
	require.True(t, ok)
	assert.Equal(t, client.LocalAddr().String(), where.Addr.String())
}

func TestSocketsAreWrittenInPiecesOfAnyLength(t *testing.T) {
	for _, size := range []int{1, 16 << 10, 16<<10 + 1, 3 << 20} {
		g, client := sockets(t)
		sent := bytes.Repeat([]byte("x"), size)
		got := make(chan int)
		go func() {
			n, _ := io.Copy(io.Discard, client)
			got <- int(n)
		}()
		_, err := g.Write(sent)
		require.NoError(t, err)
		require.NoError(t, g.Close())
		assert.Equal(t, size, <-got)
	}
}
