package wire

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

// slowDeadlines is a connection on which a deadline takes effect a while after it was set.
type slowDeadlines struct {
	net.Conn
	reached chan struct{} // a deadline in the past is about to take effect
	next    chan struct{}
}

func (c slowDeadlines) SetReadDeadline(t time.Time) error {
	if t.Equal(past) {
		c.reached <- struct{}{}
		<-c.next
	}
	return c.Conn.SetReadDeadline(t)
}

// A Pause ends when Wake has set its deadline, which would otherwise end the next read.
func TestPauseEndsAfterWake(t *testing.T) {
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close(); server.Close() })
	slow := slowDeadlines{server, make(chan struct{}), make(chan struct{})}
	g := NewGuard(slow, config.NewConnectionLimits(), nil)
	var wakes sync.WaitGroup
	wakes.Go(g.Wake)
	<-slow.reached
	paused := make(chan error)
	go func() { paused <- g.Pause() }()
	select {
	case <-paused:
		require.Fail(t, "Pause has ended, and the deadline is still to come")
	case <-time.After(10 * time.Millisecond): // without the mend it ends at once
	}
	close(slow.next)
	require.NoError(t, <-paused)
	wakes.Wait()
	go client.Write([]byte("*1\r\n$4\r\nPING\r\n"))
	require.NoError(t, g.Wait(make([]byte, 512)))
}
