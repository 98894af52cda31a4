package resp

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

// Transcripts recorded from Redis test the cases with one connection; these need two.
func TestWatchSeesOtherClients(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, other := ts.dial(), ts.dial()
	for _, step := range []struct{ change, want string }{
		{"GET k", "*1 +PONG"},
		{"SET k 1", "*-1"},
		{"DEL k", "*-1"},
		{"DEL k", "*1 +PONG"},
		{"SET elsewhere 1", "*1 +PONG"},
		{"RL.TOKEN t 1 1 1h", "*-1"},
		{"RL.TOKEN t 1 1 1h", "*1 +PONG"}, // denied: nothing has changed
		{"FLUSHALL", "*-1"},
	} {
		require.Equal(t, "+OK", c.do("WATCH k t"))
		other.do(step.change)
		c.do("MULTI")
		c.do("PING")
		assert.Equal(t, step.want, c.do("EXEC"), step.change)
	}
}

func TestClientListShowsTransactions(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	assert.Contains(t, ts.dial().do("CLIENT LIST"), "flags=N db=0 sub=0 psub=0 ssub=0 multi=-1")
	c.do("MULTI")
	assert.Contains(t, ts.dial().do("CLIENT LIST"), "flags=x db=0 sub=0 psub=0 ssub=0 multi=0")
	c.do("PING")
	assert.Contains(t, ts.dial().do("CLIENT LIST"), "flags=x db=0 sub=0 psub=0 ssub=0 multi=1")
	c.do("EXEC")
	assert.NotContains(t, ts.dial().do("CLIENT LIST"), "flags=x")
}

// Limiters decide within a transaction as they do outside.
func TestLimitersInTransactions(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	c.do("MULTI")
	c.do("RL.SLIDE k 1 1m")
	ts.advance(500)
	c.do("RL.SLIDE k 1 1m")
	assert.Equal(t, "*2 *5 :1 :1 :0 :0 :60000 *5 :0 :1 :0 :60000 :60000", c.do("EXEC"))
}

// No client sees a part of a transaction: the sum of all accounts stays the same.
func TestTransactionsAreAtomic(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	var clients sync.WaitGroup
	for i := range 4 {
		c := ts.dial()
		clients.Go(func() {
			for range 200 {
				c.do("MULTI")
				if i%2 == 0 {
					c.do("DECRBY from 1")
					c.do("INCRBY to 1")
					c.do("EXEC")
					continue
				}
				c.do("INCRBY from 0")
				c.do("INCRBY to 0")
				reply := strings.Fields(c.do("EXEC"))
				assert.Equal(t, strings.TrimLeft(reply[1], ":-"), strings.TrimLeft(reply[2], ":"))
			}
		})
	}
	clients.Wait()
	assert.Equal(t, "*2 $4 -400 $3 400", ts.dial().do("MGET from to"))
}

// Transactions over the same keys in any order, whole-keyspace commands among them, do not
// deadlock.
func TestTransactionsDoNotDeadlock(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	var clients sync.WaitGroup
	for i := range 6 {
		c := ts.dial()
		clients.Go(func() {
			for n := range 100 {
				c.do([]string{"WATCH a c", "WATCH c b", "PING"}[(i+n)%3])
				c.do("MULTI")
				for _, line := range [][]string{
					{"INCR a", "INCR b"}, {"INCR b", "INCR a"}, {"RENAMENX a c", "DBSIZE"}, {"SCAN 0", "DEL c"},
				}[(i+n)%4] {
					c.do(line)
				}
				c.do("EXEC")
			}
		})
	}
	clients.Wait()
	assert.Equal(t, "+PONG", ts.dial().do("PING"))
}

func TestCommandsNotAllowedInATransaction(t *testing.T) {
	ts := startServer(t, config.Defaults{"enable-debug-command": "yes"})
	c := ts.dial()
	for _, line := range []string{"RL.POLICY DEL p", "RL.TOP", "SHUTDOWN"} {
		c.do("MULTI")
		assert.Equal(t, "-ERR Command not allowed inside a transaction", c.do(line))
		assert.Equal(t, "-EXECABORT Transaction discarded because of previous errors.", c.do("EXEC"))
	}
}

// A closed connection watches nothing, and its queued commands do not run.
func TestTransactionOfAClosedConnection(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	gone, c := ts.dial(), ts.dial()
	gone.do("WATCH k")
	gone.do("MULTI")
	gone.do("SET k 1")
	gone.Close()
	require.Eventually(t, func() bool { return ts.clients() == 1 }, time.Minute, time.Millisecond)
	assert.Equal(t, "$-1", c.do("GET k"))
	assert.Equal(t, "+OK", c.do("SET k 2"))
}

// Queued commands stay unchanged, whatever else arrives on the connection.
func TestQueuedCommandsAreKept(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	c.do("MULTI")
	large := strings.Repeat("x", 20<<10)
	for range 20 {
		require.Equal(t, "+QUEUED", c.send("APPEND", "k", large))
		require.Equal(t, "+QUEUED", c.send("STRLEN", "k"))
	}
	assert.True(t, strings.HasSuffix(c.do("EXEC"), ":409600 :409600"))
}

// Commands on the whole keyspace, or on statistics, see the effects of earlier calls of their
// transaction.
func TestInfoWithinTransactions(t *testing.T) {
	ts := startServer(t, config.Defaults{"enable-debug-command": "yes"})
	c := ts.dial()
	c.check(
		[]answer{
			{"GET nope", "$-1"},
			{"MULTI", "+OK"},
			{"SET a 1", "+QUEUED"},
			{"INFO keyspace", "+QUEUED"},
			{"INFO", "+QUEUED"},
			{
				"CONFIG RESETSTAT",
				"+QUEUED",
			},
			{"INFO stats", "+QUEUED"},
			{"DEBUG SLEEP 0.001", "+QUEUED"},
			{"TIME", "+QUEUED"},
		},
	)
	got := c.do("EXEC")
	assert.Contains(t, got, "# Keyspace\r\ndb0:keys=1,expires=0\r\n")
	assert.Contains(t, got, "keyspace_misses:1\r\n")
	assert.Contains(t, got, "keyspace_misses:0\r\n")
}
