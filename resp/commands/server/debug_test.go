package server_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/storage"
	"rlserver/resp"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/commands/server"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// Transcripts test the digests of Redis' types; these are of types that Redis lacks.
func TestDebugDigestOfLimiters(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{"enable-debug-command": "yes"})
	c := ts.Dial()
	c.Check([]resptest.Answer{
		{"DEBUG DIGEST", "+0000000000000000000000000000000000000000"},
		{
			"RL.TOKEN a 10 1 1s",
			"*5…",
		}, {"RL.FIXED b 10 1h", "*5…"}, {"RL.SLIDE c 10 1h", "*5…"}, {"RL.TOKEN a2 10 1 1s", "*5…"},
	})
	assert.Equal(t, c.Do("DEBUG DIGEST-VALUE a"), c.Do("DEBUG DIGEST-VALUE a2"))
	all, each := c.Do("DEBUG DIGEST"), c.Do("DEBUG DIGEST-VALUE a b c a2")
	c.Check([]resptest.Answer{
		{"MULTI", "+OK"}, {"DEBUG DIGEST", "+QUEUED"}, {"EXEC", "*1 " + all},
		{"DEBUG RELOAD", "+OK"}, {"DEBUG DIGEST", all}, {"DEBUG DIGEST-VALUE a b c a2", each}, {"DBSIZE", ":4"},
		{"RL.TOKEN a 10 1 1s COST 0", "*5 :1 :10 :9 :0 :1000"},
		{"RL.TOKEN a 10 1 1s", "*5 :1 :10 :8 :0 :2000"},
	})
	assert.NotEqual(t, all, c.Do("DEBUG DIGEST"))
}

// A call that waits for a key still waits after the key has been reloaded.
func TestDebugReloadKeepsWaiters(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{"enable-debug-command": "yes"})
	c, waiting := ts.Dial(), ts.Dial()
	c.Check([]resptest.Answer{{"RL.LEASE jobs 1 1h one", "*5 :1…"}})
	_, err := waiting.Write([]byte("RL.LEASE jobs 1 1h two WAIT 1h\r\n"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return ts.Queues().Waiting.Load() == 1 }, time.Minute, time.Millisecond)
	c.Check([]resptest.Answer{{"DEBUG RELOAD", "+OK"}, {"RL.RELEASE jobs one", ":1"}})
	assert.Contains(t, waiting.Read(), "*5 :1 ")
}

func TestDebugReloadSaves(t *testing.T) {
	// a snapshot is running: DEBUG RELOAD starts its own after it
	store := &resptest.Store{Errs: []error{storage.ErrBusy}}
	ts := resptest.Start(t, config.Defaults{"enable-debug-command": "yes"}, resptest.With(store))
	c := ts.Dial()
	c.Check([]resptest.Answer{
		{"SET k v", "+OK"}, {"DEBUG RELOAD", "+OK"}, {"GET k", "$1 v"},
		{"DEBUG RELOAD NOSAVE", "-ERR wrong number of arguments for 'debug|reload' command"},
	})
	assert.Equal(t, "save", store.Taken())
	store.Set(func() { store.Errs = []error{commandtest.ErrDisk} })
	c.Check([]resptest.Answer{
		{"DEBUG RELOAD", "-ERR the snapshot failed: the server's log says why"}, {"GET k", "$1 v"},
	})
}

// All keys are rebuilt: meanwhile all processors are used, not before and not afterwards.
func TestDebugReloadUsesAllProcessors(t *testing.T) {
	store, long, begun := new(resptest.Store), 0, 0
	ts := resptest.Start(t, config.Defaults{"enable-debug-command": "yes"}, resptest.With(store),
		func(o *resp.Options) {
			o.LongCall = func() func() {
				assert.Equal(t, "save", store.Taken())
				begun++
				long++
				return func() { long-- }
			}
		})
	c := ts.Dial()
	c.Check([]resptest.Answer{{"SET k v", "+OK"}, {"DEBUG RELOAD", "+OK"}, {"GET k", "$1 v"}})
	assert.Equal(t, 1, begun)
	assert.Zero(t, long)
}

