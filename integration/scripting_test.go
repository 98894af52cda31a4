package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const countScript = "return redis.call('INCRBY', KEYS[1], ARGV[1])"

// TestScriptsSurviveRestarts: EVALSHA runs what EVAL and SCRIPT LOAD brought before, from the log
// and from a snapshot, until SCRIPT FLUSH.
func TestScriptsSurviveRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sha, loaded := redis.NewScript(countScript), redis.NewScript("return 'loaded'")
	s := startServer(t, "--dir", dir)
	client := s.connect(t)
	require.NoError(t, client.Eval(t.Context(), countScript, []string{"k"}, 2).Err())
	require.Equal(t, loaded.Hash(), client.ScriptLoad(t.Context(), "return 'loaded'").Val())
	for i, how := range []string{"log", "snapshot"} {
		if how == "snapshot" {
			require.NoError(t, client.Save(t.Context()).Err())
		}
		s.stop(t)
		s = startServer(t, "--dir", dir)
		client = s.connect(t)
		assert.Equal(t, int64(2*i+4), client.EvalSha(t.Context(), sha.Hash(), []string{"k"}, 2).Val(), how)
		assert.Equal(t, "loaded", client.EvalSha(t.Context(), loaded.Hash(), nil).Val(), how)
	}
	require.NoError(t, client.ScriptFlush(t.Context()).Err())
	s.stop(t)
	s = startServer(t, "--dir", dir)
	client = s.connect(t)
	assert.ErrorContains(t, client.EvalSha(t.Context(), sha.Hash(), []string{"k"}, 2).Err(), "NOSCRIPT")
	assert.Equal(t, "6", client.Get(t.Context(), "k").Val())
}

// TestScriptsInACluster: a script that ran on a group runs by its name on the next leader too, and
// SCRIPT LOAD and FLUSH are about all groups.
func TestScriptsInACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, patient...)
	c.balanced()
	ctx, client := t.Context(), c.proxied(0, 2)
	counts := redis.NewScript(countScript)
	require.NoError(t, client.Eval(ctx, countScript, []string{"k"}, 1).Err())
	for i := range 3 {
		assert.Equal(t, int64(i+2), c.proxied(i, 3).EvalSha(ctx, counts.Hash(), []string{"k"}, 1).Val())
	}

	const loadedText = "return redis.call('SET', KEYS[1], 'loaded')"
	loaded := redis.NewScript(loadedText)
	assert.Equal(t, []bool{false}, client.ScriptExists(ctx, loaded.Hash()).Val())
	require.Equal(t, loaded.Hash(), c.proxied(1, 2).ScriptLoad(ctx, loadedText).Val())
	assert.Equal(t, []bool{true}, client.ScriptExists(ctx, loaded.Hash()).Val())
	moved, leader := 0, -1
	for i := range 3 {
		for n := range 20 {
			key := []string{fmt.Sprint("key", n)}
			assert.NoError(t, c.proxied(i, 2).EvalSha(ctx, loaded.Hash(), key).Err())
			if err := c.client(i).EvalSha(ctx, loaded.Hash(), key).Err(); err != nil {
				assert.ErrorContains(t, err, "MOVED ")
				moved++
			}
		}
		if c.client(i).EvalSha(ctx, counts.Hash(), []string{"k"}, 1).Err() == nil {
			leader = i
		}
	}
	assert.Equal(t, 40, moved, "one of three nodes leads each key")
	assert.ErrorContains(t, client.Eval(ctx, "return 1", []string{"a", "b"}).Err(), "CROSSSLOT")

	require.GreaterOrEqual(t, leader, 0)
	c.scriptsAreEndedAnywhere(leader)
	assert.Equal(t, loadedText, client.Do(ctx, "SCRIPT", "SHOW", loaded.Hash()).Val())
	c.kill(leader)
	other := c.proxied((leader+1)%3, 2)
	assert.Equal(t, int64(6), other.EvalSha(ctx, counts.Hash(), []string{"k"}, 1).Val(), "on the next leader")
	assert.NoError(t, other.EvalSha(ctx, loaded.Hash(), []string{"k"}).Err())

	require.NoError(t, other.ScriptFlush(ctx).Err())
	for n := range 20 {
		err := c.proxied((leader+2)%3, 2).EvalSha(ctx, loaded.Hash(), []string{fmt.Sprint("key", n)}).Err()
		assert.ErrorContains(t, err, "NOSCRIPT")
	}
}

// scriptsAreEndedAnywhere runs an endless script on the leader of k. At the proxy port of any node
// SCRIPT KILL ends it; until then FLUSHALL deletes no key of any node.
func (c *nodes) scriptsAreEndedAnywhere(leader int) {
	t, ctx := c.t, c.t.Context()
	other := c.proxied((leader+1)%3, 2)
	for i := range 3 {
		require.NoError(t, c.client(i).ConfigSet(ctx, "lua-time-limit", "1").Err())
	}
	keys := other.DBSize(ctx).Val()
	ended := make(chan error)
	go func() {
		patientClient := c.proxied((leader+2)%3, 2)
		ended <- patientClient.Eval(ctx, "while true do end", []string{"k"}).Err()
	}()
	await(t, func() bool {
		err := c.client(leader).Get(ctx, "k").Err()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY ")
	})
	assert.ErrorContains(t, other.FlushAll(ctx).Err(), "BUSY ")
	assert.ErrorContains(t, other.DBSize(ctx).Err(), "BUSY ")
	assert.NoError(t, other.ScriptKill(ctx).Err())
	assert.ErrorContains(t, <-ended, "SCRIPT KILL")
	assert.ErrorContains(t, other.ScriptKill(ctx).Err(), "NOTBUSY")
	assert.Equal(t, keys, other.DBSize(ctx).Val(), "nothing was deleted")
}

// TestEndlessScriptsEndWithTheServer: SIGTERM ends a server whose script does not end. Of one that
// has changed keys nothing is logged.
func TestEndlessScriptsEndWithTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, "--dir", dir)
	client := s.connect(t, func(o *redis.Options) { o.ReadTimeout = -1 })
	require.NoError(t, client.ConfigSet(t.Context(), "lua-time-limit", "1").Err())
	go client.Eval(t.Context(), "while true do end", []string{"a"})
	go client.Eval(t.Context(), "redis.call('SET', KEYS[1], 1) while true do end", []string{"b"})
	for _, key := range []string{"a", "b"} {
		await(t, func() bool {
			err := client.Get(t.Context(), key).Err()
			return err != nil && strings.HasPrefix(err.Error(), "BUSY ")
		})
	}
	other := 0 // a key in a shard that no script holds
	await(t, func() bool {
		other++
		return client.Set(t.Context(), fmt.Sprint(other), 1, time.Hour).Err() == nil
	})
	s.stop(t)
	client = startServer(t, "--dir", dir).connect(t)
	assert.Equal(t, redis.Nil, client.Get(t.Context(), "b").Err())
	assert.Equal(t, "1", client.Get(t.Context(), fmt.Sprint(other)).Val())
}
