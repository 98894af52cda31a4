package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// infoValue reads a field of a section of INFO.
func infoValue(client *redis.Client, section, name string) string {
	_, rest, _ := strings.Cut(client.Info(context.Background(), section).Val(), "\n"+name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// TestANodeAnswersForAllItsGroups fills a cluster of one node and asks for what is in it.
func TestANodeAnswersForAllItsGroups(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, "--enable-debug-command", "yes")
	client := c.client(0)
	single := startServer(t, "--dir", t.TempDir(), "--enable-debug-command", "yes").connect(t)
	ctx := t.Context()
	const count = 200
	for i := range count {
		for _, to := range []*redis.Client{client, single} {
			require.NoError(t, to.Set(ctx, fmt.Sprint("key:", i), i, 0).Err())
		}
	}
	field := func(section, name string) string { return infoValue(client, section, name) }
	number := func(section, name string) int {
		t.Helper()
		n, err := strconv.Atoi(field(section, name))
		require.NoError(t, err, name)
		return n
	}

	assert.EqualValues(t, count, client.DBSize(ctx).Val())
	assert.Len(t, client.Keys(ctx, "*").Val(), count)
	assert.Equal(t, fmt.Sprintf("keys=%d,expires=0", count), field("keyspace", "db0"))
	assert.Equal(t, "1", field("cluster", "cluster_enabled"))
	assert.Equal(t, "cluster", field("server", "redis_mode"))
	assert.Greater(t, number("memory", "used_memory_dataset"), count*50)
	assert.Greater(t, number("memory", "used_memory"), count*50)
	assert.EqualValues(t, count, client.Do(ctx, "MEMORY", "STATS").Val().(map[any]any)["keys.count"])
	assert.NotEmpty(t, client.Do(ctx, "MEMORY", "DOCTOR").Val())
	assert.Positive(t, client.MemoryUsage(ctx, "key:1").Val())

	seen := make(map[string]bool)
	for range 500 {
		seen[client.RandomKey(ctx).Val()] = true
	}
	assert.Greater(t, len(seen), count/2, "keys of all groups are drawn")

	digest := single.Do(ctx, "DEBUG", "DIGEST").Val()
	assert.Equal(t, digest, client.Do(ctx, "DEBUG", "DIGEST").Val(), "as if all keys were on one server")
	require.NoError(t, client.Del(ctx, "key:1").Err())
	assert.NotEqual(t, digest, client.Do(ctx, "DEBUG", "DIGEST").Val())

	require.NoError(t, client.Do(ctx, "RL.POLICY", "SET", "login", "SLIDE", 1, "1h").Err())
	await(t, func() bool { // all groups have it
		for i := range 20 {
			if client.Do(ctx, "RL.CHECK", fmt.Sprint("user", i), "login", "COST", 0).Err() != nil {
				return false
			}
		}
		return true
	})
	for i := range 20 {
		for range i + 1 {
			require.NoError(t, client.Do(ctx, "RL.CHECK", fmt.Sprint("user", i), "login").Err())
		}
	}
	assert.Equal(t, "shadow=0,admitted=20,denied=190", field("ratelimit", "policy_login"))
	assert.Equal(t, "190", field("ratelimit", "decisions_denied"))
	top := client.Do(ctx, "RL.TOP", 3).Val()
	assert.Equal(t, []any{"login:{user19}", int64(19), "login:{user18}", int64(18), "login:{user17}", int64(17)}, top)
	assert.Positive(t, number("stats", "keyspace_hits")+number("stats", "keyspace_misses"))
	require.NoError(t, client.ConfigResetStat(ctx).Err())
	assert.Equal(t, []any{}, client.Do(ctx, "RL.TOP").Val())
	assert.Contains(t, client.Info(ctx, "commandstats").Val(), "cmdstat_config|resetstat")

	require.NoError(t, client.FlushAll(ctx).Err())
	assert.Zero(t, client.DBSize(ctx).Val())
	assert.ErrorIs(t, client.RandomKey(ctx).Err(), redis.Nil)
	assert.Equal(t, strings.Repeat("0", 40), client.Do(ctx, "DEBUG", "DIGEST").Val())
}

// TestLeadersEvictForTheirNode fills three nodes beyond their maxmemory. Each evicts keys of the
// groups that it leads, and the others do the same to their replicas.
func TestLeadersEvictForTheirNode(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	c := startCluster(t, 3, "--maxmemory", "20mb", "--maxmemory-policy", "allkeys-random")
	client, ctx := c.clusterClient(), t.Context()
	value := strings.Repeat("x", 100_000)
	const count = 250
	for i := range count {
		// a loaded machine may hold elections
		await(t, func() bool { return client.Set(ctx, fmt.Sprint("key:", i), value, 0).Err() == nil })
	}
	memory := func(node int) (keys, dataset int64) {
		stats, _ := c.client(node).Do(ctx, "MEMORY", "STATS").Val().(map[any]any)
		keys, _ = stats["keys.count"].(int64)
		dataset, _ = stats["dataset.bytes"].(int64)
		return keys, dataset
	}
	await(t, func() bool {
		led := int64(0)
		for i := range c.run {
			led += c.client(i).DBSize(ctx).Val()
		}
		for i := range c.run {
			if has, dataset := memory(i); has != led || dataset > 20<<20 {
				return false
			}
		}
		return led > 0 && led < count
	})

	// without anything to evict, calls that take memory are refused where they would run
	for i := range c.run {
		require.NoError(t, c.client(i).ConfigSet(ctx, "maxmemory-policy", "noeviction").Err())
		require.NoError(t, c.client(i).ConfigSet(ctx, "maxmemory", "4mb").Err())
	}
	await(t, func() bool {
		refused, moved := 0, 0
		for i := range c.run {
			switch text := fmt.Sprint(c.client(i).Set(ctx, "key", value, 0).Err()); {
			case strings.HasPrefix(text, "OOM"):
				refused++
			case strings.HasPrefix(text, "MOVED"):
				moved++
			}
		}
		return refused == 1 && moved == 2
	})
	await(t, func() bool { return strings.HasPrefix(fmt.Sprint(client.Set(ctx, "key", value, 0).Err()), "OOM") })
}

// TestClusterHasThePoliciesOfAFile starts nodes with a file of policies, which the node that leads
// the first group sets for all.
func TestClusterHasThePoliciesOfAFile(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policies.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("policies:\n  login: {slide: {limit: 2, window: 1h}}\n")
	c := startCluster(t, 3, "--policies", path)
	client, ctx := c.clusterClient(), t.Context()
	limitOf := func(user int) int64 {
		reply, _ := client.Do(ctx, "RL.CHECK", fmt.Sprint("user", user), "login", "COST", 0).Int64Slice()
		if len(reply) == 0 {
			return 0
		}
		return reply[1]
	}
	everywhere := func(limit int64) {
		t.Helper()
		await(t, func() bool {
			for i := range 20 { // in all groups
				if limitOf(i) != limit {
					return false
				}
			}
			return true
		})
	}
	everywhere(2)

	write("policies:\n  login: {slide: {limit: 3, window: 1h}}\n")
	for i := range c.run {
		require.NoError(t, c.run[i].cmd.Process.Signal(syscall.SIGHUP))
	}
	everywhere(3)

	write("policies:\n  login: {slide: {limit: many, window: 1h}}\n")
	await(t, func() bool {
		return strings.Contains(fmt.Sprint(c.client(1).Do(ctx, "RL.POLICY", "RELOAD").Err()), path+":2")
	})
	write("policies:\n  login: {slide: {limit: 9, window: 1h}, overrides: {ann: {limit: 7, window: 1h}}}\n")
	for i := range c.run {
		await(t, func() bool {
			return strings.Contains(fmt.Sprint(c.client(i).Do(ctx, "RL.POLICY", "RELOAD").Err()),
				"each group of a cluster keeps those of its slots, so use RL.POLICY SET name … FOR id")
		})
	}
	everywhere(3)
	write("policies:\n  login: {slide: {limit: 4, window: 1h}}\n")
	await(t, func() bool { return c.client(1).Do(ctx, "RL.POLICY", "RELOAD").Err() == nil })
	everywhere(4)
}

// TestClusterSaves takes snapshots of all groups of a node when asked to.
func TestClusterSaves(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	client, ctx := c.client(0), t.Context()
	for i := range 50 {
		require.NoError(t, client.Set(ctx, fmt.Sprint("key:", i), i, 0).Err())
	}
	assert.Equal(t, "1", infoValue(client, "persistence", "aof_enabled"))
	assert.NotEqual(t, "0", infoValue(client, "persistence", "aof_current_size"))
	assert.NotEqual(t, "0", infoValue(client, "persistence", "rdb_changes_since_last_save"))
	before := client.LastSave(ctx).Val()
	require.NoError(t, client.Save(ctx).Err())
	snapshots, err := filepath.Glob(c.dir + "/0/group-*/snapshots/*/state.bin")
	require.NoError(t, err)
	assert.Len(t, snapshots, 4, "one of each group")
	assert.GreaterOrEqual(t, client.LastSave(ctx).Val(), before)
	assert.Equal(t, "0", infoValue(client, "persistence", "rdb_changes_since_last_save"))
	assert.Equal(t, "1", infoValue(client, "persistence", "rdb_saves"))

	for n, name := range []string{"BGSAVE", "BGREWRITEAOF"} {
		await(t, func() bool { return client.Do(ctx, name).Err() == nil }) // it is one at a time
		await(t, func() bool { return infoValue(client, "persistence", "rdb_bgsave_in_progress") == "0" })
		assert.Equal(t, strconv.Itoa(n+2), infoValue(client, "persistence", "rdb_saves"))
	}
	assert.Equal(t, "ok", infoValue(client, "persistence", "rdb_last_bgsave_status"))
	backup := t.TempDir() + "/backup"
	out, err := rlserver(t, "backup", c.dir+"/0", backup).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "group 3: as of 2")
	for _, mode := range []string{"always", "no"} {
		require.NoError(t, client.ConfigSet(ctx, "appendfsync", mode).Err())
		require.NoError(t, client.Set(ctx, "key:0", mode, 0).Err())
	}
	c.kill(0)
	c.start(0)
	c.settled()
	assert.EqualValues(t, 50, c.client(0).DBSize(ctx).Val())
	assert.Equal(t, "no", c.client(0).Get(ctx, "key:0").Val())

	// the node that the backup is of still runs
	restored := startCluster(t, 1, "--dir", backup)
	assert.EqualValues(t, 50, restored.client(0).DBSize(ctx).Val())
	assert.Equal(t, "0", restored.client(0).Get(ctx, "key:0").Val(), "as it was when it was saved")
	require.NoError(t, restored.client(0).Set(ctx, "key:0", "new", 0).Err())
	restored.kill(0)
	restored.start(0)
	restored.settled()
	assert.Equal(t, "new", restored.client(0).Get(ctx, "key:0").Val())
	assert.Error(t, rlserver(t, "backup", c.dir+"/0", backup).Run(), "it does not write over a backup")
}
