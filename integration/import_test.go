package integration

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// importing is an import of a test: its state file is in a directory of its own.
type importing struct {
	t    *testing.T
	args []string
}

func newImport(t *testing.T, from, to string, flags ...string) importing {
	state := filepath.Join(t.TempDir(), "state")
	return importing{t, append([]string{"import", from, "--to", to, "--state", state}, flags...)}
}

// run runs the import and returns whether it succeeded, and its output.
func (i importing) run(flags ...string) (ok bool, output string) {
	i.t.Helper()
	out, err := rlserver(i.t, append(slices.Clone(i.args), flags...)...).CombinedOutput()
	return err == nil, string(out)
}

// url returns the address of a server for an import.
func (s *server) url() string { return "redis://" + s.addr }

// eachSource runs a test with a source that is a server of ours and, in make live, a real Redis.
func eachSource(t *testing.T, test func(t *testing.T, start launcher)) {
	t.Run("rlserver", func(t *testing.T) { test(t, startServer) })
	if os.Getenv("TRANSCRIPT_LIVE") != "" {
		t.Run("redis", func(t *testing.T) { test(t, startRedis) })
	}
}

// fillSource writes keys of all kinds, and returns their number.
func fillSource(t *testing.T, rdb redis.UniversalClient, tag string) int {
	t.Helper()
	const each = 300
	ctx := t.Context()
	pipe := rdb.Pipeline()
	for i := range each {
		pipe.Set(ctx, fmt.Sprint(tag, "string ", i), strings.Repeat("v", i), time.Duration(i%3)*time.Hour)
		pipe.HSet(ctx, fmt.Sprint(tag, "hash:", i), "n", i, "\x00\xff", "binary", "text", strings.Repeat("t", i))
		pipe.ZAdd(ctx, fmt.Sprint(tag, "zset:", i), redis.Z{Score: float64(i) / 3, Member: "a"},
			redis.Z{Score: math.Inf(-1), Member: "\r\n"})
		pipe.PExpireAt(ctx, fmt.Sprint(tag, "zset:", i), time.UnixMilli(4102444800123))
	}
	pipe.Set(ctx, tag+"\x00 \xff\r\n*1", "a key of any bytes", 0)
	long := make([]redis.Z, 5000)
	for i := range long {
		long[i] = redis.Z{Score: float64(i), Member: fmt.Sprint("member", i)}
	}
	pipe.ZAdd(ctx, tag+"long", long...)
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
	return 3*each + 2
}

// requireSame requires that a server has all keys of another, with the same values and deadlines.
func requireSame(t *testing.T, want, got redis.UniversalClient, keys []string) {
	t.Helper()
	ctx := t.Context()
	for _, key := range keys {
		kind := want.Type(ctx, key).Val()
		require.Equal(t, kind, got.Type(ctx, key).Val(), "%q", key)
		switch kind {
		case "string":
			require.Equal(t, want.Get(ctx, key).Val(), got.Get(ctx, key).Val(), "%q", key)
		case "hash":
			require.Equal(t, want.HGetAll(ctx, key).Val(), got.HGetAll(ctx, key).Val(), "%q", key)
		case "zset":
			require.Equal(t, want.ZRangeWithScores(ctx, key, 0, -1).Val(), got.ZRangeWithScores(ctx, key, 0, -1).Val(),
				"%q", key)
		default:
			require.Fail(t, "no such type", "%q: %s", key, kind)
		}
		require.InDelta(t, int64(want.PExpireTime(ctx, key).Val()), int64(got.PExpireTime(ctx, key).Val()),
			float64(2*time.Millisecond), "%q", key)
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	eachSource(t, func(t *testing.T, start launcher) {
		source, target := start(t), startServer(t)
		from := source.connect(t, func(o *redis.Options) { o.DB = 3 })
		to := target.connect(t, func(o *redis.Options) { o.DB = 5 })
		keys := fillSource(t, from, "")
		require.NoError(t, source.connect(t).Set(t.Context(), "in another database", 1, 0).Err())
		require.NoError(t, to.Set(t.Context(), "long", "was there", 0).Err())

		i := newImport(t, source.url()+"/3", target.url()+"/5")
		ok, out := i.run()
		require.True(t, ok, out)
		assert.Contains(t, out, fmt.Sprintf("copied %d keys, ", keys-1))
		assert.Contains(t, out, ": 300 hash, 301 string, 300 zset\n")
		assert.Contains(t, out, "skipped 1 key that the target has: --replace overwrites them\n")
		assert.NotContains(t, out, "clock")
		assert.Equal(t, "was there", to.Get(t.Context(), "long").Val())
		assert.NoFileExists(t, i.args[5])

		ok, out = i.run("--replace", "--match", "l*")
		require.True(t, ok, out)
		assert.Contains(t, out, "copied 1 key, ")
		requireSame(t, from, to, from.Keys(t.Context(), "*").Val())
		assert.EqualValues(t, keys, to.DBSize(t.Context()).Val())
		assert.EqualValues(t, 0, target.connect(t).DBSize(t.Context()).Val(), "the other databases are as they were")
	})
}

// What a target cannot take is left out and reported.
func TestImportReportsWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	eachSource(t, func(t *testing.T, start launcher) {
		source, target := start(t), startServer(t, "--proto-max-bulk-len", "1mb")
		from, to := source.connect(t), target.connect(t)
		keys := fillSource(t, from, "")
		noise := make([]byte, 3<<20)
		for i := range noise {
			noise[i] = byte(rand.Uint32())
		}
		require.NoError(t, from.Set(t.Context(), "too large", noise, 0).Err())
		reported := []string{
			"rlserver: 1 key of the source were left out",
			"  1 of type string, as \"too large\": too large: the target closes the connection when it gets the value",
		}
		hasStreams := from.Do(t.Context(), "XADD", "events \x00", "*", "a", "b").Err() == nil
		if hasStreams {
			reported = append(reported[1:], "rlserver: 2 keys of the source were left out", "  1 of type stream, as "+
				`"events \x00": ERR Bad data format: the payload holds a stream, which this server has no type for`)
		}
		i := newImport(t, source.url(), target.url())
		ok, out := i.run()
		require.False(t, ok, out)
		for _, text := range reported {
			assert.Contains(t, out, text)
		}
		assert.NoFileExists(t, i.args[5], "another run would leave out the same")
		assert.EqualValues(t, keys, to.DBSize(t.Context()).Val())
	})
}

