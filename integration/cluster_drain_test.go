package integration

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// leads returns how many groups a node leads, as its INFO says.
func (c *nodes) leads(i int) string { return c.infoOf(i, "cluster")["cluster_groups_led"] }

// CLUSTER DRAIN replies when the node leads nothing, also to a client of --proxy-port. What was
// answered before is there, and no call gets an error while the node is killed afterwards.
func TestDrainThenKill(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	c := startCluster(t, 3)
	ctx := t.Context()
	proxied := redis.NewClient(&redis.Options{Addr: net.JoinHostPort(c.host(0), c.proxy[0]), MaxRetries: -1})
	defer proxied.Close()
	for i := range 20 {
		require.NoError(t, proxied.Set(ctx, fmt.Sprint("k", i), i, 0).Err())
	}
	require.NoError(t, proxied.Do(ctx, "CLUSTER", "DRAIN").Err())
	assert.Equal(t, "0", c.leads(0))
	assert.Equal(t, "1", c.infoOf(0, "cluster")["cluster_drained"])
	for i := range 20 {
		assert.Equal(t, fmt.Sprint(i), proxied.Get(ctx, fmt.Sprint("k", i)).Val())
	}
	await(t, func() bool { return strings.Contains(c.run[0].output(), "gets none until it is started again") })
	c.kill(0)
	other := redis.NewClient(&redis.Options{Addr: net.JoinHostPort(c.host(1), c.proxy[1]), MaxRetries: -1})
	defer other.Close()
	for i := range 20 {
		assert.Equal(t, fmt.Sprint(i), other.Get(ctx, fmt.Sprint("k", i)).Val())
	}
	c.start(0)
	c.settled()
	await(t, func() bool { return c.leads(0) != "0" })
}

// If nobody can take the groups, the error says which and why, within the bound, and the node
// goes on serving those of which a majority is there.
func TestDrainWithoutOthers(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	// a slow machine must not make a drained node leader by an election
	c := startCluster(t, 3, "--cluster-timeout", "2000")
	for i := range 2 {
		require.NoError(t, c.client(i).Do(t.Context(), "CLUSTER", "DRAIN").Err())
	}
	await(t, func() bool { return c.leads(2) == "4" })
	client := redis.NewClient(&redis.Options{Addr: c.address(2), MaxRetries: -1, ReadTimeout: time.Minute})
	defer client.Close()
	err := client.Do(t.Context(), "CLUSTER", "DRAIN").Err()
	assert.EqualError(t, err, "ERR this node still leads groups [0 1 2 3] (no other node that has it is heard and may "+
		"lead it: they are down, cut off, drained or about to stop). "+
		"It goes on trying: CLUSTER DRAIN again waits for it")
	assert.NoError(t, client.Set(t.Context(), "k", 1, 0).Err())
	c.stop(0)
	c.start(0)
	assert.NoError(t, client.Do(t.Context(), "CLUSTER", "DRAIN").Err())
	await(t, func() bool { return c.leads(0) == "4" })
}
