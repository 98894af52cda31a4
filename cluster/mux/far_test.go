package mux

import (
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// far is the end of a connection at a node that is far away: each of its answers takes a while.
type far struct {
	net.Conn
	takes time.Duration
}

func (f far) Write(b []byte) (int, error) {
	time.Sleep(f.takes)
	return f.Conn.Write(b)
}

// introduceTo does the handshake with a node that is far away. It returns how long that took.
func introduceTo(t *testing.T, takes, timeout time.Duration) (time.Duration, error) {
	p := &Port{channels: make(map[Channel]*Layer), open: make(map[net.Conn]struct{})}
	p.cluster.Store(&ClusterID{1})
	l := p.Layer(0)
	here, there := net.Pipe()
	var work sync.WaitGroup
	work.Go(func() { p.greet(far{there, takes}) })
	defer work.Wait()
	defer here.Close()
	begun := time.Now()
	err := p.introduce(here, 0, 0, timeout)
	took := time.Since(begun)
	if err == nil {
		c, err := l.Accept()
		require.NoError(t, err)
		c.Close()
	}
	return took, err
}

// A timeout that is enough for a message is enough for a connection, which takes several.
func TestEachAnswerOfAHandshakeHasTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took, err := introduceTo(t, 900*time.Millisecond, time.Second)
		require.NoError(t, err)
		assert.Equal(t, 1800*time.Millisecond, took)

		took, err = introduceTo(t, 1100*time.Millisecond, time.Second)
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "a node that does not answer is not waited for any longer")
		assert.Equal(t, time.Second, took)
	})
}
