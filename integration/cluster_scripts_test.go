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
)

// A leader is killed, or hangs for longer than an election takes, while a script that has written
// runs on it: nobody is told that it has counted, and it has not. Other scripts go on by their
// names at the next leader, and on the node when it is back.
func TestALeaderIsLostWhileAScriptRuns(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{true, false} {
		t.Run(fmt.Sprint("killed=", killed), func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, 3, "--cluster-timeout", "1000", "--failover-hold", "60000")
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
			replies := make(chan error, 2)
			for key, from := range map[string]*redis.Client{
				"k": c.proxied((leader+1)%3, 2), "{k}2": c.proxied(leader, 2),
			} {
				go func() { replies <- from.Eval(ctx, endless, []string{key}).Err() }()
				await(t, func() bool {
					err := c.client(leader).Get(ctx, key).Err()
					return err != nil && strings.HasPrefix(err.Error(), "BUSY ")
				})
			}
			assert.ErrorContains(t, c.proxied((leader+2)%3, 2).ScriptKill(ctx).Err(), "UNKILLABLE")
			if killed {
				c.kill(leader)
			} else {
				require.NoError(t, c.run[leader].cmd.Process.Signal(syscall.SIGSTOP))
			}
			other := c.proxied((leader+2)%3, 2)
			await(t, func() bool { // a call that is sent to a node that hangs is waited for
				err := c.client((leader+2)%3).Get(ctx, "k").Err()
				return err == nil || strings.HasPrefix(err.Error(), "MOVED ") &&
					!strings.HasSuffix(err.Error(), ":"+c.ports[leader])
			})
			n, err := other.EvalSha(ctx, counts.Hash(), []string{"k"}, 1).Result()
			require.NoError(t, err)
			assert.EqualValues(t, 3, n, "on the next leader")
			if killed {
				c.start(leader)
			} else {
				require.NoError(t, c.run[leader].cmd.Process.Signal(syscall.SIGCONT))
			}
			for range 2 {
				err := <-replies
				assert.True(t, err == io.EOF || err != nil && strings.HasPrefix(err.Error(), "UNCERTAIN "), err)
			}
			c.settled()
			back := c.proxied(leader, 2)
			assert.EqualValues(t, 4, back.EvalSha(ctx, counts.Hash(), []string{"k"}, 1).Val())
			await(t, func() bool { return c.client(leader).Do(ctx, "CLUSTER", "FAILOVER").Err() == nil })
			assert.EqualValues(t, 5, back.EvalSha(ctx, counts.Hash(), []string{"k"}, 1).Val())
		})
	}
}
