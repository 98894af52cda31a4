package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answer calls a node until the reply is not that the leader has changed.
func answer(t *testing.T, client *redis.Client, words ...any) (reply any, err error) {
	for {
		reply, err = client.Do(t.Context(), words...).Result()
		text := fmt.Sprint(err)
		if !strings.HasPrefix(text, "UNCERTAIN") && !strings.HasPrefix(text, "TRYAGAIN") {
			return reply, err
		}
	}
}

// When RL.POLICY SET or DEL has replied, calls on the keys of all groups use the new policies, and
// so do those that wait.
func TestPoliciesApplyInAllGroupsAtOnce(t *testing.T) {
	t.Parallel()
	// on a busy machine elections take their time
	c := startCluster(t, 3, "--failover-hold", "60000")
	proxy := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:" + c.proxy[0], MaxRetries: -1, ReadTimeout: -1, PoolSize: 32,
	})
	t.Cleanup(func() { proxy.Close() })
	nodes := []*redis.Client{proxy, c.client(1), c.client(2)}
	const ids = 16 // more than enough for all groups
	for i := range 10 {
		name := fmt.Sprint("p", i)
		_, err := answer(t, nodes[i%3], "RL.POLICY", "SET", name, "SLIDE", 1, "1h")
		require.NoError(t, err)
		for id := range ids {
			_, err := answer(t, proxy, "RL.CHECK", fmt.Sprint("u", id), name)
			require.NoError(t, err, "%s u%d", name, id)
		}
		if i == 0 {
			continue
		}
		_, err = answer(t, nodes[i%3], "RL.POLICY", "DEL", name)
		require.NoError(t, err)
		for id := range ids {
			_, err := answer(t, proxy, "RL.CHECK", fmt.Sprint("u", id), name)
			require.ErrorContains(t, err, "no such policy")
		}
	}

	admitted := make(chan error, ids)
	for id := range ids {
		go func() {
			reply, err := answer(t, proxy, "RL.CHECK", fmt.Sprint("u", id), "p0", "WAIT", "2h")
			if list, _ := reply.([]any); err == nil && list[0] != int64(1) {
				err = fmt.Errorf("u%d is not admitted: %v", id, reply)
			}
			admitted <- err
		}()
	}
	await(t, func() bool {
		waiting := 0
		for i := range c.run {
			n, _ := strconv.Atoi(c.infoOf(i, "clients")["clients_in_timeout_table"])
			waiting += n
		}
		return waiting == ids
	})
	_, err := answer(t, proxy, "RL.POLICY", "SET", "p0", "SLIDE", 100, "1h")
	require.NoError(t, err)
	for range ids {
		select {
		case err := <-admitted:
			assert.NoError(t, err)
		case <-time.After(patience):
			require.Fail(t, "a call still waits")
		}
	}
}

// Nodes that are up have changed users when the call replies, not only with the next report. The
// test does not expect it each time, as the nodes may take one for down on a busy machine.
func TestUsersReachOtherNodesAtOnce(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	other := c.client(1)
	have := 0
	for i := range 30 {
		name := fmt.Sprint("user", i)
		require.NoError(t, c.client(0).Do(t.Context(), "ACL", "SETUSER", name, "on").Err())
		if other.Do(t.Context(), "ACL", "GETUSER", name).Err() == nil {
			have++
		}
	}
	assert.Greater(t, have, 15)
}

