package server_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/storage"
	"rlserver/resp"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestSaving(t *testing.T) {
	const notSaved = "-ERR the snapshot failed: the server's log says why"
	for _, step := range []struct {
		call       string
		err        error
		want, asks string
	}{
		{"SAVE", nil, "+OK", "save"},
		{"SAVE", storage.ErrBusy, "-ERR Background save already in progress", ""},
		{"SAVE", fmt.Errorf("saving: %w", storage.ErrBusy), "-ERR Background save already in progress", ""},
		{"SAVE", commandtest.ErrDisk, notSaved, ""},
		{"SAVE x", nil, "-ERR wrong number of arguments for 'save' command", ""},
		{"BGSAVE", nil, "+Background saving started", "background"},
		{"BGSAVE schedule", nil, "+Background saving started", "background"},
		{"BGSAVE", storage.ErrBusy, "-ERR Background save already in progress", ""},
		{"BGSAVE SCHEDULE", storage.ErrBusy, "-ERR Background save already in progress", ""},
		{"BGSAVE", commandtest.ErrDisk, notSaved, ""},
		{"BGSAVE x", nil, "-ERR syntax error", ""},
		{"BGSAVE SCHEDULE x", nil, "-ERR syntax error", ""},
		{"BGREWRITEAOF", nil, "+Background append only file rewriting started", "background"},
		{"BGREWRITEAOF", storage.ErrBusy, "+Background append only file rewriting scheduled", "background"},
		{"BGREWRITEAOF", commandtest.ErrDisk, "-ERR Can't execute an AOF background rewriting. Please check the " +
			"server logs for more information.", ""},
		{"BGREWRITEAOF x", nil, "-ERR wrong number of arguments for 'bgrewriteaof' command", ""},
		{"LASTSAVE x", nil, "-ERR wrong number of arguments for 'lastsave' command", ""},
	} {
		store, log := new(resptest.Store), new(commandtest.LogBuffer)
		if step.err != nil {
			store.Errs = []error{step.err}
		}
		ts := resptest.Start(t,
			config.Defaults{},
			resptest.With(store),
			func(o *resp.Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) },
		)
		assert.Equal(t, step.want, ts.Dial().Do(step.call), "%s: %v", step.call, step.err)
		assert.Equal(t, step.asks, store.Taken(), step.call)
		assert.Equal(
			t,
			step.err == commandtest.ErrDisk,
			strings.Contains(log.String(), commandtest.ErrDisk.Error()),
			"the log has the error of the disk",
		)
	}
}

func TestSavingWithoutAStore(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	const inMemory = "-ERR this server has its data only in memory: restart it with --appendonly yes to have it on " +
		"disk"
	ts.Dial().Check([]resptest.Answer{
		{"SAVE", inMemory},
		{"BGSAVE", inMemory},
		{"BGSAVE x", "-ERR syntax error"},
		{"BGREWRITEAOF", inMemory},
		{"LASTSAVE", ":" + strconv.FormatInt(ts.Started.Unix(), 10)},
		{
			"INFO persistence",
			"$… # Persistence\r\nloading:0\r\nasync_loading:0\r\nrdb_bgsave_in_progress:0\r\naof_enabled:0\r\n" +
				"aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\nrdb_last_cow_size:0\r\n" +
				"aof_last_cow_size:0\r\n" +
				"module_fork_in_progress:0\r\nmodule_fork_last_cow_size:0\r\n",
		},
	})
}

func TestLastSave(t *testing.T) {
	store := new(resptest.Store)
	ts := resptest.Start(t, config.Defaults{}, resptest.With(store))
	c := ts.Dial()
	assert.Equal(
		t,
		":"+strconv.FormatInt(ts.Started.Unix(), 10),
		c.Do("LASTSAVE"),
		"before the first save: the start of the server",
	)
	store.Set(func() { store.State.LastSave = 1234999 })
	assert.Equal(t, ":1234", c.Do("LASTSAVE"))
}

// Snapshots take all locks, so those requested in EXEC start after it has released its own.
func TestSavingInTransactions(t *testing.T) {
	store := new(resptest.Store)
	c := resptest.Start(t, config.Defaults{}, resptest.With(store)).Dial()
	c.Check([]resptest.Answer{
		{"MULTI", "+OK"},
		{"SAVE", "-ERR Command not allowed inside a transaction"},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{"MULTI", "+OK"},
		{"SET k v", "+QUEUED"},
		{"BGSAVE", "+QUEUED"},
		{"BGREWRITEAOF", "+QUEUED"},
		{"LASTSAVE", "+QUEUED"},
		{"FLUSHALL", "+QUEUED"},
		{"EXEC", "*5 +OK +Background saving scheduled +Background append only file rewriting scheduled :… +OK"},
	})
	assert.Equal(t, "background background", store.Taken())
	c.Check([]resptest.Answer{{"PING", "+PONG"}, {"BGSAVE", "+Background saving started"}})
	assert.Equal(t, "background background background", store.Taken(), "each starts only once")

	store.Set(func() { store.State.Saving = true })
	c.Check([]resptest.Answer{
		{"MULTI", "+OK"},
		{"BGSAVE", "+QUEUED"},
		{"BGREWRITEAOF", "+QUEUED"},
		{
			"EXEC",
			"*2 -ERR Background save already in progress +Background append only file rewriting scheduled",
		},
	})
}

