package resp

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/internal/storage"
	"rlserver/resp/config"
)

// fakeStore is a store that does what the test sets, and records its calls.
type fakeStore struct {
	refusal    atomic.Pointer[string]
	mu         sync.Mutex
	errs       []error // results of the next snapshots; if empty, they succeed
	status     storage.Status
	snapshots  []string // how each successful one was requested: save or background
	configured []storage.Settings
	locks      *engine.Engine // each snapshot takes its locks; may be nil
}

func (f *fakeStore) with(o *Options) { o.Store, f.locks = f, o.Engine }

// set changes fields of the store under its lock.
func (f *fakeStore) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeStore) Refusal() string {
	if why := f.refusal.Load(); why != nil {
		return *why
	}
	return ""
}

func (f *fakeStore) Snapshot() error             { return f.snapshot("save") }
func (f *fakeStore) SnapshotInBackground() error { return f.snapshot("background") }

func (f *fakeStore) snapshot(how string) error {
	if f.locks != nil {
		tx := f.locks.NewTx()
		tx.BeginAll(0, 0, false)
		tx.End()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return err
	}
	f.snapshots = append(f.snapshots, how)
	f.status.Saves++
	return nil
}

func (f *fakeStore) Configure(s storage.Settings) {
	f.set(func() { f.configured = append(f.configured, s) })
}

func (f *fakeStore) Status() storage.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// taken returns how the snapshots so far were requested.
func (f *fakeStore) taken() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.snapshots, " ")
}

var errDisk = errors.New("no space left on device")

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
		{"SAVE", errDisk, notSaved, ""},
		{"SAVE x", nil, "-ERR wrong number of arguments for 'save' command", ""},
		{"BGSAVE", nil, "+Background saving started", "background"},
		{"BGSAVE schedule", nil, "+Background saving started", "background"},
		{"BGSAVE", storage.ErrBusy, "-ERR Background save already in progress", ""},
		{"BGSAVE SCHEDULE", storage.ErrBusy, "-ERR Background save already in progress", ""},
		{"BGSAVE", errDisk, notSaved, ""},
		{"BGSAVE x", nil, "-ERR syntax error", ""},
		{"BGSAVE SCHEDULE x", nil, "-ERR syntax error", ""},
		{"BGREWRITEAOF", nil, "+Background append only file rewriting started", "background"},
		{"BGREWRITEAOF", storage.ErrBusy, "+Background append only file rewriting scheduled", "background"},
		{"BGREWRITEAOF", errDisk, "-ERR Can't execute an AOF background rewriting. Please check the server logs for " +
			"more information.", ""},
		{"BGREWRITEAOF x", nil, "-ERR wrong number of arguments for 'bgrewriteaof' command", ""},
		{"LASTSAVE x", nil, "-ERR wrong number of arguments for 'lastsave' command", ""},
	} {
		store, log := new(fakeStore), new(logBuffer)
		if step.err != nil {
			store.errs = []error{step.err}
		}
		ts := startServer(
			t,
			config.Defaults{},
			store.with,
			func(o *Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) },
		)
		assert.Equal(t, step.want, ts.dial().do(step.call), "%s: %v", step.call, step.err)
		assert.Equal(t, step.asks, store.taken(), step.call)
		assert.Equal(
			t,
			step.err == errDisk,
			strings.Contains(log.String(), errDisk.Error()),
			"the log has the error of the disk",
		)
	}
}

