package relay

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// network has the connections to other nodes, by name.
type network struct {
	relay  *Relay
	others []string
	down   bool

	mu     sync.Mutex
	dialed map[string]net.Conn // the other ends of the latest connections
}

func newNetwork(most int64, others ...string) *network {
	n := &network{others: others, dialed: make(map[string]net.Conn)}
	limit := new(atomic.Int64)
	limit.Store(most)
	n.relay = New(Options{Others: func() []string { return n.others }, Most: limit, Dial: n.dial})
	return n
}

func (n *network) dial(node string) (net.Conn, error) {
	if n.down {
		return nil, errors.New("no route")
	}
	here, there := net.Pipe()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialed[node] = there
	return here, nil
}

func (n *network) send(texts ...string) {
	var frames []byte
	for _, text := range texts {
		frames = Append(frames, []byte("news"), []byte(text))
	}
	n.relay.Send(frames, len(texts))
}

// read returns the texts of n messages that a node gets.
func (n *network) read(node string, messages int) (texts []string) {
	in := bufio.NewReader(n.dialed[node])
	for range messages {
		for line := range 7 {
			text, _ := in.ReadString('\n')
			if line == 6 {
				texts = append(texts, strings.TrimSpace(text))
			}
		}
	}
	return texts
}

// All other nodes get the messages in order, in one write for those that are sent together.
func TestMessagesReachAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(1<<20, "b", "c")
		n.send("1", "2")
		n.send("3")
		synctest.Wait()
		assert.Equal(t, []string{"1", "2", "3"}, n.read("b", 3))
		assert.Equal(t, []string{"1", "2", "3"}, n.read("c", 3))
		synctest.Wait()
		assert.Zero(t, n.relay.Queued())
		n.send("4")
		synctest.Wait()
		assert.Equal(t, []string{"4"}, n.read("b", 1))
		time.Sleep(2 * writeTimeout) // c does not read: it is given up
		assert.EqualValues(t, 1, n.relay.Dropped.Load())
		time.Sleep(2 * idle) // the connections are closed
		synctest.Wait()
		assert.Empty(t, n.relay.peers, "nodes that may have left")
	})
}

// A node that hangs costs its queue, and nothing else. When it answers again, it gets what is sent
// from then on.
func TestANodeHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(10_000, "b", "c")
		begun := time.Now()
		for range 20 {
			n.send(strings.Repeat("x", 1000))
			synctest.Wait()
			assert.Len(t, n.read("c", 1)[0], 1000)
		}
		assert.Zero(t, time.Since(begun))
		synctest.Wait()
		assert.LessOrEqual(t, n.relay.Queued(), int64(10_000))
		assert.Greater(t, n.relay.Queued(), int64(8000))
		assert.EqualValues(t, 11, n.relay.Dropped.Load())
		time.Sleep(2 * writeTimeout)
		synctest.Wait()
		assert.Zero(t, n.relay.Queued())
		assert.EqualValues(t, 20, n.relay.Dropped.Load())
		n.send("again")
		synctest.Wait()
		assert.Equal(t, []string{"again"}, n.read("b", 1))
		assert.Equal(t, []string{"again"}, n.read("c", 1))
		n.send(strings.Repeat("x", 20_000)) // too large for any queue
		time.Sleep(2 * idle)
		synctest.Wait()
		assert.Empty(t, n.relay.peers)
	})
}

// Messages for a node that cannot be reached are dropped. A connection that the other node has
// closed is replaced before the next message.
func TestANodeGoesAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(10_000, "b")
		n.down = true
		n.send("lost")
		synctest.Wait()
		assert.EqualValues(t, 1, n.relay.Dropped.Load())
		n.down = false
		n.send("1")
		synctest.Wait()
		assert.Equal(t, []string{"1"}, n.read("b", 1))
		n.dialed["b"].Close()
		synctest.Wait()
		n.send("2")
		synctest.Wait()
		assert.Equal(t, []string{"2"}, n.read("b", 1))
		time.Sleep(2 * idle)
		_, err := n.dialed["b"].Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.EOF)
		assert.EqualValues(t, 1, n.relay.Dropped.Load())
	})
}
