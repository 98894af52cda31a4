package integration

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A message reaches the subscribers on all nodes, whichever node it is published on. A node that
// hangs costs the others nothing. A shard channel is served by the node that leads its slot.
func TestMessagesInACluster(t *testing.T) {
	c := startCluster(t, 3)
	var clients []*redis.Client
	var subscribers []*redis.PubSub
	for i := range 3 {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + c.ports[i], Protocol: 2 + i%2})
		t.Cleanup(func() { client.Close() })
		s := client.PSubscribe(t.Context(), "news.*")
		_, err := s.Receive(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		clients, subscribers = append(clients, client), append(subscribers, s)
	}
	for i, from := range clients {
		text := strings.Repeat("x", i+1)
		require.EqualValues(t, 1, from.Publish(t.Context(), "news.city", text).Val(), "subscribers on this node")
		for _, s := range subscribers {
			m, err := s.ReceiveMessage(t.Context())
			require.NoError(t, err)
			require.Equal(t, text, m.Payload)
		}
	}

	require.NoError(t, c.run[2].cmd.Process.Signal(syscall.SIGSTOP))
	for range 100 {
		require.EqualValues(t, 1, clients[0].Publish(t.Context(), "news.city", strings.Repeat("x", 10_000)).Val())
		for _, s := range subscribers[:2] {
			_, err := s.ReceiveMessage(t.Context())
			require.NoError(t, err)
		}
	}
	require.NoError(t, c.run[2].cmd.Process.Signal(syscall.SIGCONT))
	await(t, func() bool {
		clients[0].Publish(t.Context(), "news.city", "again")
		m, err := subscribers[2].ReceiveTimeout(t.Context(), 100*time.Millisecond)
		text, ok := m.(*redis.Message)
		return err == nil && ok && text.Payload == "again"
	})
	c.settled()

	for i := range clients {
		err := clients[i].SPublish(t.Context(), "orders", "x").Err()
		if err != nil {
			assert.True(t, strings.HasPrefix(err.Error(), "MOVED "), err.Error())
			continue
		}
		s := clients[i].SSubscribe(t.Context(), "orders")
		t.Cleanup(func() { s.Close() })
		_, err = s.Receive(t.Context())
		require.NoError(t, err)
		await(t, func() bool { return clients[i].Do(t.Context(), "CLUSTER", "FAILOVER").Err() == nil })
		m, err := s.Receive(t.Context())
		require.NoError(t, err)
		require.Equal(t, &redis.Subscription{Kind: "sunsubscribe", Channel: "orders"}, m)
		break
	}
}

// Transactions and scripts publish to shard channels where their slot leads, also after it has
// moved: the subscriber that the move has ended gets no more, and one at the new leader gets each
// message once. Messages to other channels reach all nodes. What is not carried out publishes
// nothing.
func TestTransactionsAndScriptsPublishInACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, patient...)
	c.balanced()
	ctx := t.Context()
	leader := func() int {
		found := -1
		await(t, func() bool {
			found = slices.IndexFunc([]int{0, 1, 2}, func(i int) bool {
				return c.client(i).Get(ctx, "{o}").Err() == redis.Nil
			})
			return found >= 0
		})
		return found
	}
	subscribe := func(at int) *redis.PubSub {
		s := c.client(at).SSubscribe(ctx, "{o}rders")
		t.Cleanup(func() { s.Close() })
		_, err := s.Receive(ctx)
		require.NoError(t, err)
		return s
	}
	first := leader()
	old := subscribe(first)
	news := c.client((first+1)%3).Subscribe(ctx, "news")
	defer news.Close()
	_, err := news.Receive(ctx)
	require.NoError(t, err)
	n := 0
	publish := func(from *redis.Client, to *redis.PubSub) {
		t.Helper()
		text := fmt.Sprint(n)
		n++
		pipe := from.TxPipeline()
		pipe.SPublish(ctx, "{o}rders", text)
		pipe.Incr(ctx, "{o}n")
		pipe.Publish(ctx, "news", text)
		_, err := pipe.Exec(ctx)
		require.NoError(t, err)
		script := "redis.call('INCR', KEYS[1]) redis.call('SPUBLISH', KEYS[2], ARGV[1]) " +
			"return redis.call('PUBLISH', 'news', ARGV[1])"
		require.NoError(t, from.Eval(ctx, script, []string{"{o}n", "{o}rders"}, text).Err())
		for _, s := range []*redis.PubSub{to, news} {
			for range 2 {
				m, err := s.ReceiveMessage(ctx)
				require.NoError(t, err)
				require.Equal(t, text, m.Payload)
			}
		}
	}
	for i := range 3 {
		publish(c.proxied(i, 2), old)
	}
	publish(c.client(first), old)
	pipe := c.client((first + 1) % 3).TxPipeline()
	pipe.Publish(ctx, "news", "never")
	pipe.SPublish(ctx, "{o}rders", "never")
	_, err = pipe.Exec(ctx)
	assert.Error(t, err)

	await(t, func() bool { return c.client(first).Do(ctx, "CLUSTER", "FAILOVER").Err() == nil })
	m, err := old.Receive(ctx)
	require.NoError(t, err)
	require.Equal(t, &redis.Subscription{Kind: "sunsubscribe", Channel: "{o}rders"}, m)
	second := leader()
	require.NotEqual(t, first, second)
	next := subscribe(second)
	for i := range 3 {
		publish(c.proxied(i, 2), next)
	}
	_, err = old.ReceiveTimeout(ctx, 10*time.Millisecond)
	assert.ErrorContains(t, err, "timeout")
}

// A subscriber that never reads is cut off by its output limit, also if the messages come from
// another node: neither the other subscribers of its node nor the publishers miss or wait for one.
func TestASubscriberOfAnotherNodeThatNeverReads(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2, "--client-output-buffer-limit", "pubsub 1mb 0 0")
	publisher, reader := c.client(0), c.client(1).Subscribe(t.Context(), "news")
	_, err := reader.Receive(t.Context())
	require.NoError(t, err)
	defer reader.Close()
	hung, err := dial(c.address(1))
	require.NoError(t, err)
	defer hung.Close()
	_, err = io.WriteString(hung, frame("SUBSCRIBE", "news"))
	require.NoError(t, err)
	subscribers := func() int64 { return c.client(1).PubSubNumSub(t.Context(), "news").Val()["news"] }
	await(t, func() bool { return subscribers() == 2 })
	sent := 0
	publish := func() {
		text := fmt.Sprint(sent, strings.Repeat("x", 100_000))
		require.NoError(t, publisher.Publish(t.Context(), "news", text).Err())
		m, err := reader.ReceiveMessage(t.Context())
		require.NoError(t, err)
		require.True(t, m.Payload == text, "message %d is %.10s", sent, m.Payload)
		sent++
	}
	for subscribers() == 2 {
		publish()
		require.Less(t, sent, 1000, "100 MB are more than its buffers take")
	}
	assert.Equal(t, "1", c.infoOf(1, "stats")["client_output_buffer_limit_disconnections"])
	for range 10 {
		publish()
	}
	assert.Equal(t, "0", c.infoOf(0, "stats")["client_output_buffer_limit_disconnections"])
}
