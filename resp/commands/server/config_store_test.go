package server_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/storage"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestConfigOfAStore(t *testing.T) {
	const failed = "-ERR CONFIG SET failed (possibly related to argument '"
	store := new(resptest.Store)
	c := resptest.Start(t, config.Defaults{
		"appendonly": "yes", "dir": "/var/lib/rlserver", "auto-aof-rewrite-percentage": "100",
		"auto-aof-rewrite-min-size": "64mb", "save": "3600 1 300 100",
	}, resptest.With(store)).Dial()
	c.Check([]resptest.Answer{
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
	require.Len(t, store.Configured, 1, "once for each successful CONFIG SET")
	assert.Equal(t, storage.Settings{
		Sync: storage.SyncEverySecond, GrowthPercent: 100, GrowthMin: 64 << 20,
		Save: []storage.SavePoint{{Seconds: 3600, Changes: 1}, {Seconds: 300, Changes: 100}},
	}, store.Configured[0])

	assert.Equal(
		t,
		"+OK",
		c.Send("CONFIG", "SET", "save", "900 1", "appendfsync", "ALWAYS", "auto-aof-rewrite-min-size", "1mb"),
	)
	assert.Equal(t, "+OK", c.Send("CONFIG", "SET", "auto-aof-rewrite-percentage", "0", "on-disk-failure", "continue"))
	c.Check([]resptest.Answer{
		{
			"CONFIG GET save appendfsync auto-aof-rewrite-min-size",
			"*6 $4 save $5 900 1 $11 appendfsync $6 always $25 auto-aof-rewrite-min-size $7 1048576",
		},
		{"MULTI", "+OK"},
		{"CONFIG SET appendfsync no", "+QUEUED"},
		{"EXEC", "*1 +OK"},
	})
	require.Len(t, store.Configured, 4)
	assert.Equal(
		t,
		storage.Settings{
			Sync: storage.SyncNever, Continue: true, GrowthMin: 1 << 20,
			Save: []storage.SavePoint{{Seconds: 900, Changes: 1}},
		},
		store.Configured[3],
	)

	assert.Equal(t, "+OK", c.Send("CONFIG", "SET", "save", ""))
	assert.Equal(t, "*2 $4 save $0 ", c.Send("CONFIG", "GET", "save"))
	assert.Empty(t, store.Configured[4].Save)
}

func TestConfigWithoutAStore(t *testing.T) {
	const failed = "-ERR CONFIG SET failed (possibly related to argument '"
	c := resptest.Start(t,
		config.Defaults{"appendonly": "yes", "save": "3600 1"},
	).Dial()
	c.Check([]resptest.Answer{
		{"CONFIG GET appendonly", "*2 $10 appendonly $2 no"},
		{"CONFIG SET appendonly no", "+OK"},
		{
			"CONFIG SET appendonly yes",
			failed + "appendonly') - it cannot change while the server runs: restart it with --appendonly yes",
		},
		{"CONFIG GET save", "*2 $4 save $0 "},
		{"CONFIG SET appendfsync always auto-aof-rewrite-percentage 0", "+OK"},
	})
	assert.Equal(t, "+OK", c.Send("CONFIG", "SET", "save", ""))
	assert.Equal(
		t,
		failed+"save') - there are no snapshots, as the data is only in memory: restart the server with "+
			"--appendonly yes",
		c.Send("CONFIG", "SET", "save", "900 1"),
	)
	assert.Equal(t, failed+"save') - Invalid save parameters", c.Send("CONFIG", "SET", "save", "900"))
}
