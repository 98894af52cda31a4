package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAnsweredCallsDoNotBeginLater stops the leader of some keys for longer than calls are held,
// but not long enough for an election. Calls that were passed on to it are answered by then: they
// lie in its sockets. When it goes on, it still leads, and must not run them.
func TestAnsweredCallsDoNotBeginLater(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, "--cluster-timeout", "2000", "--failover-hold", "600")
	c.balanced()
	ctx := context.Background()
	led := func(i int) (keys []string) {
		for n := 0; len(keys) < 8; n++ {
			key := fmt.Sprint("k", n)
			if err := c.client(i).Get(ctx, key).Err(); err == nil || !strings.HasPrefix(err.Error(), "MOVED") {
				keys = append(keys, key)
			}
		}
		return keys
	}
	keys := led(1)
	client, waiting := c.proxied(0, 2), c.proxied(0, 2)
	for _, key := range keys[:2] {
		require.NoError(t, client.Do(ctx, "RL.LEASE", key, 1, "1h", "a").Err())
	}
	slides := func(cost int) (errs []error) {
		pipe := client.Pipeline()
		for _, key := range keys[2:] {
			pipe.Do(ctx, "RL.SLIDE", key, 10, "1h", "COST", cost)
		}
		done, _ := pipe.Exec(ctx)
		for _, call := range done {
			errs = append(errs, call.Err())
		}
		return errs
	}
	var calls sync.WaitGroup
	for _, key := range keys[:2] {
		calls.Go(func() {
			err := waiting.Do(ctx, "RL.LEASE", key, 1, "1h", "b", "WAIT", "1h").Err()
			assert.ErrorContains(t, err, "TRYAGAIN")
		})
	}
	await(t, func() bool { return c.infoOf(1, "clients")["blocked_clients"] == "2" })
	// there is a connection for them, as none is made while it is stopped
	await(t, func() bool { return errors.Join(slides(0)...) == nil })
	require.NoError(t, c.run[1].cmd.Process.Signal(syscall.SIGSTOP))
	begun := time.Now()
	replies := slides(1)
	// on a busy machine another node may be elected, or the calls may wait for a connection:
	// then calls whose outcome is unknown may have run before their replies
	elsewhere := slices.Contains(replies, nil) || time.Since(begun) > time.Second
	least, most := make([]int64, len(keys)), make([]int64, len(keys))
	for i, err := range replies {
		switch {
		case err == nil:
			least[2+i], most[2+i] = 1, 1
		case elsewhere && !strings.HasPrefix(err.Error(), "TRYAGAIN"):
			most[2+i] = 1
		}
	}
	calls.Wait()
	require.NoError(t, c.run[1].cmd.Process.Signal(syscall.SIGCONT))
	for _, key := range keys[:2] {
		await(t, func() bool { return client.Do(ctx, "RL.RELEASE", key, "a").Err() == nil })
	}
	for range 10 {
		for i, key := range keys {
			await(t, func() bool { return client.Do(ctx, "RL.SLIDE", key, 10, "1h", "COST", 0).Err() == nil })
			n, err := client.ZCard(ctx, key).Result()
			if err == nil {
				assert.GreaterOrEqual(t, n, least[i], key)
				assert.LessOrEqual(t, n, most[i], "%s: a call that was answered has run", key)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}
