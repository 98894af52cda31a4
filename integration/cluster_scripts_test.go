package integration

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// scriptLeaders are the flags of a cluster whose leaders are lost while scripts run.
var scriptLeaders = []string{
	"--cluster-timeout", "1000", "--failover-hold", "60000", "--enable-debug-command", "yes",
}

// A leader is killed, or hangs for longer than an election takes, while scripts that have written
// run on it.
func TestALeaderIsLostWhileAScriptRuns(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	for _, killed := range []bool{true, false} {
		t.Run(fmt.Sprint("killed=", killed), func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, 3, scriptLeaders...)
			if killed {
				c.leaderIsLost(c.kill, c.start)
				return
			}
			signal := func(s syscall.Signal) func(int) {
				return func(node int) { require.NoError(t, c.run[node].cmd.Process.Signal(s)) }
			}
			c.leaderIsLost(signal(syscall.SIGSTOP), signal(syscall.SIGCONT))
		})
	}
}

// leaderIsLost loses a leader, and gets it back, while scripts that have written run on it: nobody
// is told that they have counted, and they have not, whether they have ended or not. Other scripts
// go on by their names at the next leader, and on the node when it is back.
func (c *nodes) leaderIsLost(lose, back func(node int)) {
	t := c.t
	c.balanced()
	ctx, client := t.Context(), c.proxied(0, 2)
	counts := redis.NewScript(countScript)
	require.NoError(t, client.Eval(ctx, countScript, []string{"k"}, 1).Err())
	leader := -1
	for i := range 3 {
		require.NoError(t, c.client(i).ConfigSet(ctx, "lua-time-limit", "1").Err())
		if c.client(i).EvalSha(ctx, counts.Hash(), []string{"k"}, 1).Err() == nil {
			leader = i
		}
	}
	require.GreaterOrEqual(t, leader, 0)
	const endless = "redis.call('INCRBY', KEYS[1], 100) while true do end"
	const until = "redis.call('INCRBY', KEYS[1], 100) while redis.call('PUBSUB', 'NUMSUB', 'end')[2] == 0 do end"
	replies, scripts := make(chan error, 4), map[string]*redis.Client{
		"k": c.proxied((leader+1)%3, 2), "{k}2": c.proxied(leader, 2), "{k}3": c.proxied((leader+1)%3, 2),
		"{k}4": c.client(leader),
	}
	for key, from := range scripts {
		script := endless
		if key >= "{k}3" {
			script = until
		}
		from.Options().ReadTimeout = patience
		go func() { replies <- from.Eval(ctx, script, []string{key}).Err() }()
		await(t, func() bool {
			err := c.client(leader).Get(ctx, key).Err()
			return err != nil && strings.HasPrefix(err.Error(), "BUSY ")
		})
	}
	assert.ErrorContains(t, c.proxied((leader+2)%3, 2).ScriptKill(ctx).Err(), "UNKILLABLE")
	ends := c.client(leader).Subscribe(ctx) // connects now
	defer ends.Close()
	lose(leader)
	_ = ends.Subscribe(ctx, "end") // only a node that is cut off gets it before another one leads
	other := c.proxied((leader+2)%3, 2)
	await(t, func() bool { // a call that is sent to a node that hangs is waited for
		err := c.client((leader+2)%3).Get(ctx, "k").Err()
		return err == nil || strings.HasPrefix(err.Error(), "MOVED ") &&
			!strings.HasSuffix(err.Error(), ":"+c.ports[leader])
	})
	n, err := other.EvalSha(ctx, counts.Hash(), []string{"k"}, 1).Result()
	require.NoError(t, err)
	assert.EqualValues(t, 3, n, "on the next leader")
	back(leader)
	for range scripts {
		err := <-replies
		assert.True(t, err == io.EOF || err != nil && strings.HasPrefix(err.Error(), "UNCERTAIN "), err)
	}
	c.settled()
	client = c.proxied(leader, 2)
	assert.EqualValues(t, 4, client.EvalSha(ctx, counts.Hash(), []string{"k"}, 1).Val())
	assert.Zero(t, client.Exists(ctx, "{k}2", "{k}3", "{k}4").Val())
	digest := client.Do(ctx, "DEBUG", "DIGEST").Val()
	for i := range 3 { // all replicas have the same
		await(t, func() bool { return c.client(i).Do(ctx, "CLUSTER", "FAILOVER").Err() == nil })
		assert.Equal(t, digest, client.Do(ctx, "DEBUG", "DIGEST").Val())
	}
	assert.EqualValues(t, 5, client.EvalSha(ctx, counts.Hash(), []string{"k"}, 1).Val())
}