// A source that does not send a large value is not taken for one that has died.
func TestImportFromASourceThatClosesConnections(t *testing.T) {
	t.Parallel()
	source, target := startServer(t, "--client-output-buffer-limit", "normal 1mb 0 0"), startServer(t)
	keys := fillSource(t, source.connect(t), "")
	require.NoError(t, source.connect(t).Set(t.Context(), "large", strings.Repeat("0123", 1<<20), 0).Err())
	ok, out := newImport(t, source.url(), target.url()).run()
	require.False(t, ok, out)
	assert.Contains(t, out, `as "large": the source closes the connection when it is read`)
	assert.EqualValues(t, keys, target.connect(t).DBSize(t.Context()).Val())
}

func TestImportLogsIn(t *testing.T) {
	t.Parallel()
	source, dir := startTLSServer(t, "--user", "reader on >secret ~* -@all +@connection +scan +type "+
		"+memory|usage +time +pttl +pexpiretime +dump +multi +exec +info +dbsize +cluster|slots",
		"--user", "default off")
	target := startServer(t, "--user", "writer on >hidden ~* -@all +@connection +restore +exists +time +info "+
		"+cluster|slots", "--user", "default on nopass ~* +@all")
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("hidden\n"), 0o600))
	to := strings.Replace(target.url(), "://", "://writer@", 1)
	login := func(user string) string { return "rediss://" + user + "@" + source.addr }
	flags := []string{
		"--to-password-file", password, "--from-ca", dir + "/ca.crt",
		"--from-cert", dir + "/client.crt", "--from-key", dir + "/client.key",
	}
	ok, out := newImport(t, login("reader:secret"), to, flags...).run()
	require.True(t, ok, out)
	assert.Contains(t, out, "copied 0 keys")

	for _, refused := range []struct {
		from, to string
		flags    []string
		want     string
	}{
		{login("reader:wrong"), to, flags, "rlserver: the source: WRONGPASS "},
		{login("reader:secret"), strings.Replace(target.url(), "://", "://writer:wrong@", 1), flags[2:],
			"rlserver: the target: WRONGPASS "},
		{login("reader:secret"), to, flags[:4], "rlserver: the source: remote error: tls: certificate required"},
		{login("reader:secret"), to, flags[:2], "rlserver: the source: x509: certificate signed by unknown authority"},
	} {
		ok, out := newImport(t, refused.from, refused.to, refused.flags...).run()
		assert.False(t, ok)
		assert.Contains(t, out, refused.want)
		assert.NotContains(t, out, "secret")
		assert.Equal(t, 1, strings.Count(out, "\n"), out)
	}
}

func TestImportIntoAndFromACluster(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	source, target := startServer(t), startServer(t)
	c := startCluster(t, 3)
	keys := fillSource(t, source.connect(t), "")
	ok, out := newImport(t, source.url(), "redis://"+c.address(1)).run()
	require.True(t, ok, out)
	assert.Contains(t, out, fmt.Sprintf("copied %d keys, ", keys))
	names := source.connect(t).Keys(t.Context(), "*").Val()
	requireSame(t, source.connect(t), c.clusterClient(), names)

	back := newImport(t, "redis://"+c.address(2), target.url())
	await(t, func() bool { // leaders may move once more
		ok, out = back.run()
		if !ok {
			require.Contains(t, out, "run this command again")
		}
		return ok
	})
	requireSame(t, source.connect(t), target.connect(t), names)
	assert.EqualValues(t, keys, target.connect(t).DBSize(t.Context()).Val())
}

