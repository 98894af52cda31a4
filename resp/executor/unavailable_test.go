package executor_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/internal/storage"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// When the disk has failed, changes are refused and reads are served. As in Redis, PING is refused
// too, so that health checks notice.
func TestDiskFailure(t *testing.T) {
	store := new(commandtest.Store)
	ts := resptest.Start(t, config.Defaults{}, resptest.With(store))
	c, before, watching := ts.Dial(), ts.Dial(), ts.Dial()
	c.Do("SET k v")
	before.Do("MULTI")
	before.Do("SET k 2")
	watching.Do("WATCH k")
	watching.Do("MULTI")
	watching.Do("PING")
	watching.Do("GET k")
	refusal := "Errors writing to the log: no space left on device"
	store.Why.Store(&refusal)

	why := "MISCONF " + refusal
	c.Check([]resptest.Answer{
		{"SET k 1", "-" + why},
		{"RL.SLIDE l 1 1m", "-" + why},
		{"RL.SLIDE l 1 1m COST x", "-" + why},
		{"DEL nope", "-" + why},
		{"FLUSHALL", "-" + why},
		{"PING", "-" + why},
		{"SET k", "-ERR wrong number of arguments for 'set' command"},
		{"GET k", "$1 v"},
		{"ECHO hi", "$2 hi"},
		{"CONFIG SET timeout 0", "+OK"},
		{"BGSAVE", "+Background saving started"},
		{"WATCH k", "+OK"},
		{"MULTI", "+OK"},
		{"GET k", "+QUEUED"},
		{"SET k 1", "-" + why},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{"MULTI", "+OK"},
		{"GET k", "+QUEUED"},
		{"PING", "-" + why},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{"MULTI", "+OK"},
		{"GET k", "+QUEUED"},
		{"EXEC", "*1 $1 v"},
	})
	before.Check([]resptest.Answer{
		{"SET k 3", "-" + why},
		{"EXEC", "-EXECABORT Transaction discarded because of: " + why},
		{"EXEC", "-ERR EXEC without MULTI"},
		{"GET k", "$1 v"},
	})
	watching.Check([]resptest.Answer{{"EXEC", "*2 +PONG $1 v"}})

	store.Why.Store(nil)
	c.Check([]resptest.Answer{{"SET k 1", "+OK"}, {"PING", "+PONG"}})
}

func TestLoading(t *testing.T) {
	store := &commandtest.Store{State: storage.Status{ToLoad: 1000, Loaded: 249}}
	ts := resptest.Start(t, config.Defaults{"requirepass": "secret"}, resptest.With(store))
	ts.SetLoading(true)
	const loading = "-LOADING Redis is loading the dataset in memory"
	c := ts.Dial()
	c.Check([]resptest.Answer{
		{"GET k", "-NOAUTH Authentication required."},
		{"AUTH secret", "+OK"},
		{"PING", loading},
		{"GET k", loading},
		{"RL.SLIDE k 1 1m", loading},
		{"SAVE", loading},
		{"BGSAVE", loading},
		{"BGREWRITEAOF", loading},
		{"NOPE", "-ERR unknown command 'NOPE', with args beginning with: "},
		{"GET", "-ERR wrong number of arguments for 'get' command"},
		{"SELECT 1", "+OK"},
		{"WATCH k", "+OK"},
		{"LASTSAVE", ":…"},
		{"MULTI", "+OK"},
		{"GET k", loading},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{"MULTI", "+OK"},
		{"SAVE", "-ERR Command not allowed inside a transaction"},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{"MULTI", "+OK"},
		{"SELECT 1", "+QUEUED"},
		{"EXEC", "*1 +OK"},
	})
	assert.Contains(
		t,
		c.Do("INFO persistence"),
		"loading_total_bytes:1000\r\nloading_loaded_bytes:249\r\nloading_loaded_perc:24.90\r\n"+
			"loading_eta_seconds:1\r\n",
	)
	ts.Advance(10_000)
	assert.Contains(t, c.Do("INFO persistence"), "\r\nloading:1\r\nasync_loading:0\r\n")
	assert.Contains(t, c.Do("INFO persistence"), "loading_start_time:1767225600\r\nloading_total_bytes:1000\r\n")
	assert.Contains(t, c.Do("INFO persistence"), "loading_eta_seconds:30\r\n")

	c.Do("MULTI")
	c.Do("SELECT 1")
	ts.SetLoading(false)
	c.Check([]resptest.Answer{{"GET k", "+QUEUED"}})
	ts.SetLoading(true)
	c.Check(
		[]resptest.Answer{
			{"EXEC", "-EXECABORT Transaction discarded because of: LOADING Redis is loading the dataset in memory"},
		},
	)
	ts.SetLoading(false)
	c.Check([]resptest.Answer{{"GET k", "$-1"}, {"SAVE", "+OK"}})
	assert.NotContains(t, c.Do("INFO persistence"), "loading_")
}