// Lengths are those of Redis for encodings that do not compress. The call is no access of the key.
func TestDebugObject(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{"enable-debug-command": "yes"})
	c := ts.Dial()
	const long = "qwertyuiopasdfghjklzxcvbnm1234567890QWERTYUIOPASDFGHJKLZXCVBNM-=[];,./_+"
	for _, step := range []struct {
		call, key string
		want      string
	}{
		{"SET s hello", "s", "refcount:1 encoding:embstr serializedlength:6"},
		{"SET i 12345", "i", "refcount:1 encoding:int serializedlength:3"},
		{"SET shared 100", "shared", "refcount:2147483647 encoding:int serializedlength:2"},
		{"SET i 123456", "i", "refcount:1 encoding:int serializedlength:5"},
		{"SET s " + long, "s", "refcount:1 encoding:raw serializedlength:74"},
		{"HSET h " + long + " 1 f " + long, "h", "refcount:1 encoding:hashtable serializedlength:153"},
		{"ZADD z 1.5 " + long + " 2 7", "z", "refcount:1 encoding:skiplist serializedlength:93"},
		{"RL.TOKEN t 10 1 1h", "t", "refcount:1 encoding:packed serializedlength:\\d+"},
		{"RPUSH l " + long + " 7", "l", "refcount:1 encoding:\\w+ serializedlength:77"},
		{"SADD members " + long + " 7", "members", "refcount:1 encoding:hashtable serializedlength:77"},
	} {
		c.Do(step.call)
		accessed := ts.Now.Load() / 1000 % (1 << 24)
		ts.Advance(3000)
		for range 2 {
			assert.Regexp(t, fmt.Sprintf(`^\+Value at:0x[0-9a-f]+ %s lru:%d lru_seconds_idle:3$`, step.want, accessed),
				c.Do("DEBUG OBJECT "+step.key))
		}
		length := regexp.MustCompile(`serializedlength:(\d+)`).FindStringSubmatch(c.Do("DEBUG OBJECT " + step.key))[1]
		n, err := strconv.Atoi(length)
		require.NoError(t, err)
		assert.Contains(t, c.Do("DUMP "+step.key), fmt.Sprintf("$%d ", n+11), "with type and footer")
	}
	c.Check([]resptest.Answer{{"DEBUG OBJECT nope", "-ERR no such key"}})
}

func TestEnableDebugCommand(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	for _, line := range []string{"DIGEST", "DIGEST-VALUE k", "ERROR x", "OBJECT k", "RELOAD", "SLEEP 0", "LOG x",
		"HELP", "SET-ACTIVE-EXPIRE 1"} {
		assert.Equal(t, "-"+string(server.ErrDebugNotAllowed), c.Do("DEBUG "+line))
	}
}

func TestDebug(t *testing.T) {
	for allowed, calls := range map[string][]resptest.Answer{
		"no": {
			{"DEBUG SLEEP 0", "-ERR DEBUG command not allowed. If the enable-debug-command option is set to " +
				"\"local\", you can run it from a local connection, " +
				"otherwise you need to set this option in the configuration file, and then restart the server."},
			{"DEBUG log hello", "-ERR DEBUG command not allowed.…"},
			{"DEBUG HELP", "-ERR DEBUG command not allowed.…"},
		},
		"local": {
			{"DEBUG SLEEP 0.01", "+OK"},
			{"DEBUG SLEEP x", "-ERR value is not a valid float"},
			{"DEBUG LOG hello", "+OK"},
			{"DEBUG SET-ACTIVE-EXPIRE 0", "+OK"},
			{"DEBUG SET-ACTIVE-EXPIRE x", "-ERR value is not an integer or out of range"},
			{"DEBUG NOPE", "-ERR unknown subcommand 'NOPE'. Try DEBUG HELP."},
			{"DEBUG HELP", "*21 +DEBUG …"},
		},
	} {
		resptest.Start(t, config.Defaults{"enable-debug-command": allowed}).Dial().Check(calls)
	}
}
