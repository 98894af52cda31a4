package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A cluster tells clients that use TLS the ports with TLS, and others those without.
func TestClusterWithTLS(t *testing.T) {
	t.Parallel()
	certificates := generateCertificates(t)
	var ports []string
	for range 3 {
		ports = append(ports, freePort(t))
	}
	c := startClusterOf(t, 3, func(i int) []string { return []string{"--tls-port", ports[i]} },
		"--tls-cert-file", certificates+"/server.crt", "--tls-key-file", certificates+"/server.key",
		"--tls-ca-cert-file", certificates+"/ca.crt")
	secure := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"127.0.0.1:" + ports[0]}, TLSConfig: tlsClient(t, certificates),
	})
	defer secure.Close()
	plain := c.clusterClient()
	for i := range 100 {
		key := fmt.Sprint("k", i)
		require.NoError(t, secure.Set(t.Context(), key, i, 0).Err())
		require.Equal(t, fmt.Sprint(i), plain.Get(t.Context(), key).Val())
	}

	// others lead, too
	await(t, func() bool { return c.infoOf(0, "cluster")["cluster_groups_led"] != "4" })
	one := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + ports[0], TLSConfig: tlsClient(t, certificates)})
	defer one.Close()
	for _, use := range []struct {
		client *redis.Client
		ports  []string
	}{{one, ports}, {c.client(0), c.ports}} {
		ctx := t.Context()
		slots, err := use.client.Do(ctx, "CLUSTER", "SLOTS").Slice()
		require.NoError(t, err)
		for _, entry := range slots {
			for _, node := range entry.([]any)[2:] {
				assert.Contains(t, use.ports, fmt.Sprint(node.([]any)[1]))
			}
		}
		for line := range strings.Lines(use.client.ClusterNodes(ctx).Val()) {
			_, port, _ := strings.Cut(strings.Split(line, "@")[0], ":")
			assert.Contains(t, use.ports, port)
		}
		moved := 0
		for i := range 100 {
			err := use.client.Get(ctx, fmt.Sprint("k", i)).Err()
			if err == nil {
				continue
			}
			require.ErrorContains(t, err, "MOVED")
			_, port, _ := strings.Cut(err.Error(), ":")
			assert.Contains(t, use.ports, port)
			moved++
		}
		assert.Positive(t, moved)
		for _, shard := range use.client.ClusterShards(ctx).Val() {
			for _, node := range shard.Nodes {
				assert.Contains(t, c.ports, strconv.FormatInt(node.Port, 10))
				assert.Contains(t, ports, strconv.FormatInt(node.TLSPort, 10))
			}
		}
	}
}

// With --port 0 there is TLS alone.
func TestClusterWithTLSAlone(t *testing.T) {
	t.Parallel()
	certificates, port := generateCertificates(t), freePort(t)
	p := start(t, rlserver(t, "--cluster", "--bind", "127.0.0.1", "--port", "0", "--tls-port", port, "--node-id", "n",
		"--cluster-port", freePort(t), "--bootstrap-expect", "1", "--cluster-timeout", "400", "--dir", t.TempDir(),
		"--tls-cert-file", certificates+"/server.crt", "--tls-key-file", certificates+"/server.key",
		"--tls-ca-cert-file", certificates+"/ca.crt"))
	require.True(t, p.becomesReady(), "%s", p.output())
	one := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, TLSConfig: tlsClient(t, certificates)})
	defer one.Close()
	await(t, func() bool {
		return strings.Contains(one.ClusterInfo(t.Context()).Val(), "cluster_slots_ok:16384")
	})
	assert.Contains(t, one.ClusterNodes(t.Context()).Val(), " 127.0.0.1:"+port+"@")
	for _, shard := range one.ClusterShards(t.Context()).Val() {
		assert.Zero(t, shard.Nodes[0].Port)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"127.0.0.1:" + port}, TLSConfig: tlsClient(t, certificates),
	})
	defer client.Close()
	require.NoError(t, client.Set(t.Context(), "k", 1, 0).Err())
}
