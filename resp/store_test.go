package resp

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/internal/storage"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
)

func TestShutdownSaves(t *testing.T) {
	for _, step := range []struct {
		call    string
		errs    []error
		loading bool
		want    string // "": the connection closes
		taken   string
	}{
		{"SHUTDOWN", nil, false, "", ""},
		{"SHUTDOWN NOSAVE", nil, false, "", ""},
		{"SHUTDOWN SAVE", nil, false, "", "save"},
		{"shutdown now save", []error{storage.ErrBusy, storage.ErrBusy}, false, "", "save"},
		{"SHUTDOWN SAVE", []error{storage.ErrBusy, commandtest.ErrDisk}, false,
			"-ERR Errors trying to SHUTDOWN. Check logs.", ""},
		{"SHUTDOWN SAVE FORCE", []error{commandtest.ErrDisk}, false, "", ""},
		{"SHUTDOWN SAVE", nil, true, "", ""},
		{"SHUTDOWN SAVE ABORT", nil, false, "-ERR syntax error", ""},
	} {
		store := &commandtest.Store{Errs: step.errs}
		ts := startServer(t, config.Defaults{}, withStore(store))
		ts.SetLoading(step.loading)
		c := ts.dial()
		if step.want != "" {
			assert.Equal(t, step.want, c.do(step.call), step.call)
			assert.Equal(t, "+PONG", c.do("PING"))
			select {
			case <-ts.ShutdownRequested():
				assert.Fail(t, "the server shuts down after an error", step.call)
			default:
			}
		} else {
			_, err := c.Write([]byte(step.call + "\r\n"))
			require.NoError(t, err)
			<-ts.ShutdownRequested()
			c.requireClosed()
		}
		assert.Equal(t, step.taken, store.Taken(), step.call)
	}
}

// If the journal fails, the calls that depend on it get errors, and the error is logged once a
// second.
func TestBrokenJournal(t *testing.T) {
	log := new(commandtest.LogBuffer)
	ts := startServer(t, config.Defaults{}, func(o *Options) {
		o.Journal = commandtest.BrokenJournal{}
		o.Engine = engine.New(engine.Options{Journal: o.Journal})
		o.Log = slog.New(slog.NewTextHandler(log, nil))
	})
	reported := func() int { return strings.Count(log.String(), commandtest.ErrDisk.Error()) }
	lost := "-MISCONF the changes of this call, or those that it shows, may be lost: " + commandtest.ErrDisk.Error()
	for range 3 {
		c := ts.dial()
		assert.Equal(t, "+PONG", c.do("PING"))
		assert.Equal(t, []string{"+PONG", lost, lost}, c.pipe("PING", "INCR k", "HSET h a 1 b 2"))
		assert.Equal(t, []string{"+OK", "+QUEUED", "+QUEUED", lost, lost},
			c.pipe("MULTI", "INCR k", "HGETALL h", "EXEC", "PING"), "later calls may show the changes as well")
	}
	assert.Equal(t, 1, reported())
	ts.advance(1000)
	assert.Equal(t, lost, ts.dial().do("DEL k"))
	assert.Equal(t, 2, reported())
}
