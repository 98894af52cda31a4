package resp

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
)

// withCommand registers a command until the test ends.
func withCommand(t *testing.T, name string, run func(*command.Call) error) {
	t.Helper()
	command.Register("generic",
		&command.Command{Name: name, Arity: 2, Flags: command.Write, Keys: command.OneKey("RW"), Run: run},
	)
	t.Cleanup(func() { delete(command.Table, name) })
}

// A panic of a handler gives the client an error and the log a stack. Locks are released, the
// partial reply is removed, and the connection and the process continue.
func TestHandlerPanics(t *testing.T) {
	withCommand(t, "testpanic", func(c *command.Call) error {
		c.Tx.Set(c.Args.Key(), []byte("done before"), engine.SetMode{})
		c.Reply.Array(3)
		c.Reply.OK()
		panic("on purpose")
	})
	ts := startServer(t, config.Defaults{})
	log := new(commandtest.LogBuffer)
	ts.Log = slog.New(slog.NewTextHandler(log, nil))
	c := ts.dial()
	assert.Equal(t, "-ERR internal error", c.do("TESTPANIC k"))
	assert.Equal(t, "$11 done before", c.do("GET k"))
	assert.Equal(t, "+PONG", ts.dial().do("PING"))
	for _, part := range []string{"on purpose", "testpanic", "dispatch_test.go"} {
		assert.Contains(t, log.String(), part)
	}
}

// The client gets neither a partial reply nor the text of the internal error.
func TestHandlerReturnsAnError(t *testing.T) {
	withCommand(t, "testfault", func(c *command.Call) error {
		c.Reply.Array(3)
		return errors.New("unexpected fault")
	})
	ts := startServer(t, config.Defaults{})
	log := new(commandtest.LogBuffer)
	ts.Log = slog.New(slog.NewTextHandler(log, nil))
	c := ts.dial()
	assert.Equal(t, "-ERR internal error", c.do("TESTFAULT k"))
	assert.Equal(t, "+PONG", c.do("PING"))
	assert.Contains(t, log.String(), "unexpected fault")
}

// A command without the write flag cannot write.
func TestReadonlyCommandCannotWrite(t *testing.T) {
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