func TestSavingWithoutAStore(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	const inMemory = "-ERR this server has its data only in memory: restart it with --appendonly yes to have it on " +
		"disk"
	ts.dial().check([]answer{
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
	store := new(fakeStore)
	ts := startServer(t, config.Defaults{}, store.with)
	c := ts.dial()
	assert.Equal(
		t,
		":"+strconv.FormatInt(ts.Started.Unix(), 10),
		c.do("LASTSAVE"),
		"before the first save: the start of the server",
	)
	store.set(func() { store.status.LastSave = 1234999 })
	assert.Equal(t, ":1234", c.do("LASTSAVE"))
}

// Snapshots take all locks, so those requested in EXEC start after it has released its own.
func TestSavingInTransactions(t *testing.T) {
	store := new(fakeStore)
	c := startServer(t, config.Defaults{}, store.with).dial()
	c.check([]answer{
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
	assert.Equal(t, "background background", store.taken())
	c.check([]answer{{"PING", "+PONG"}, {"BGSAVE", "+Background saving started"}})
	assert.Equal(t, "background background background", store.taken(), "each starts only once")

	store.set(func() { store.status.Saving = true })
	c.check([]answer{
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
	store := new(fakeStore)
	c := startServer(t, config.Defaults{}, store.with).dial()
	const (
		saving     = "-ERR Background save already in progress"
		rewriting  = "-ERR Background append only file rewriting already in progress"
		saveLater  = "+Background saving scheduled"
		writeLater = "+Background append only file rewriting scheduled"
		other      = "-ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in " +
			"order to schedule a BGSAVE whenever possible."
	)
	run := func(yes bool) { // a snapshot begins to run, or ends
		store.set(func() {
			if store.status.Saving = yes; yes {
				store.errs = slices.Repeat([]error{storage.ErrBusy}, 1e6)
			} else {
				store.errs = nil
			}
		})
	}
	c.check([]answer{{"BGSAVE", "+Background saving started"}})
	run(true)
	c.check([]answer{
		{"BGSAVE", saving}, {"BGSAVE SCHEDULE", saving}, {"SAVE", saving}, {"BGREWRITEAOF", writeLater},
		{"BGREWRITEAOF", writeLater},
		{"INFO persistence", "$…rdb_bgsave_in_progress:1\r\n…aof_rewrite_scheduled:1\r\n…"},
	})
	run(false)
	require.Eventually(t, func() bool { return store.taken() == "background background" }, time.Minute,
		time.Millisecond)
	c.check([]answer{{"BGREWRITEAOF", "+Background append only file rewriting started"}})
	run(true)
	c.check([]answer{
		{"BGREWRITEAOF", rewriting}, {"BGSAVE", other}, {"BGSAVE SCHEDULE", saveLater}, {"BGSAVE SCHEDULE", saveLater},
		{"INFO persistence", "$…rdb_bgsave_in_progress:0\r\n…aof_rewrite_in_progress:1\r\n" +
			"aof_rewrite_scheduled:0\r\n…"},
		{"MULTI", "+OK"}, {"BGSAVE", "+QUEUED"}, {"BGREWRITEAOF", "+QUEUED"},
		{"EXEC", "*2 " + saveLater + " " + rewriting},
	})
	run(false)
	require.Eventually(t, func() bool { return strings.Count(store.taken(), "background") == 4 }, time.Minute,
		time.Millisecond)
}

// When the disk has failed, changes are refused and reads are served. As in Redis, PING is refused
// too, so that health checks notice.
func TestDiskFailure(t *testing.T) {
	store := new(fakeStore)
	ts := startServer(t, config.Defaults{}, store.with)
	c, before, watching := ts.dial(), ts.dial(), ts.dial()
	c.do("SET k v")
	before.do("MULTI")
	before.do("SET k 2")
	watching.do("WATCH k")
	watching.do("MULTI")
	watching.do("PING")
	watching.do("GET k")
	refusal := "Errors writing to the log: no space left on device"
	store.refusal.Store(&refusal)

	why := "MISCONF " + refusal
	c.check([]answer{
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
	before.check([]answer{
		{"SET k 3", "-" + why},
		{"EXEC", "-EXECABORT Transaction discarded because of: " + why},
		{"EXEC", "-ERR EXEC without MULTI"},
		{"GET k", "$1 v"},
	})
	watching.check([]answer{{"EXEC", "*2 +PONG $1 v"}})

	store.refusal.Store(nil)
	c.check([]answer{{"SET k 1", "+OK"}, {"PING", "+PONG"}})
}

func TestLoading(t *testing.T) {
	store := &fakeStore{status: storage.Status{ToLoad: 1000, Loaded: 249}}
	ts := startServer(t, config.Defaults{Password: "secret"}, store.with)
	ts.SetLoading(true)
	const loading = "-LOADING Redis is loading the dataset in memory"
	c := ts.dial()
	c.check([]answer{
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
		c.do("INFO persistence"),
		"loading_total_bytes:1000\r\nloading_loaded_bytes:249\r\nloading_loaded_perc:24.90\r\n"+
			"loading_eta_seconds:1\r\n",
	)
	ts.advance(10_000)
	assert.Contains(t, c.do("INFO persistence"), "\r\nloading:1\r\nasync_loading:0\r\n")
	assert.Contains(t, c.do("INFO persistence"), "loading_start_time:1767225600\r\nloading_total_bytes:1000\r\n")
	assert.Contains(t, c.do("INFO persistence"), "loading_eta_seconds:30\r\n")

	c.do("MULTI")
	c.do("SELECT 1")
	ts.SetLoading(false)
	c.check([]answer{{"GET k", "+QUEUED"}})
	ts.SetLoading(true)
	c.check(
		[]answer{
			{"EXEC", "-EXECABORT Transaction discarded because of: LOADING Redis is loading the dataset in memory"},
		},
	)
	ts.SetLoading(false)
	c.check([]answer{{"GET k", "$-1"}, {"SAVE", "+OK"}})
	assert.NotContains(t, c.do("INFO persistence"), "loading_")
}

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
		{"SHUTDOWN SAVE", []error{storage.ErrBusy, errDisk}, false, "-ERR Errors trying to SHUTDOWN. Check logs.", ""},
		{"SHUTDOWN SAVE FORCE", []error{errDisk}, false, "", ""},
		{"SHUTDOWN SAVE", nil, true, "", ""},
		{"SHUTDOWN SAVE ABORT", nil, false, "-ERR syntax error", ""},
	} {
		store := &fakeStore{errs: step.errs}
		ts := startServer(t, config.Defaults{}, store.with)
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
		assert.Equal(t, step.taken, store.taken(), step.call)
	}
}

func TestInfoPersistence(t *testing.T) {
	store := &fakeStore{status: storage.Status{DelayedSyncs: -1}}
	ts := startServer(t, config.Defaults{AppendOnly: true}, store.with)
	c := ts.dial()
	body := func() string {
		_, text, _ := strings.Cut(c.do("INFO persistence"), " ")
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

	store.set(func() {
		store.status = storage.Status{
			Failure: errors.New(
				"write:\r\nno space",
			), Saving: true, SaveStart: testStart - 2999, SavedKeys: 1, KeysToSave: 2,
			Saves: 3, LastSave: testStart - 5000,
			LastFailed: true, LastTook: 4999 * time.Millisecond, Changes: 5,
			LogBytes: 4, SnapshotBytes: 2, SizeAtSave: 7, Backlog: 8,
			DelayedSyncs: 9, Keys: 10, Expired: 11,
		}
	})
	c.do("CONFIG SET on-disk-failure continue")
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

func TestConfigOfAStore(t *testing.T) {
	const failed = "-ERR CONFIG SET failed (possibly related to argument '"
	store := new(fakeStore)
	c := startServer(t, config.Defaults{
		AppendOnly: true, Dir: "/var/lib/rlserver", RewritePercentage: 100, RewriteMinSize: 64 << 20,
		Save: []storage.SavePoint{{Seconds: 3600, Changes: 1}, {Seconds: 300, Changes: 100}},
	}, store.with).dial()
	c.check([]answer{
		{"CONFIG GET append*", "*4 $10 appendonly $3 yes $11 appendfsync $8 everysec"},
		{"CONFIG SET appendonly YES", "+OK"},
		{
			"CONFIG SET appendonly no",
			failed + "appendonly') - it cannot change while the server runs: restart it with --appendonly no",
		},
		{"CONFIG SET appendonly maybe", failed + "appendonly') - argument must be 'yes' or 'no'"},
		{"CONFIG GET dir", "*2 $3 dir $17 /var/lib/rlserver"},
		{"CONFIG SET dir /tmp", failed + "dir') - can't set immutable config"},
		{
			"CONFIG SET appendfsync nope",
			failed + "appendfsync') - argument(s) must be one of the following: everysec, always, no",
		},
		{
			"CONFIG SET on-disk-failure nope",
			failed + "on-disk-failure') - argument(s) must be one of the following: refuse, continue",
		},
		{
			"CONFIG SET auto-aof-rewrite-percentage -1",
			failed + "auto-aof-rewrite-percentage') - argument must be between 0 and 2147483647 inclusive",
		},
		{
			"CONFIG SET auto-aof-rewrite-percentage x",
			failed + "auto-aof-rewrite-percentage') - argument couldn't be parsed into an integer",
		},
		{
			"CONFIG SET auto-aof-rewrite-min-size 1x",
			failed + "auto-aof-rewrite-min-size') - argument must be a memory value",
		},
		{
			"CONFIG GET auto-aof-*",
			"*4 $27 auto-aof-rewrite-percentage $3 100 $25 auto-aof-rewrite-min-size $8 67108864",
		},
		{"CONFIG GET save", "*2 $4 save $14 3600 1 300 100"},
	})
	require.Len(t, store.configured, 1, "once for each successful CONFIG SET")
	assert.Equal(t, storage.Settings{
		Sync: storage.SyncEverySecond, GrowthPercent: 100, GrowthMin: 64 << 20,
		Save: []storage.SavePoint{{Seconds: 3600, Changes: 1}, {Seconds: 300, Changes: 100}},
	}, store.configured[0])

	assert.Equal(
		t,
		"+OK",
		c.send("CONFIG", "SET", "save", "900 1", "appendfsync", "ALWAYS", "auto-aof-rewrite-min-size", "1mb"),
	)
	assert.Equal(t, "+OK", c.send("CONFIG", "SET", "auto-aof-rewrite-percentage", "0", "on-disk-failure", "continue"))
	c.check([]answer{
		{
			"CONFIG GET save appendfsync auto-aof-rewrite-min-size",
			"*6 $4 save $5 900 1 $11 appendfsync $6 always $25 auto-aof-rewrite-min-size $7 1048576",
		},
		{"MULTI", "+OK"},
		{"CONFIG SET appendfsync no", "+QUEUED"},
		{"EXEC", "*1 +OK"},
	})
	require.Len(t, store.configured, 4)
	assert.Equal(
		t,
		storage.Settings{
			Sync: storage.SyncNever, Continue: true, GrowthMin: 1 << 20,
			Save: []storage.SavePoint{{Seconds: 900, Changes: 1}},
		},
		store.configured[3],
	)

	assert.Equal(t, "+OK", c.send("CONFIG", "SET", "save", ""))
	assert.Equal(t, "*2 $4 save $0 ", c.send("CONFIG", "GET", "save"))
	assert.Empty(t, store.configured[4].Save)
}

func TestConfigWithoutAStore(t *testing.T) {
	const failed = "-ERR CONFIG SET failed (possibly related to argument '"
	c := startServer(
		t,
		config.Defaults{AppendOnly: true, Save: []storage.SavePoint{{Seconds: 3600, Changes: 1}}},
	).dial()
	c.check([]answer{
		{"CONFIG GET appendonly", "*2 $10 appendonly $2 no"},
		{"CONFIG SET appendonly no", "+OK"},
		{
			"CONFIG SET appendonly yes",
			failed + "appendonly') - it cannot change while the server runs: restart it with --appendonly yes",
		},
		{"CONFIG GET save", "*2 $4 save $0 "},
		{"CONFIG SET appendfsync always auto-aof-rewrite-percentage 0", "+OK"},
	})
	assert.Equal(t, "+OK", c.send("CONFIG", "SET", "save", ""))
	assert.Equal(
		t,
		failed+"save') - there are no snapshots, as the data is only in memory: restart the server with "+
			"--appendonly yes",
		c.send("CONFIG", "SET", "save", "900 1"),
	)
	assert.Equal(t, failed+"save') - Invalid save parameters", c.send("CONFIG", "SET", "save", "900"))
}

func TestParseSavePoints(t *testing.T) {
	for text, want := range map[string]config.SavePoints{
		"": nil, "900 1": {{Seconds: 900, Changes: 1}}, "900 0": {{Seconds: 900, Changes: 0}},
		"+900 +1": {{Seconds: 900, Changes: 1}},
		"3600 1 300 100 60 10000": {{Seconds: 3600, Changes: 1}, {Seconds: 300, Changes: 100},
			{Seconds: 60, Changes: 10000}},
	} {
		got, err := config.ParseSavePoints(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
		assert.Equal(t, strings.ReplaceAll(text, "+", ""), got.String())
	}
	for _, text := range []string{"900", " ", " 900 1", "900 1 ", "900  1", "0 1", "-1 1", "900 -1", "900 x", "x 1",
		"900 1 5", "900 1.5", "9223372036854775808 1"} {
		_, err := config.ParseSavePoints(text)
		assert.Equal(t, config.ErrSavePoints, err, text)
	}
}

// brokenJournal accepts all effects, and fails to make them durable.
type brokenJournal struct{}

func (brokenJournal) Append(int64, []byte) engine.Position { return 1 }
func (brokenJournal) Wait(engine.Position) error           { return errDisk }

// If the journal fails, the calls that depend on it get errors, and the error is logged once a
// second.
func TestBrokenJournal(t *testing.T) {
	log := new(logBuffer)
	ts := startServer(t, config.Defaults{}, func(o *Options) {
		o.Journal, o.Engine = brokenJournal{}, engine.New(engine.Options{Journal: brokenJournal{}})
		o.Log = slog.New(slog.NewTextHandler(log, nil))
	})
	reported := func() int { return strings.Count(log.String(), errDisk.Error()) }
	lost := "-MISCONF the changes of this call, or those that it shows, may be lost: " + errDisk.Error()
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