// The addresses of a network count in one place, whichever node and port a client asks: clients of
// the cluster go by the slot of the address, so that the node there passes the call on.
func TestAddressesOfANetworkCountTogetherInACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, "--failover-hold", "60000")
	ctx := t.Context()
	proxy := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + c.proxy[0], MaxRetries: -1})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.client(1).Options().Addr}})
	t.Cleanup(func() { proxy.Close(); cluster.Close() })
	for name, definition := range map[string][]any{
		"login":   {"SLIDE", 1000, "1h", "IP4", 16, "IP6", 64},
		"signup":  {"TOKEN", 1000, 1, "1d", "IP4", 16, "IP6", 64},
		"address": {"SLIDE", 1000, "1h"},
	} {
		_, err := answer(t, proxy, append([]any{"RL.POLICY", "SET", name}, definition...)...)
		require.NoError(t, err)
	}

	// each client of a node asks for addresses of many slots, and gets no MOVED
	calls := 0
	for i := range 60 {
		for _, client := range []redis.Cmdable{proxy, cluster, c.client(i % 3)} {
			single, isSingle := client.(*redis.Client)
			words := []any{"RL.CHECK", fmt.Sprintf("10.1.%d.%d:%d", i, 255-i, 1000+i), "login", "signup", "ID", calls}
			var err error
			if isSingle {
				_, err = answer(t, single, words...)
			} else {
				err = cluster.Do(ctx, words...).Err()
			}
			if err != nil && strings.HasPrefix(err.Error(), "MOVED") {
				// the slot of the network is that of the address by chance
				continue
			}
			require.NoError(t, err)
			calls++
		}
	}
	require.Greater(t, calls, 150)
	n, err := cluster.ZCard(ctx, "login:{10.1.0.0/16}").Result()
	require.NoError(t, err)
	assert.EqualValues(t, calls, n)

	_, err = answer(t, proxy, "RL.CHECK", "10.1.2.3", "login", "address")
	assert.ErrorContains(t, err, "CROSSSLOT the policies count this address as networks in different slots")
	const ofKeys = "CROSSSLOT the keys of one call have to be in one slot of the cluster"
	_, err = answer(t, proxy, "RL.SETTLE", "tokens:ann", 1, "tokens:bob", 1, "ID", "call-1")
	assert.ErrorContains(t, err, ofKeys)
	conn := proxy.Conn()
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.Do(ctx, "MULTI").Err())
	require.NoError(t, conn.Do(ctx, "RL.CHECK", "ann", "login").Err())
	assert.ErrorContains(t, conn.Do(ctx, "RL.CHECK", "bob", "login").Err(), ofKeys)
	_, err = answer(t, proxy, "RL.CHECK", "ann", "login", "address")
	assert.NoError(t, err)
	pipe := cluster.TxPipeline()
	first := pipe.Do(ctx, "RL.CHECK", "10.1.2.3", "login")
	second := pipe.Do(ctx, "RL.CHECK", "10.1.2.3", "login")
	_, err = pipe.Exec(ctx)
	require.NoError(t, err)
	assert.Equal(t, int64(1000-calls-1), first.Val().([]any)[2])
	assert.Equal(t, int64(1000-calls-2), second.Val().([]any)[2])
}

// Overrides are set through any node, where the id is, and listed from all groups. A policy that is
// deleted and set again has none.
func TestOverridesInACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, "--failover-hold", "60000")
	proxy := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + c.proxy[0], MaxRetries: -1})
	t.Cleanup(func() { proxy.Close() })
	nodes := []*redis.Client{proxy, c.client(0), c.client(1), c.client(2)}
	call := func(i int, words ...any) any {
		t.Helper()
		reply, err := answer(t, nodes[i%len(nodes)], words...)
		if err != redis.Nil {
			require.NoError(t, err, "%v", words)
		}
		return reply
	}
	limitOf := func(id string) any {
		t.Helper()
		return call(0, "RL.CHECK", id, "api", "COST", 0).([]any)[1]
	}
	list := func() (ids map[string]string) {
		t.Helper()
		ids = make(map[string]string)
		for i, cursor := 0, "0"; ; i++ {
			page := call(i, "RL.POLICY", "LIST", "FOR", "api", "CURSOR", cursor, "COUNT", 7).([]any)
			for _, e := range page[1].([]any) {
				ids[e.([]any)[0].(string)] = e.([]any)[1].(string)
			}
			if cursor = page[0].(string); cursor == "0" {
				return ids
			}
		}
	}
	const n = 60
	call(0, "RL.POLICY", "SET", "api", "SLIDE", 5, "1h")
	for i := range n {
		call(i, "RL.POLICY", "SET", "api", "SLIDE", 100+i, "1h", "FOR", fmt.Sprint("u", i))
	}
	for i := range n {
		assert.EqualValues(t, 100+i, limitOf(fmt.Sprint("u", i)))
		definition := call(i, "RL.POLICY", "GET", "api", "FOR", fmt.Sprint("u", i))
		assert.Equal(t, fmt.Sprintf("SLIDE %d 1h", 100+i), definition)
	}
	assert.EqualValues(t, 5, limitOf("other"))
	assert.Len(t, list(), n)
	assert.EqualValues(t, 1, call(1, "RL.POLICY", "DEL", "api", "FOR", "u7"))
	assert.EqualValues(t, 5, limitOf("u7"))
	assert.Len(t, list(), n-1)

	call(2, "RL.POLICY", "DEL", "api")
	call(3, "RL.POLICY", "SET", "api", "SLIDE", 6, "1h")
	for i := range n {
		assert.EqualValues(t, 6, limitOf(fmt.Sprint("u", i)))
	}
	assert.Empty(t, list())
	await(t, func() bool { // all replicas drop them
		for i := range c.run {
			if c.infoOf(i, "memory")["number_of_overrides"] != "0" {
				return false
			}
		}
		return true
	})
	call(0, "RL.POLICY", "SET", "api", "SLIDE", 9, "1h", "FOR", "u1")
	assert.EqualValues(t, 9, limitOf("u1"))
}

