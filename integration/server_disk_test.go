//go:build linux

package integration

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
	"rlserver/integration/disk"
)

// A server whose disk hangs soon acknowledges no changes any more, and INFO and /readyz say why.
// Calls go on when the disk answers. If it does not, the server can be stopped all the same.
func TestHungDiskIsVisibleAndTheServerCanBeStopped(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	on := new(disk.Disk)
	if err := on.Possible(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(on.Release)
	port, page, dir := freePort(t), freePort(t), t.TempDir()
	cmd, started := on.Command(rlserver(t, "--bind", "127.0.0.1", "--port", port, "--http-port", page, "--dir", dir))
	p := startBy(t, cmd, func(run func() error) error { return started(run()) })
	require.True(t, p.becomesReady(), "%s", p.output())
	options := redis.Options{Addr: net.JoinHostPort("127.0.0.1", port), MaxRetries: -1, ReadTimeout: patience}
	client := redis.NewClient(&options)
	options.ReadTimeout = 100 * time.Millisecond
	hasty := redis.NewClient(&options)
	t.Cleanup(func() { client.Close(); hasty.Close() })
	// hang waits until changes are not acknowledged any more.
	hang := func() {
		on.Hang()
		await(t, func() bool {
			var waits net.Error
			err := hasty.Incr(t.Context(), "n").Err()
			return errors.As(err, &waits) && waits.Timeout() && ready(page) == http.StatusServiceUnavailable
		})
	}
	require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())
	require.Equal(t, http.StatusOK, ready(page))

	hang()
	info := client.Info(t.Context(), "persistence").Val()
	assert.Contains(t, info, "\r\ndisk_state:stalled\r\ndisk_failure:the disk of "+dir+" has not answered for ")
	assert.Equal(t, "v", client.Get(t.Context(), "k").Val())
	on.Release()
	require.NoError(t, client.Incr(t.Context(), "n").Err())
	await(t, func() bool { return ready(page) == http.StatusOK })

	hang()
	p.terminate()
	select {
	case <-p.ended:
	case <-time.After(patience):
		require.FailNow(t, "it does not end", "%s", p.output())
	}
	assert.Equal(t, 1, p.cmd.ProcessState.ExitCode())
	assert.Contains(t, p.output(), "the log could not be written to its end: the disk of "+dir+" has not answered")
	assert.Equal(t, 2, strings.Count(p.output(), "the disk does not answer"))
}
