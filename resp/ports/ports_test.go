package ports_test

import (
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/resp/command/commandtest"
	"rlserver/resp/ports"
)

// exhaustedListener fails to accept for want of a file descriptor, as often as times says, and then
// is closed.
type exhaustedListener struct {
	net.Listener
	times int
	wait  func()
}

func (e *exhaustedListener) Accept() (net.Conn, error) {
	if e.times--; e.times < 0 {
		return nil, net.ErrClosed
	}
	e.wait()
	return nil, syscall.EMFILE
}

func TestAcceptFailuresAreLoggedOnceASecond(t *testing.T) {
	var log strings.Builder
	now := int64(0)
	p := ports.New(ports.Options{
		Clock: commandtest.ClockBy(func() int64 { return now }), Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	p.End()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	err = p.Serve(&exhaustedListener{Listener: ln, times: 5, wait: func() { now += 400 }}, nil)
	require.NoError(t, err, "redcon returns nil when the listener is closed")
	require.Equal(t, 2, strings.Count(log.String(), "a connection could not be accepted"), log.String())
}
