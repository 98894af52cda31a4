//go:build linux

package integration

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
	"rlserver/integration/disk"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == disk.Argument {
		fmt.Fprintln(os.Stderr, disk.Run(os.Args[2:]))
		os.Exit(1)
	}
}

// startOnDisks starts a cluster of three nodes whose disks may hang or be slow. pages are where
// they serve HTTP.
func startOnDisks(t *testing.T, flags ...string) (c *nodes, disks []*disk.Disk, pages []string) {
	for range 3 {
		disks, pages = append(disks, new(disk.Disk)), append(pages, freePort(t))
	}
	if err := disks[0].Possible(); err != nil {
		t.Skip(err)
	}
	c = newCluster(t, 3, func(i int) []string {
		return []string{"--http-port", pages[i], "--http-bind", "127.0.0.1", "--appendfsync", "always"}
	}, flags...)
	c.onDisk = func(i int, cmd *exec.Cmd) (*exec.Cmd, func(error) error) { return disks[i].Command(cmd) }
	t.Cleanup(func() {
		for _, d := range disks {
			d.Release()
		}
	})
	c.startAll()
	return c, disks, pages
}

// ready returns the status of /readyz.
func ready(page string) int {
	r, err := http.Get("http://127.0.0.1:" + page + "/readyz")
	if err != nil {
		return 0
	}
	r.Body.Close()
	return r.StatusCode
}

// writesAll writes keys of all groups through the proxy of a node, and returns how long that took.
func (c *nodes) writesAll(i int) time.Duration {
	c.t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: net.JoinHostPort(c.host(i), c.proxy[i]), MaxRetries: -1, ReadTimeout: time.Minute,
	})
	defer client.Close()
	begun := time.Now()
	for key := range 32 {
		require.Eventually(c.t, func() bool {
			return client.Set(c.t.Context(), fmt.Sprint("k", key), 1, 0).Err() == nil
		}, patience, 10*time.Millisecond)
	}
	return time.Since(begun)
}

// A node whose disk is much slower than those of the others hands its groups over, and gets none.
func TestLeadershipLeavesASlowDisk(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	c, disks, pages := startOnDisks(t, "--cluster-timeout", "2000")
	await(t, func() bool { return ready(pages[0]) == http.StatusOK && c.leads(0) != "0" })
	slowly := time.Now()
	disks[0].Slow(80 * time.Millisecond)
	await(t, func() bool {
		c.writesAll(1)
		return c.leads(0) == "0"
	})
	t.Log("it leads nothing after", time.Since(slowly))
	assert.Contains(t, c.run[0].output(), "its disk is much faster")
	c.writesAll(1)
	assert.Equal(t, "0", c.leads(0))
}

// A node whose disk hangs loses its groups, and gets none while it hangs. It stops when it is told
// to, although what it has written is not stored.
func TestHungDiskLosesLeadershipAndCanBeStopped(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	c, disks, pages := startOnDisks(t)
	await(t, func() bool { return ready(pages[0]) == http.StatusOK && c.leads(0) != "0" })
	c.writesAll(1)

	disks[0].Hang()
	t.Log("all groups are written after", c.writesAll(1))
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		require.Equal(t, "0", c.leads(0), "it hangs: %s", c.run[0].output())
		require.Equal(t, http.StatusServiceUnavailable, ready(pages[0]))
	}
	c.writesAll(2)

	disks[0].Release()
	await(t, func() bool { return ready(pages[0]) == http.StatusOK && c.leads(0) != "0" })
	disks[0].Hang()
	begun := time.Now()
	require.NoError(t, c.run[0].cmd.Process.Signal(syscall.SIGTERM))
	c.writesAll(1)
	select {
	case <-c.run[0].ended:
	case <-time.After(patience):
		require.FailNow(t, "it does not end", "%s", c.run[0].output())
	}
	t.Log("it has ended after", time.Since(begun))
	assert.NotEqual(t, 0, c.run[0].cmd.ProcessState.ExitCode())
	assert.Contains(t, c.run[0].output(), "the disk hangs")
	disks[0].Release()
	c.start(0)
	c.settled()
	await(t, func() bool { return ready(pages[0]) == http.StatusOK })
}
