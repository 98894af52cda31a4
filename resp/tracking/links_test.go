package tracking

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// others are the other nodes, as links see them.
type others struct {
	*Links
	mu     sync.Mutex // of what follows
	names  []string
	down   bool
	wants  bool
	dialed map[string]*bufio.ReadWriter
	conns  map[string]net.Conn
	log    []string // what was told
}

func newOthers(names ...string) *others {
	o := &others{names: names, wants: true, dialed: map[string]*bufio.ReadWriter{}, conns: map[string]net.Conn{}}
	heard := func() []string {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.names
	}
	o.Links = new(Table).NewLinks(heard, o.dial, func(keys []string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if keys == nil {
			keys = []string{"all"}
		}
		o.log = append(o.log, strings.Join(keys, ","))
	})
	o.wanted = func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.wants
	}
	return o
}

func (o *others) dial(node string) (net.Conn, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down {
		return nil, errors.New("no route")
	}
	here, there := net.Pipe()
	o.conns[node] = there
	o.dialed[node] = bufio.NewReadWriter(bufio.NewReader(there), bufio.NewWriter(there))
	return here, nil
}

// asked reads Word on a node.
func (o *others) asked(t *testing.T, node string) {
	t.Helper()
	const request = "*1\r\n$6\r\n" + Word + "\r\n"
	got := make([]byte, len(request))
	_, err := io.ReadFull(o.at(node), got)
	require.NoError(t, err)
	require.Equal(t, request, string(got))
}

// set changes what links see.
func (o *others) set(wants, down bool, names ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wants, o.down, o.names = wants, down, names
}

// at returns the other end of the latest connection to a node.
func (o *others) at(node string) *bufio.ReadWriter {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dialed[node]
}

func (o *others) say(node, text string) {
	to := o.at(node)
	to.WriteString(text)
	to.Flush()
	synctest.Wait()
}

func (o *others) take() string {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.log
	o.log = nil
	return strings.Join(list, " ")
}

// All may have changed when a link begins, when it fails, and while there is none.
func TestLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOthers("b")
		o.wake()
		o.wake()
		synctest.Wait()
		o.asked(t, "b")
		assert.Equal(t, "", o.take())
		assert.Equal(t, 0, o.count())
		o.say("b", "+OK\r\n")
		assert.Equal(t, "all", o.take(), "it begins")
		assert.Equal(t, 1, o.count())
		o.say("b", ">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\nk\r\n$2\r\na\n\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n")
		assert.Equal(t, "k,a\n all", o.take())
		for range 5 { // the link is checked
			time.Sleep(interval)
			o.asked(t, "b")
			o.say("b", "+OK\r\n")
		}
		assert.Equal(t, "", o.take())

		o.set(true, true, "b")
		time.Sleep(silence + interval/2) // the node hangs
		assert.Equal(t, "all", strings.Fields(o.take())[0])
		assert.Equal(t, 0, o.count())
		o.take()
		time.Sleep(3 * interval)
		assert.Equal(t, "all all all", o.take(), "no link can be made")
		o.set(true, true)
		time.Sleep(3 * interval)
		assert.Equal(t, "", o.take(), "the node is not heard: nobody reads there")

		o.set(true, false, "b", "c")
		time.Sleep(interval)
		synctest.Wait()
		o.asked(t, "b")
		o.asked(t, "c")
		o.say("b", "+OK\r\n")
		o.say("c", "+OK\r\n")
		o.take()
		o.conns["b"].Close()
		assert.Equal(t, "all", o.take(), "it ends")
		o.say("c", "-ERR no such command\r\n")
		assert.Equal(t, "all", o.take())
		o.set(false, false)
		time.Sleep(2 * silence) // all goroutines end
	})
}

// Links end when no client needs them, and are made again when one does.
func TestLinksThatAreNotWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOthers("b")
		o.wake()
		synctest.Wait()
		o.asked(t, "b")
		o.say("b", "+OK\r\n")
		o.set(false, false)
		time.Sleep(interval)
		synctest.Wait()
		_, err := o.at("b").ReadByte()
		assert.Error(t, err)
		assert.Equal(t, 0, o.count())
		o.wake()
		o.take()
		o.set(true, false, "b")
		o.wake()
		synctest.Wait()
		o.asked(t, "b")
		o.say("b", "+OK\r\n")
		assert.Equal(t, "all", o.take())
		o.set(false, false)
		time.Sleep(2 * silence)
	})
}