// The replies while another snapshot is taken are those of Redis 7.0.15. What is scheduled runs
// once, a rewrite first.
func TestSavesBesideRewrites(t *testing.T) {
	store := new(resptest.Store)
	c := resptest.Start(t, config.Defaults{}, resptest.With(store)).Dial()
	const (
		saving     = "-ERR Background save already in progress"
		rewriting  = "-ERR Background append only file rewriting already in progress"
		saveLater  = "+Background saving scheduled"
		writeLater = "+Background append only file rewriting scheduled"
		other      = "-ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in " +
			"order to schedule a BGSAVE whenever possible."
	)
	run := func(yes bool) { // a snapshot begins to run, or ends
		store.Set(func() {
			if store.State.Saving = yes; yes {
				store.Errs = slices.Repeat([]error{storage.ErrBusy}, 1e6)
			} else {
				store.Errs = nil
			}
		})
	}
	c.Check([]resptest.Answer{{"BGSAVE", "+Background saving started"}})
	run(true)
	c.Check([]resptest.Answer{
		{"BGSAVE", saving}, {"BGSAVE SCHEDULE", saving}, {"SAVE", saving}, {"BGREWRITEAOF", writeLater},
		{"BGREWRITEAOF", writeLater},
		{"INFO persistence", "$…rdb_bgsave_in_progress:1\r\n…aof_rewrite_scheduled:1\r\n…"},
	})
	run(false)
	require.Eventually(t, func() bool { return store.Taken() == "background background" }, time.Minute,
		time.Millisecond)
	c.Check([]resptest.Answer{{"BGREWRITEAOF", "+Background append only file rewriting started"}})
	run(true)
	c.Check([]resptest.Answer{
		{"BGREWRITEAOF", rewriting}, {"BGSAVE", other}, {"BGSAVE SCHEDULE", saveLater}, {"BGSAVE SCHEDULE", saveLater},
		{"INFO persistence", "$…rdb_bgsave_in_progress:0\r\n…aof_rewrite_in_progress:1\r\n" +
			"aof_rewrite_scheduled:0\r\n…"},
		{"MULTI", "+OK"}, {"BGSAVE", "+QUEUED"}, {"BGREWRITEAOF", "+QUEUED"},
		{"EXEC", "*2 " + saveLater + " " + rewriting},
	})
	run(false)
	require.Eventually(t, func() bool { return strings.Count(store.Taken(), "background") == 4 }, time.Minute,
		time.Millisecond)
}

func TestInfoPersistence(t *testing.T) {
	store := &resptest.Store{State: storage.Status{DelayedSyncs: -1}}
	ts := resptest.Start(t, config.Defaults{"appendonly": "yes"}, resptest.With(store))
	c := ts.Dial()
	body := func() string {
		_, text, _ := strings.Cut(c.Do("INFO persistence"), " ")
		return strings.ReplaceAll(text, "\r\n", "\n")
	}
	assert.Equal(t, `# Persistence
loading:0
async_loading:0
rdb_bgsave_in_progress:0
aof_enabled:1
aof_rewrite_in_progress:0
aof_rewrite_scheduled:0
rdb_last_cow_size:0
aof_last_cow_size:0
module_fork_in_progress:0
module_fork_last_cow_size:0
current_save_keys_processed:0
current_save_keys_total:0
rdb_changes_since_last_save:0
rdb_last_save_time:`+strconv.FormatInt(ts.Started.Unix(), 10)+`
rdb_last_bgsave_status:ok
rdb_last_bgsave_time_sec:-1
rdb_current_bgsave_time_sec:-1
rdb_saves:0
rdb_last_load_keys_expired:0
rdb_last_load_keys_loaded:0
aof_last_rewrite_time_sec:-1
aof_current_rewrite_time_sec:-1
aof_last_bgrewrite_status:ok
aof_last_write_status:ok
aof_current_size:0
aof_base_size:0
aof_buffer_length:0
disk_state:ok
disk_failure:
disk_failure_policy:refuse
`, body())

	store.Set(func() { store.State = storage.Status{Stalled: errors.New("the disk hangs")} })
	assert.Contains(t, body(), "\ndisk_state:stalled\ndisk_failure:the disk hangs\n")

	store.Set(func() {
		store.State = storage.Status{
			Failure: errors.New(
				"write:\r\nno space",
			), Saving: true, SaveStart: resptest.StartTime - 2999, SavedKeys: 1, KeysToSave: 2,
			Saves: 3, LastSave: resptest.StartTime - 5000,
			LastFailed: true, LastTook: 4999 * time.Millisecond, Changes: 5,
			LogBytes: 4, SnapshotBytes: 2, SizeAtSave: 7, Backlog: 8,
			DelayedSyncs: 9, Keys: 10, Expired: 11,
		}
	})
	c.Do("CONFIG SET on-disk-failure continue")
	assert.Equal(t, `# Persistence
loading:0
async_loading:0
rdb_bgsave_in_progress:1
aof_enabled:1
aof_rewrite_in_progress:1
aof_rewrite_scheduled:0
rdb_last_cow_size:0
aof_last_cow_size:0
module_fork_in_progress:0
module_fork_last_cow_size:0
current_save_keys_processed:1
current_save_keys_total:2
rdb_changes_since_last_save:5
rdb_last_save_time:1767225595
rdb_last_bgsave_status:err
rdb_last_bgsave_time_sec:4
rdb_current_bgsave_time_sec:2
rdb_saves:3
rdb_last_load_keys_expired:11
rdb_last_load_keys_loaded:10
aof_last_rewrite_time_sec:4
aof_current_rewrite_time_sec:2
aof_last_bgrewrite_status:err
aof_last_write_status:err
aof_current_size:6
aof_base_size:7
aof_buffer_length:8
aof_delayed_fsync:9
disk_state:failed
disk_failure:write:  no space
disk_failure_policy:continue
`, body())
}
