//go:build rueidis

package integration

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rueidis has a command for GCRA, sends the calls of all goroutines in one pipeline, and uses
// client-side caching.
func TestRueidis(t *testing.T) {
	t.Parallel()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{startServer(t).addr}})
	require.NoError(t, err)
	defer client.Close()
	gcra := func(key string, burst int64) []int64 {
		command := client.B().Gcra().Key(key).MaxBurst(burst).TokensPerPeriod(1).Period(86400.5).Build()
		answer, err := client.Do(t.Context(), command).AsIntSlice()
		assert.NoError(t, err)
		return answer
	}

	assert.Equal(t, []int64{0, 2, 1, -1, 86401}, gcra("k", 1))
	admitted := gcra("k", 1)
	assert.Equal(t, []int64{0, 2, 0, -1}, admitted[:4])
	denied := gcra("k", 1)
	assert.Equal(t, []int64{1, 2, 0}, denied[:3])
	assert.InDelta(t, 86401, denied[3], 3600, "until there is a token, less the time since the first call")
	assert.InDelta(t, 172801, denied[4], 3600, "until all are there")

	command := client.B().Gcra().Key("four").MaxBurst(9).TokensPerPeriod(10).Period(86400).Count(4).Build()
	four, err := client.Do(t.Context(), command).AsIntSlice()
	require.NoError(t, err)
	assert.Equal(t, []int64{0, 10, 6, -1, 34560}, four)

	var admissions atomic.Int64
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for range 10 {
				if gcra("shared", 99)[0] == 0 {
					admissions.Add(1)
				}
			}
		})
	}
	callers.Wait()
	assert.EqualValues(t, 100, admissions.Load())
}

// rueidis keeps copies of values, and drops them when they change: of a server alone, as a client
// of a cluster, and of a proxy port.
func TestRueidisKeepsCopies(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, patient...)
	c.balanced()
	for name, option := range map[string]rueidis.ClientOption{
		"alone":   {InitAddress: []string{startServer(t).addr}},
		"cluster": {InitAddress: c.addresses()},
		"proxy":   {InitAddress: []string{"127.0.0.1:" + c.proxy[0]}, ForceSingleClient: true},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := rueidis.NewClient(option)
			require.NoError(t, err)
			t.Cleanup(client.Close)
			option.DisableCache = true
			other, err := rueidis.NewClient(option)
			require.NoError(t, err)
			t.Cleanup(other.Close)
			for i := range 20 {
				key := fmt.Sprint("copy", i)
				get := func() (string, bool) {
					r := client.DoCache(t.Context(), client.B().Get().Key(key).Cache(), time.Hour)
					text, _ := r.ToString()
					return text, r.IsCacheHit()
				}
				for _, value := range []string{"a", "b", strings.Repeat("c", 10_000)} {
					require.NoError(t, other.Do(t.Context(), other.B().Set().Key(key).Value(value).Build()).Error())
					await(t, func() bool {
						text, _ := get()
						return text == value
					})
					await(t, func() bool { // at the beginning all may have changed
						_, hit := get()
						return hit
					})
				}
			}
		})
	}
}

// rueidis asks CLUSTER SLOTS or CLUSTER SHARDS.
func TestClusterServesRueidis(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	for _, shards := range []bool{false, true} {
		t.Run(fmt.Sprint("shards ", shards), func(t *testing.T) { serveRueidis(t, c, shards) })
	}
}

func serveRueidis(t *testing.T, c *nodes, shards bool) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"127.0.0.1:" + c.ports[0]}, DisableCache: true,
		ClusterOption: rueidis.ClusterOption{PreferClusterShards: shards},
	})
	require.NoError(t, err)
	defer client.Close()
	assert.Equal(t, rueidis.ClientModeCluster, client.Mode())
	for i := range 100 {
		key := fmt.Sprint("k", i)
		require.NoError(t, client.Do(t.Context(), client.B().Set().Key(key).Value(key).Build()).Error())
	}
	var calls []rueidis.Completed
	for i := range 100 {
		calls = append(calls, client.B().Get().Key(fmt.Sprint("k", i)).Build())
	}
	for i, reply := range client.DoMulti(t.Context(), calls...) {
		text, err := reply.ToString()
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint("k", i), text)
	}
}

// Messages and what has changed arrive over TLS, with RESP3, beside the replies of the same
// connection.
func TestTLSPushes(t *testing.T) {
	t.Parallel()
	s, dir := startTLSServer(t)
	rdb := s.connect(t, func(o *redis.Options) { o.Protocol, o.TLSConfig = 3, tlsClient(t, dir) })
	caching, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.addr}, TLSConfig: tlsClient(t, dir)})
	require.NoError(t, err)
	defer caching.Close()
	listener := rdb.PSubscribe(t.Context(), "new*")
	defer listener.Close()
	require.NoError(t, listener.Subscribe(t.Context(), "sports"))
	for range 2 {
		_, err := listener.Receive(t.Context()) // the subscriptions
		require.NoError(t, err)
	}
	for _, value := range []string{"a", strings.Repeat("b", 1<<20), "c"} {
		require.NoError(t, rdb.Set(t.Context(), "key", value, 0).Err())
		get := func() rueidis.RedisResult {
			return caching.DoCache(t.Context(), caching.B().Get().Key("key").Cache(), time.Hour)
		}
		await(t, func() bool {
			text, _ := get().ToString()
			return text == value
		})
		await(t, func() bool { r := get(); return r.IsCacheHit() })
		for _, channel := range []string{"news", "sports"} {
			n, err := rdb.Publish(t.Context(), channel, value).Result()
			require.NoError(t, err)
			assert.EqualValues(t, 1, n)
			got, err := listener.ReceiveMessage(t.Context())
			require.NoError(t, err)
			assert.Equal(t, channel, got.Channel)
			assert.Equal(t, value, got.Payload)
		}
		require.NoError(t, listener.Ping(t.Context()))
		pong, err := listener.Receive(t.Context())
		require.NoError(t, err)
		assert.IsType(t, (*redis.Pong)(nil), pong)
	}
}