// Thousands of overrides, set through a node that mostly does not lead, are all there after another
// node has come to lead the groups of the one that was killed.
func TestOverridesSurviveAFailover(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, patient...)
	c.balanced()
	const n, step = 3000, 500
	ctx, proxy := t.Context(), c.proxied(1, 2)
	_, err := answer(t, proxy, "RL.POLICY", "SET", "api", "SLIDE", 5, "1h")
	require.NoError(t, err)
	override := func(i int) []any {
		return []any{"RL.POLICY", "SET", "api", "SLIDE", 10 + i, "1h", "FOR", fmt.Sprint("u", i)}
	}
	for from := 0; from < n; from += step {
		pipe := proxy.Pipeline()
		for i := from; i < from+step; i++ {
			pipe.Do(ctx, override(i)...)
		}
		calls, _ := pipe.Exec(ctx)
		for i, call := range calls {
			if call.Err() != nil { // its leader has changed: it is sent again
				_, err := answer(t, proxy, override(from+i)...)
				require.NoError(t, err)
			}
		}
	}
	c.kill(0)
	c.settled()
	proxy = c.proxied(2, 2)
	for from := 0; from < n; from += step {
		pipe := proxy.Pipeline()
		for i := from; i < from+step; i++ {
			pipe.Do(ctx, "RL.CHECK", fmt.Sprint("u", i), "api", "COST", 0)
		}
		calls, err := pipe.Exec(ctx)
		require.NoError(t, err)
		for i, call := range calls {
			require.EqualValues(t, 10+from+i, call.(*redis.Cmd).Val().([]any)[1])
		}
	}
}

// Whoever is banned, by a policy or by a call, stays so when another node has come to lead.
func TestBansSurviveAFailover(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, patient...)
	c.balanced()
	const n = 100
	proxy := c.proxied(1, 2)
	_, err := answer(t, proxy, "RL.POLICY", "SET", "signon", "SLIDE", 5, "1m", "BAN", 1, "1h")
	require.NoError(t, err)
	for i := range n {
		for _, call := range [][]any{
			{"RL.CHECK", fmt.Sprint("u", i), "signon", "COST", 6},
			{"RL.TOKEN", fmt.Sprint("t", i), 5, 5, "1m", "COST", 6, "BAN", 1, "1h"},
		} {
			reply, err := answer(t, proxy, call...)
			require.NoError(t, err)
			assert.EqualValues(t, 0, reply.([]any)[0], call)
		}
	}
	c.kill(0)
	c.settled()
	proxy = c.proxied(2, 2)
	for i := range n {
		for _, call := range [][]any{
			{"RL.CHECK", fmt.Sprint("u", i), "signon"},
			{"RL.TOKEN", fmt.Sprint("t", i), 5, 5, "1m", "BAN", 1, "1h"},
		} {
			reply, err := answer(t, proxy, call...)
			require.NoError(t, err)
			d := reply.([]any)
			assert.EqualValues(t, 0, d[0], call)
			assert.Greater(t, d[3], int64(50*60*1000), call)
		}
	}
	reply, err := answer(t, proxy, "RL.UNBAN", "u7", "signon")
	require.NoError(t, err)
	assert.EqualValues(t, 1, reply)
	reply, err = answer(t, proxy, "RL.CHECK", "u7", "signon")
	require.NoError(t, err)
	assert.EqualValues(t, 1, reply.([]any)[0])
}