// stopped starts an import that takes long, ends it in the middle by a function, and returns its
// output.
func (i importing) stopped(to *redis.Client, end func(p *process)) string {
	i.t.Helper()
	p := start(i.t, rlserver(i.t, append(slices.Clone(i.args), "--keys-per-second", "500")...))
	await(i.t, func() bool {
		_, err := os.Stat(i.args[5])
		return err == nil && to.DBSize(i.t.Context()).Val() > 500
	})
	end(p)
	assert.Equal(i.t, 1, p.exitCode(i.t))
	assert.FileExists(i.t, i.args[5])
	return p.output()
}

func fillMany(t *testing.T, rdb *redis.Client) (keys int) {
	t.Helper()
	keys = 20_000
	pipe := rdb.Pipeline()
	for i := range keys {
		pipe.Set(t.Context(), fmt.Sprint("key", i), i, 0)
	}
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	return keys
}

func TestImportGoesOnAfterASignal(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	eachSource(t, func(t *testing.T, start launcher) {
		source, target := start(t), startServer(t)
		to := target.connect(t)
		keys := fillMany(t, source.connect(t))
		i := newImport(t, source.url(), target.url())
		out := i.stopped(to, func(p *process) { _ = p.cmd.Process.Signal(syscall.SIGINT) })
		assert.Contains(t, out, "rlserver: interrupted: run this command again to go on")
		assert.Contains(t, out, "copied ")
		require.Less(t, to.DBSize(t.Context()).Val(), int64(keys))

		other := newImport(t, source.url(), target.url(), "--replace")
		other.args[5] = i.args[5]
		ok, out := other.run()
		require.False(t, ok)
		assert.Contains(t, out, "it is of another import")

		ok, out = i.run()
		require.True(t, ok, out)
		assert.Contains(t, out, "rlserver: the import goes on after ")
		assert.EqualValues(t, keys, to.DBSize(t.Context()).Val())
		assert.NoFileExists(t, i.args[5])
	})
}

// A target that has died may have lost keys that it had taken, as one without a log has.
func TestImportBeginsAgainAfterTheTargetHasDied(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	source, dir := startServer(t), t.TempDir()
	target := startServer(t, "--dir", dir, "--appendonly", "no")
	keys := fillMany(t, source.connect(t))
	i := newImport(t, source.url(), target.url())
	out := i.stopped(target.connect(t), func(*process) {
		target.killed = true
		_ = target.cmd.Process.Kill()
		<-target.ended
	})
	assert.Contains(t, out, "rlserver: the target: ")
	assert.Contains(t, out, "; run this command again to go on\n")

	ok, out := i.run()
	require.False(t, ok, "the target is still away")
	assert.Contains(t, out, "rlserver: the target: dial tcp "+target.addr+": connect: connection refused")

	target = restart(t, target)
	ok, out = i.run()
	require.True(t, ok, out)
	assert.Contains(t, out, "rlserver: the import begins again: the target has restarted since")
	assert.EqualValues(t, keys, target.connect(t).DBSize(t.Context()).Val())
}

// restart starts a server that has ended again, with the same arguments.
func restart(t *testing.T, s *server) *server {
	t.Helper()
	p := start(t, exec.Command(s.cmd.Path, s.cmd.Args[1:]...))
	require.True(t, p.becomesReady(), p.output())
	t.Cleanup(func() { p.stop(t) })
	return &server{p, s.addr}
}

// The positions of SCAN mean nothing to the next process of a source.
func TestImportBeginsAgainWhenTheSourceHasRestarted(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	target := startServer(t)
	source := startServer(t, "--dir", t.TempDir(), "--appendfsync", "always")
	keys := fillMany(t, source.connect(t))
	i := newImport(t, source.url(), target.url())
	out := i.stopped(target.connect(t), func(*process) {
		source.killed = true
		_ = source.cmd.Process.Kill()
		<-source.ended
	})
	assert.Contains(t, out, "rlserver: the source: ")
	assert.Contains(t, out, "; run this command again to go on\n")

	restart(t, source)
	ok, out := i.run()
	require.True(t, ok, out)
	assert.Contains(t, out, "rlserver: the import begins again: the source has restarted since")
	assert.EqualValues(t, keys, target.connect(t).DBSize(t.Context()).Val())
}

func TestImportIntoAFullServer(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	const keys, size = 2500, 10_000
	source, target := startServer(t), startServer(t, "--maxmemory", "12mb", "--maxmemory-policy", "noeviction")
	from, to := source.connect(t), target.connect(t)
	pipe := from.Pipeline()
	for i := range keys {
		pipe.Set(t.Context(), fmt.Sprint("key", i), strings.Repeat(fmt.Sprint(i%10), size), 0)
	}
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)

	i := newImport(t, source.url(), target.url())
	ok, out := i.run()
	require.False(t, ok, out)
	assert.Contains(t, out, "rlserver: the target is full: raise its maxmemory: OOM ")
	assert.Contains(t, out, "run this command again to go on\n")
	before := to.DBSize(t.Context()).Val()
	require.Less(t, before, int64(keys))

	require.NoError(t, to.ConfigSet(context.Background(), "maxmemory", "0").Err())
	ok, out = i.run()
	require.True(t, ok, out)
	assert.EqualValues(t, keys, to.DBSize(t.Context()).Val())
	assert.NotContains(t, out, "refused")
}
