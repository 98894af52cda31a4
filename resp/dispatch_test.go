package resp

import (
	"bytes"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/config"
)

// logged is a log that a test can read.
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
func withCommand(t *testing.T, name string, run func(*command.Call) error) {
	t.Helper()
	command.Register(
		&command.Command{
			Name:  name,
			Arity: 2,
			Flags: command.Write,
			Keys:  []command.KeySpec{command.Key("RW", 1)},
			Run:   run,
		},
	)
	t.Cleanup(func() { delete(command.Table, name) })
}

// A panic of a handler gives the client an error and the log a stack. Locks are released, the
// partial reply is removed, and the connection and the process continue.
func TestPanicOfAHandler(t *testing.T) {
	withCommand(t, "testpanic", func(c *command.Call) error {
		c.Tx.Set(c.Args.Key(), []byte("done before"), engine.SetMode{})
		c.Reply.Array(3)
		c.Reply.OK()
		panic("on purpose")
	})
	ts := startServer(t, config.Defaults{})
	log := new(logged)
	ts.Log = slog.New(slog.NewTextHandler(log, nil))
	c := ts.dial()
	assert.Equal(t, "-ERR internal error", c.do("TESTPANIC k"))
	assert.Equal(t, "$11 done before", c.do("GET k"))
	assert.Equal(t, "+PONG", ts.dial().do("PING"))
	for _, part := range []string{"on purpose", "testpanic", "dispatch_test.go"} {
		assert.Contains(t, log.String(), part)
	}
}

// No partial reply is sent, and no internal error.
func TestErrorOfAHandler(t *testing.T) {
	withCommand(t, "testfault", func(c *command.Call) error {
		c.Reply.Array(3)
		return errors.New("disk on fire")
	})
	ts := startServer(t, config.Defaults{})
	log := new(logged)
	ts.Log = slog.New(slog.NewTextHandler(log, nil))
	c := ts.dial()
	assert.Equal(t, "-ERR internal error", c.do("TESTFAULT k"))
	assert.Equal(t, "+PONG", c.do("PING"))
	assert.Contains(t, log.String(), "disk on fire")
}

// A command without the write flag cannot write.
func TestReadersCannotWrite(t *testing.T) {
	withCommand(t, "testwrite", func(c *command.Call) error {
		c.Tx.Set(c.Args.Key(), []byte("v"), engine.SetMode{})
		return nil
	})
	command.Table["testwrite"].Flags = command.Readonly
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	assert.Equal(t, "-ERR internal error", c.do("TESTWRITE k"))
	assert.Equal(t, ":0", c.do("EXISTS k"))
}
