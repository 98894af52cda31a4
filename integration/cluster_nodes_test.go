package integration

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// TestClusterNodesMeetAndAreForgotten has a second node join a cluster of one by CLUSTER MEET, and
// leave it by CLUSTER FORGET. A key stays there all the time.
func TestClusterNodesMeetAndAreForgotten(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	c := startCluster(t, 1)
	require.NoError(t, c.client(0).Set(t.Context(), "k", "v", 0).Err())
	c.ports, c.bus, c.proxy = append(c.ports, freePort(t)), append(c.bus, freePort(t)), append(c.proxy, freePort(t))
	flags := []string{
		"--cluster", "--bind", "127.0.0.1", "--port", c.ports[1], "--cluster-port", c.bus[1], "--node-id", "n1",
		"--dir", fmt.Sprint(c.dir, "/1"), "--join", net.JoinHostPort("127.0.0.1", c.bus[1]), "--cluster-timeout", "400",
	}
	second := start(t, rlserver(t, flags...))
	require.True(t, second.becomesReady(), "%s", second.output())
	assert.ErrorContains(t, c.client(1).Do(t.Context(), "CLUSTER", "FORGET", "n0").Err(), "LOADING")

	info := func(i int) string { return c.client(i).Info(t.Context(), "cluster").Val() }
	await(t, func() bool { // a loaded machine may take longer to answer than a call waits
		return c.client(0).Do(t.Context(), "CLUSTER", "MEET", "127.0.0.1", c.ports[1], c.bus[1]).Err() == nil
	})
	for i := range 2 {
		await(t, func() bool {
			text := info(i)
			return strings.Contains(text, "cluster_nodes:2\r\n") &&
				strings.Contains(text, "cluster_groups_replicated:4\r\n") &&
				strings.Contains(text, "cluster_moves_in_progress:0\r\n")
		})
	}
	client := c.clusterClient()
	assert.Equal(t, "v", client.Get(t.Context(), "k").Val())

	id := c.client(1).Do(t.Context(), "CLUSTER", "MYID").Val()
	await(t, func() bool { return c.client(0).Do(t.Context(), "CLUSTER", "FORGET", id).Err() == nil })
	assert.Equal(t, 1, second.exitCode(t))
	assert.Contains(t, second.output(), "it was removed by CLUSTER FORGET")
	second.killed = true // it has ended
	await(t, func() bool { return strings.Contains(info(0), "cluster_nodes:1\r\n") })
	assert.Equal(t, "v", c.client(0).Get(t.Context(), "k").Val())

	again := start(t, rlserver(t, flags...))
	assert.Equal(t, 1, again.exitCode(t))
	assert.Contains(t, again.output(), "it was removed by CLUSTER FORGET")
	again.killed = true

	// there is nothing to recover without data
	c.run[0].stop(t)
	require.NoError(t, os.RemoveAll(fmt.Sprint(c.dir, "/1")))
	recovering := start(t, rlserver(t, append(flags, "--force-recover")...))
	assert.Equal(t, 1, recovering.exitCode(t))
	assert.Contains(t, recovering.output(), "has no data of a cluster")
	recovering.killed = true
	c.start(0)
	c.settled()
	assert.Equal(t, "v", c.client(0).Get(t.Context(), "k").Val())
}

// TestClusterMovesGroupsWhileNodesAreKilled adds a fourth node, and kills nodes with SIGKILL in the
// middle of the moves. Then the first node is forgotten.
func TestClusterMovesGroupsWhileNodesAreKilled(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	c := startCluster(t, 3)
	p := c.grants()
	p.goOn()
	c.ports, c.bus, c.proxy = append(c.ports, freePort(t)), append(c.bus, freePort(t)), append(c.proxy, freePort(t))
	c.run = append(c.run, nil)
	c.start(3)
	for _, i := range []int{3, 1} {
		p.goOn()
		c.kill(i)
		p.goOn()
		c.start(i)
	}
	moved := func(nodes int) {
		t.Helper()
		for i, run := range c.run {
			if run == nil {
				continue
			}
			await(t, func() bool {
				text := c.client(i).Info(t.Context(), "cluster").Val()
				return strings.Contains(text, fmt.Sprintf("cluster_nodes:%d\r\n", nodes)) &&
					strings.Contains(text, "cluster_groups_replicated:3\r\n") == (nodes == 4) &&
					strings.Contains(text, "cluster_moves_in_progress:0\r\n") &&
					strings.Contains(text, "cluster_groups_without_leader:0\r\n")
			})
		}
	}
	moved(4)
	p.goOn()
	await(t, func() bool { return c.client(1).Do(t.Context(), "CLUSTER", "FORGET", "n0").Err() == nil })
	p.goOn()
	assert.Equal(t, 1, c.run[0].exitCode(t))
	c.run[0].killed = true
	c.run[0] = nil
	moved(3)
	p.goOn()
	p.conserved()
}
