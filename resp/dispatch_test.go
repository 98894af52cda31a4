package resp

import (
	"bytes"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine"
)

// logged is a log to read in a test.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// withCommand adds a command for the time of a test.
func withCommand(t *testing.T, name string, run func(*call) error) {
	t.Helper()
	register(&command{name: name, arity: 2, flags: write, keys: []keySpec{key("RW", 1)}, run: run})
	t.Cleanup(func() { delete(commands, name) })
}

// A handler that panics costs its client an error and the log a stack: locks are let go of, what it had replied is taken
// back, and the connection and the process go on.
func TestPanicOfAHandler(t *testing.T) {
	withCommand(t, "testpanic", func(c *call) error {
		c.tx.Set(c.args.key(), []byte("done before"), engine.SetMode{})
		c.reply.array(3)
		c.reply.ok()
		panic("on purpose")
	})
	ts := startServer(t, Defaults{})
	log := new(logged)
	ts.log = slog.New(slog.NewTextHandler(log, nil))
	c := ts.dial()
	assert.Equal(t, "-ERR internal error", c.do("TESTPANIC k"))
	assert.Equal(t, "$11 done before", c.do("GET k"))
	assert.Equal(t, "+PONG", ts.dial().do("PING"))
	for _, part := range []string{"on purpose", "testpanic", "dispatch_test.go"} {
		assert.Contains(t, log.String(), part)
	}
}

// Half an answer never leaves, and what is not meant for clients does not either.
func TestErrorOfAHandler(t *testing.T) {
	withCommand(t, "testfault", func(c *call) error {
		c.reply.array(3)
		return errors.New("disk on fire")
	})
	ts := startServer(t, Defaults{})
	log := new(logged)
	ts.log = slog.New(slog.NewTextHandler(log, nil))
	c := ts.dial()
	assert.Equal(t, "-ERR internal error", c.do("TESTFAULT k"))
	assert.Equal(t, "+PONG", c.do("PING"))
	assert.Contains(t, log.String(), "disk on fire")
}

// A call that is declared not to write cannot.
func TestReadersCannotWrite(t *testing.T) {
	withCommand(t, "testwrite", func(c *call) error {
		c.tx.Set(c.args.key(), []byte("v"), engine.SetMode{})
		return nil
	})
	commands["testwrite"].flags = readonly
	ts := startServer(t, Defaults{})
	c := ts.dial()
	assert.Equal(t, "-ERR internal error", c.do("TESTWRITE k"))
	assert.Equal(t, ":0", c.do("EXISTS k"))
}
