package integration

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
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
	c.scriptsOutliveTheirClients(leader)
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

// scriptsOutliveTheirClients runs scripts on the leader of k for clients of another node, one of
// which is killed there, while the other one disconnects: both scripts go on to their ends. CLIENT
// PAUSE is refused where they run. Other clients of that node are served.
func (c *nodes) scriptsOutliveTheirClients(leader int) {
	t, ctx, from := c.t, c.t.Context(), (leader+1)%3
	const until = "redis.call('SET', KEYS[1], 'half') " +
		"while redis.call('PUBSUB', 'NUMSUB', 'end')[2] == 0 do end redis.call('SET', KEYS[1], 'done')"
	node, proxy := c.client(from), c.proxied(from, 2)
	require.NoError(t, proxy.Set(ctx, "{k}other", 1, 0).Err())
	for _, key := range []string{"{k}killed", "{k}left"} {
		conn, err := dial(net.JoinHostPort(c.host(from), c.proxy[from]))
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, frame("CLIENT", "SETNAME", key)+frame("EVAL", until, "1", key))
		require.NoError(t, err)
		await(t, func() bool {
			err := c.client(leader).Get(ctx, key).Err()
			return err != nil && strings.HasPrefix(err.Error(), "BUSY ")
		})
		if key == "{k}left" {
			conn.Close()
		} else {
			id := regexp.MustCompile(`id=([0-9]+) .*name={k}killed`).FindStringSubmatch(node.ClientList(ctx).Val())
			require.NotNil(t, id)
			require.EqualValues(t, 1, node.ClientKillByFilter(ctx, "ID", id[1]).Val())
		}
		assert.Equal(t, "1", proxy.Get(ctx, "{k}other").Val())
	}
	assert.ErrorContains(t, c.client(leader).Do(ctx, "CLIENT", "PAUSE", "1", "WRITE").Err(), "BUSY ")
	assert.ErrorContains(t, proxy.ScriptKill(ctx).Err(), "UNKILLABLE")
	ends := c.client(leader).Subscribe(ctx, "end")
	defer ends.Close()
	for _, key := range []string{"{k}killed", "{k}left"} {
		await(t, func() bool { return proxy.Get(ctx, key).Val() == "done" })
	}
	await(t, func() bool { return !strings.Contains(node.ClientList(ctx).Val(), "name={k}") })
}

// TestEndlessScriptsEndWithTheServer: SIGTERM ends a server whose script does not end. Of one that
// has changed keys nothing is logged.
func TestEndlessScriptsEndWithTheServer(t *testing.T) {
	clustertest.Long(t)
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
