package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// proxied returns a plain client of the proxy port of a node, with RESP2 or RESP3.
func (c *nodes) proxied(i, protocol int) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Addr: net.JoinHostPort(c.host(i), c.proxy[i]), MaxRetries: -1, Protocol: protocol, ContextTimeoutEnabled: true,
		ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience,
	})
	c.t.Cleanup(func() { client.Close() })
	return client
}

// patient are flags of a cluster whose calls are to succeed on a machine that is busy with other
// tests: leaders stay, and calls are held while there is none.
var patient = []string{"--cluster-timeout", "2000", "--failover-hold", "60000"}

// balanced waits until each of three nodes leads some of four groups, as they do from then on.
func (c *nodes) balanced() {
	c.t.Helper()
	await(c.t, func() bool {
		for i := range c.run {
			if led := c.infoOf(i, "cluster")["cluster_groups_led"]; led != "1" && led != "2" {
				return false
			}
		}
		return true
	})
}

// TestProxyServesPlainClients makes calls on the proxy ports of all nodes with clients that do not
// use the cluster protocol.
func TestProxyServesPlainClients(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, patient...)
	c.balanced()
	for i := range 3 {
		for _, protocol := range []int{2, 3} {
			t.Run(fmt.Sprint("node ", i, " RESP", protocol), func(t *testing.T) {
				client := c.proxied(i, protocol)
				pipelines(t, client, 300)
				skippedReplies(t, c.host(i), c.proxy[i])
				transactions(t, client)
				watches(t, client)
				large(t, client)
				refusals(t, client)
			})
		}
	}
	client, other := c.proxied(0, 2), c.proxied(1, 2)
	waits(t, client, other)
	wholeKeyspace(t, client, other, c)
	connections(t, client)
	info := client.Info(t.Context(), "cluster").Val()
	assert.Contains(t, info, "proxy_calls:")
	assert.NotContains(t, info, "proxy_calls:0\r\n")
	assert.Contains(t, info, "proxy_calls_unknown:0\r\n")
}

// pipelines sends calls on many slots at once, and checks that the replies are in order.
func pipelines(t *testing.T, client *redis.Client, calls int) {
	t.Helper()
	pipe := client.Pipeline()
	for n := range calls {
		pipe.Set(t.Context(), fmt.Sprint("k", n), n, 0)
		pipe.Get(t.Context(), fmt.Sprint("k", n))
		pipe.Echo(t.Context(), n)
		pipe.HGet(t.Context(), fmt.Sprint("k", n), "x")
	}
	replies, err := pipe.Exec(t.Context())
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Len(t, replies, 4*calls)
	for n := range calls {
		assert.Equal(t, "OK", replies[4*n].(*redis.StatusCmd).Val())
		assert.Equal(t, fmt.Sprint(n), replies[4*n+1].(*redis.StringCmd).Val())
		assert.Equal(t, fmt.Sprint(n), replies[4*n+2].(*redis.StringCmd).Val())
		assert.ErrorContains(t, replies[4*n+3].Err(), "WRONGTYPE")
	}
}

// skippedReplies drops replies by CLIENT REPLY in pipelines, behind calls that other nodes run.
func skippedReplies(t *testing.T, host, port string) {
	t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort(host, port))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	in := bufio.NewReader(conn)
	for n := range 24 {
		fmt.Fprintf(conn, "DEL {skip%d}\r\nINCR {skip%[1]d}\r\nCLIENT REPLY SKIP\r\nPING\r\nINCR {skip%[1]d}\r\n"+
			"CLIENT REPLY OFF\r\nINCR {skip%[1]d}\r\nCLIENT REPLY ON\r\nINCR {skip%[1]d}\r\nECHO end\r\n", n)
		var replies string
		for !strings.HasSuffix(replies, "end\r\n") {
			line, err := in.ReadString('\n')
			require.NoError(t, err, "after %q", replies)
			replies += line
		}
		assert.Regexp(t, `^:[01]\r\n:1\r\n:2\r\n\+OK\r\n:4\r\n\$3\r\nend\r\n$`, replies)
	}
}

// transactions runs transactions with keys of one slot. Commands about the connection run on the
// node that the client is connected to.
func transactions(t *testing.T, client *redis.Client) {
	t.Helper()
	conn := client.Conn()
	defer conn.Close()
	own := conn.ClientID(t.Context()).Val()
	for n := range 12 {
		a, b := fmt.Sprintf("{tx%d}a", n), fmt.Sprintf("{tx%d}b", n)
		client.Del(t.Context(), a, b)
		var id *redis.IntCmd
		replies, err := conn.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Incr(t.Context(), a)
			id = p.ClientID(t.Context())
			p.IncrBy(t.Context(), b, 7)
			p.MGet(t.Context(), a, b)
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, own, id.Val())
		assert.Equal(t, []any{"1", "7"}, replies[3].(*redis.SliceCmd).Val())
		_, err = conn.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Incr(t.Context(), a)
			p.Incr(t.Context(), "{other}a")
			return nil
		})
		assert.ErrorContains(t, err, "EXECABORT")
	}
}

// watches watches keys: a transaction fails if another client has changed them.
func watches(t *testing.T, client *redis.Client) {
	t.Helper()
	for n := range 12 {
		key := fmt.Sprintf("{watch%d}", n)
		for _, change := range []bool{false, true} {
			err := client.Watch(t.Context(), func(tx *redis.Tx) error {
				tx.Get(t.Context(), key)
				if change {
					require.NoError(t, client.Set(t.Context(), key, "changed", 0).Err())
				}
				_, err := tx.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
					p.Set(t.Context(), key, "mine", 0)
					return nil
				})
				return err
			}, key, key+"too")
			if change {
				assert.ErrorIs(t, err, redis.TxFailedErr)
			} else {
				assert.NoError(t, err)
			}
		}
		// UNWATCH drops the keys
		conn := client.Conn()
		require.NoError(t, conn.Do(t.Context(), "WATCH", key).Err())
		require.NoError(t, client.Set(t.Context(), key, "again", 0).Err())
		require.NoError(t, conn.Do(t.Context(), "UNWATCH").Err())
		_, err := conn.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Set(t.Context(), key, "mine", 0)
			return nil
		})
		assert.NoError(t, err)
		conn.Close()
	}
	err := client.Watch(t.Context(), func(*redis.Tx) error { return nil }, "{a}", "{b}")
	assert.ErrorContains(t, err, "CROSSSLOT")
}

// large sends and reads values and transactions that do not fit into a batch.
func large(t *testing.T, client *redis.Client) {
	t.Helper()
	value := strings.Repeat("0123456789abcdef", 1<<16)
	pipe := client.Pipeline()
	for n := range 6 {
		pipe.Set(t.Context(), fmt.Sprint("large", n), value, 0)
	}
	for n := range 6 {
		pipe.Get(t.Context(), fmt.Sprint("large", n))
	}
	replies, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	for _, reply := range replies[6:] {
		assert.True(t, reply.(*redis.StringCmd).Val() == value)
	}
	for n := range 3 {
		key := fmt.Sprintf("{large%d}list", n)
		client.Del(t.Context(), key)
		_, err := client.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			for i := range 5000 {
				p.ZAdd(t.Context(), key, redis.Z{Score: float64(i), Member: i})
			}
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, int64(5000), client.ZCard(t.Context(), key).Val())
		assert.Len(t, client.ZRange(t.Context(), key, 0, -1).Val(), 5000)
		client.Del(t.Context(), key)
	}
}

// refusals makes invalid calls.
func refusals(t *testing.T, client *redis.Client) {
	t.Helper()
	err := client.Do(t.Context(), "RL.ALL", "a", "SLIDE", 1, "1s", "b", "SLIDE", 1, "1s").Err()
	assert.ErrorContains(t, err, "CROSSSLOT the keys of one call have to be in one slot")
	assert.ErrorContains(t, err, "{tag}")
	assert.ErrorContains(t, client.MGet(t.Context(), "a", "b", "c").Err(), "CROSSSLOT")
	assert.ErrorContains(t, client.Do(t.Context(), "NONSENSE", "a").Err(), "ERR unknown command")
	assert.ErrorContains(t, client.Do(t.Context(), "\x00as", "default", "2", "0").Err(), "ERR unknown command")
	assert.ErrorContains(t, client.Do(t.Context(), "\x00on", "1", "DBSIZE").Err(), "ERR unknown command")
	for n := range 8 {
		assert.ErrorContains(t, client.Do(t.Context(), "RL.SLIDE", fmt.Sprint("k", n), "x", "1s").Err(), "ERR")
	}
}

// waits makes calls that wait on one node for a change made through another.
func waits(t *testing.T, client, other *redis.Client) {
	t.Helper()
	for n := range 6 {
		key := fmt.Sprint("queue", n)
		popped := make(chan error, 1)
		go func() {
			z, err := client.BZPopMin(t.Context(), patience, key).Result()
			if err == nil && z.Member != "m" {
				err = fmt.Errorf("popped %v", z)
			}
			popped <- err
		}()
		await(t, func() bool { // the call pops the member as soon as it waits
			require.NoError(t, other.ZAdd(t.Context(), key, redis.Z{Score: 1, Member: "m"}).Err())
			return len(popped) > 0
		})
		assert.NoError(t, <-popped)
		limit := fmt.Sprint("paced", n)
		reply, err := client.Do(t.Context(), "RL.SLIDE", limit, 1, "50ms").Slice()
		require.NoError(t, err)
		require.Equal(t, int64(1), reply[0])
		reply, err = client.Do(t.Context(), "RL.SLIDE", limit, 1, "50ms", "WAIT", "30s").Slice()
		require.NoError(t, err)
		assert.Equal(t, int64(1), reply[0])
	}
	for n := range 3 { // a client that disconnects pops nothing
		key := fmt.Sprint("left", n)
		waiting := func() bool {
			return strings.Contains(client.ClientList(t.Context()).Val(), "cmd=bzpopmin")
		}
		conn, err := dial(client.Options().Addr)
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "BZPOPMIN %s 0\r\n", key)
		require.NoError(t, err)
		await(t, waiting)
		conn.Close()
		await(t, func() bool { return !waiting() })
		await(t, func() bool { // the node where the call waits learns of it a little later
			require.NoError(t, other.ZAdd(t.Context(), key, redis.Z{Score: 1, Member: "m"}).Err())
			return other.ZCard(t.Context(), key).Val() == 1
		})
	}
	for n := range 3 { // CLIENT UNBLOCK reaches a call wherever it waits
		conn := client.Conn()
		id := conn.ClientID(t.Context()).Val()
		ended := make(chan error, 2)
		go func() {
			for range 2 {
				ended <- conn.BZPopMin(t.Context(), patience/2, fmt.Sprint("unblocked", n)).Err()
			}
		}()
		await(t, func() bool { return client.Do(t.Context(), "CLIENT", "UNBLOCK", id).Val() == int64(1) })
		assert.ErrorIs(t, <-ended, redis.Nil)
		await(t, func() bool { return client.Do(t.Context(), "CLIENT", "UNBLOCK", id, "ERROR").Val() == int64(1) })
		assert.ErrorContains(t, <-ended, "UNBLOCKED")
		conn.Close()
	}
	assert.ErrorIs(t, client.BZPopMin(t.Context(), time.Second, "nothing").Err(), redis.Nil)
}

// wholeKeyspace makes calls on all keys of the cluster.
func wholeKeyspace(t *testing.T, client, other *redis.Client, c *nodes) {
	t.Helper()
	require.NoError(t, client.FlushAll(t.Context()).Err())
	for i := range 3 {
		assert.Zero(t, c.client(i).DBSize(t.Context()).Val())
	}
	var want []string
	for n := range 100 {
		key := fmt.Sprint("key", n)
		want = append(want, key)
		require.NoError(t, client.Set(t.Context(), key, n, 0).Err())
	}
	slices.Sort(want)
	assert.Equal(t, int64(100), other.DBSize(t.Context()).Val())
	have := other.Keys(t.Context(), "key*").Val()
	slices.Sort(have)
	assert.Equal(t, want, have)
	assert.Contains(t, want, other.RandomKey(t.Context()).Val())
	digest := client.Do(t.Context(), "DEBUG", "DIGEST").Val()
	assert.NotEmpty(t, digest)
	assert.Equal(t, digest, other.Do(t.Context(), "DEBUG", "DIGEST").Val())
	have = nil
	for scan := other.Scan(t.Context(), 0, "", 10).Iterator(); scan.Next(t.Context()); {
		have = append(have, scan.Val())
	}
	slices.Sort(have)
	assert.Equal(t, want, have)
	// the ordinary port serves only the groups of its node
	require.NoError(t, c.client(0).FlushDB(t.Context()).Err())
	assert.Greater(t, other.DBSize(t.Context()).Val(), int64(0))
	require.NoError(t, other.FlushDB(t.Context()).Err())
	assert.Zero(t, client.DBSize(t.Context()).Val())
}

// connections changes the state of a connection between forwarded calls.
func connections(t *testing.T, client *redis.Client) {
	t.Helper()
	conn := client.Conn()
	defer conn.Close()
	replies := conn.Pipeline()
	for n := range 5 {
		require.NoError(t, client.HSet(t.Context(), fmt.Sprint("map", n), "f", "v").Err())
		replies.Do(t.Context(), "HELLO", 2)
		replies.Do(t.Context(), "HGETALL", fmt.Sprint("map", n))
		replies.Do(t.Context(), "HELLO", 3)
		replies.Do(t.Context(), "HGETALL", fmt.Sprint("map", n))
	}
	list, err := replies.Exec(t.Context())
	require.NoError(t, err)
	for n := range 5 {
		assert.Equal(t, []any{"f", "v"}, list[4*n+1].(*redis.Cmd).Val())
		assert.Equal(t, map[any]any{"f": "v"}, list[4*n+3].(*redis.Cmd).Val())
	}
	assert.NoError(t, conn.Do(t.Context(), "CLIENT", "SETNAME", "me").Err())
	assert.Equal(t, "me", conn.ClientGetName(t.Context()).Val())
	assert.True(t, errors.Is(conn.Get(t.Context(), "missing").Err(), redis.Nil))
}

// TestProxyCountsOnceThroughFailovers kills nodes with SIGKILL and stops them while plain clients
// make calls at the proxy ports of all nodes. A call with an ID is sent again until it has an
// answer, and counts once. Of the others only those count whose outcome is unknown, beyond those
// that were admitted.
func TestProxyCountsOnceThroughFailovers(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	c := startCluster(t, 3)
	const keys, limit = 12, 1_000_000
	type account struct{ admitted, unknown atomic.Int64 }
	var plain, withID [keys]account
	var calls, sentAgain atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for w := range 6 {
		var nodes []*redis.Client
		for i := range 3 {
			nodes = append(nodes, c.proxied(i, 2))
		}
		at := w
		call := func(words ...any) (reply []any, err error) {
			// not the test's context: a call that its end cancels would be of unknown outcome
			if reply, err = nodes[at%3].Do(context.Background(), words...).Slice(); err != nil {
				if said := redis.Error(nil); !errors.As(err, &said) {
					at++ // the node is gone
				}
			}
			return reply, err
		}
		clients.Go(func() {
			for n := w; ctx.Err() == nil; n += 6 {
				k := n % keys
				reply, err := call("RL.SLIDE", fmt.Sprint("plain", k), limit, "1h")
				said := redis.Error(nil)
				switch {
				case err == nil && reply[0] == int64(1):
					plain[k].admitted.Add(1)
				case errors.As(err, &said) && !strings.HasPrefix(said.Error(), "UNCERTAIN"):
					if !strings.HasPrefix(said.Error(), "CLUSTERDOWN") && !strings.HasPrefix(said.Error(), "LOADING") {
						t.Errorf("%v", err)
					}
				default:
					plain[k].unknown.Add(1)
				}
				id := fmt.Sprint("id", n)
				for {
					reply, err := call("RL.SLIDE", fmt.Sprint("id", k), limit, "1h", "ID", id)
					if err == nil {
						assert.Equal(t, int64(1), reply[0])
						break
					}
					if errors.As(err, &said) && strings.HasPrefix(said.Error(), "UNCERTAIN") {
						t.Errorf("a call with an ID: %v", err)
					}
					sentAgain.Add(1)
				}
				withID[k].admitted.Add(1)
				calls.Add(2)
			}
		})
	}
	progress := func() {
		before := calls.Load()
		await(t, func() bool { return calls.Load() > before+100 })
	}
	for i := range 3 {
		progress()
		if i < 2 {
			c.kill(i)
		} else {
			c.run[i].stop(t)
			c.run[i] = nil
		}
		progress()
		c.start(i)
		c.settled()
	}
	progress()
	stop()
	clients.Wait()
	client := c.proxied(0, 2)
	var unknown int64
	for k := range keys {
		have, err := client.ZCard(t.Context(), fmt.Sprint("plain", k)).Result()
		require.NoError(t, err)
		assert.GreaterOrEqual(t, have, plain[k].admitted.Load(), "an acknowledged hit is lost")
		assert.LessOrEqual(t, have, plain[k].admitted.Load()+plain[k].unknown.Load(), "a refused call was carried out")
		have, err = client.ZCard(t.Context(), fmt.Sprint("id", k)).Result()
		require.NoError(t, err)
		assert.Equal(t, withID[k].admitted.Load(), have, "a call with an ID has counted twice, or not at all")
		unknown += plain[k].unknown.Load()
	}
	t.Logf("%d calls, %d of unknown outcome, %d sent again with their ID", calls.Load(), unknown, sentAgain.Load())
}

// TestProxyHoldsPipelineOnce cuts a node off from the others: the calls of a pipeline are held
// together as long as one call.
func TestProxyHoldsPipelineOnce(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, "--failover-hold", "1000")
	client := c.proxied(0, 2)
	require.NoError(t, client.Set(t.Context(), "k", 1, 0).Err())
	c.kill(1)
	c.kill(2)
	await(t, func() bool {
		err := client.Set(t.Context(), "k", 1, 0).Err()
		return err != nil && strings.HasPrefix(err.Error(), "CLUSTERDOWN")
	})
	pipe := client.Pipeline()
	for n := range 200 {
		pipe.Get(t.Context(), fmt.Sprint("k", n))
	}
	begun := time.Now()
	replies, err := pipe.Exec(t.Context())
	took := time.Since(begun)
	assert.Error(t, err)
	for _, reply := range replies {
		assert.ErrorContains(t, reply.Err(), "CLUSTERDOWN")
	}
	assert.Less(t, took, 100*time.Second, "each call was held by itself")
	assert.Error(t, client.FlushAll(t.Context()).Err())
}

// TestPoliciesReachAllGroups sets and deletes policies on any node.
func TestPoliciesReachAllGroups(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, patient...)
	c.balanced()
	// everywhere waits until all groups have the same policies on all nodes, or none
	everywhere := func(none bool) {
		await(t, func() bool {
			versions := map[string]bool{}
			for i := range 3 {
				for group := range 4 {
					line := c.infoOf(i, "replication")[fmt.Sprint("group", group)]
					_, after, found := strings.Cut(line, ",policies=")
					require.True(t, found, line)
					version, _, _ := strings.Cut(after, ",")
					versions[version] = true
				}
			}
			return len(versions) == 1 && versions["0"] == none
		})
	}
	everywhere(true)
	for i := range 3 {
		client, name := c.client(i), fmt.Sprint("policy", i)
		require.NoError(t, client.Do(t.Context(), "RL.POLICY", "SET", name, "FIXED", 2, "1h").Err())
		everywhere(false)
		for n := range 20 {
			reply, err := c.proxied(i, 2).Do(t.Context(), "RL.CHECK", fmt.Sprint("user", n), name).Slice()
			require.NoError(t, err)
			assert.Equal(t, int64(1), reply[0])
		}
		assert.Len(t, client.Do(t.Context(), "RL.POLICY", "LIST").Val(), i+1)
		pipe := client.Pipeline()
		get, wrong := pipe.Do(t.Context(), "RL.POLICY", "GET", name), pipe.Do(t.Context(), "RL.POLICY", "SET", "x", "y")
		_, err := pipe.Exec(t.Context())
		assert.Error(t, err)
		assert.Equal(t, "FIXED 2 1h", get.Val())
		assert.ErrorContains(t, wrong.Err(), "ERR")
	}
	for i := range 3 {
		assert.Equal(t, int64(1), c.client(i).Do(t.Context(), "RL.POLICY", "DEL", fmt.Sprint("policy", (i+1)%3)).Val())
	}
	everywhere(true)
}

// TestWaitingCallsAndLeasesOutliveLeaders has calls wait for keys whose leader is killed, and hands
// over leadership while they wait: they get an error that says what to do, or are served, and
// nothing is popped or admitted twice.
func TestWaitingCallsAndLeasesOutliveLeaders(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	ctx := context.Background()
	const keys = 8
	// leases: two of two are taken, on keys of all groups
	lease := func(client *redis.Client, k int, id string, more ...any) (admitted bool) {
		words := append([]any{"RL.LEASE", fmt.Sprint("lease", k), 2, "1h", id}, more...)
		await(t, func() bool { // a lease is renewed by the same id: to send it again is safe
			reply, err := client.Do(ctx, words...).Slice()
			admitted = err == nil && reply[0] == int64(1)
			return err == nil
		})
		return admitted
	}
	client := c.proxied(0, 2)
	for k := range keys {
		require.True(t, lease(client, k, "a") && lease(client, k, "b"))
	}
	// members that calls have popped; ids of leases that were waited for
	var popped, waited sync.Map
	var twice, interrupted atomic.Int64
	var clients sync.WaitGroup
	stop := make(chan struct{})
	stopped := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	for k := range keys {
		poppers, leasers := c.proxied(0, 2), c.proxied(0, 3)
		clients.Go(func() {
			for !stopped() {
				z, err := poppers.BZPopMin(ctx, time.Second, fmt.Sprint("queue", k)).Result()
				switch said := redis.Error(nil); {
				case err == nil:
					if _, again := popped.LoadOrStore(z.Member, true); again {
						twice.Add(1)
					}
				case errors.Is(err, redis.Nil):
				case errors.As(err, &said):
					interrupted.Add(1)
					word, _, _ := strings.Cut(said.Error(), " ")
					if !slices.Contains([]string{"TRYAGAIN", "UNCERTAIN", "CLUSTERDOWN"}, word) {
						t.Errorf("a waiting BZPOPMIN: %v", err)
					}
				default:
					t.Errorf("a waiting BZPOPMIN: %v", err)
				}
			}
		})
		clients.Go(func() {
			if lease(leasers, k, "c", "WAIT", "2h") {
				waited.Store(k, true)
			}
		})
	}
	// node 0, which the clients are connected to, stays
	member := 0
	add := func() {
		for k := range keys {
			member++
			name := fmt.Sprint("m", member)
			// ZADD of the same member again could bring it back: only NX of new ones
			await(t, func() bool {
				err := client.ZAddNX(ctx, fmt.Sprint("queue", k), redis.Z{Score: 1, Member: name}).Err()
				if err != nil && strings.HasPrefix(err.Error(), "UNCERTAIN") {
					interrupted.Add(1) // it may be there or not
					return true
				}
				return err == nil
			})
		}
	}
	add()
	c.kill(1)
	add()
	c.start(1)
	c.settled()
	require.NoError(t, c.client(2).Do(ctx, "CLUSTER", "FAILOVER").Err())
	add()
	c.kill(2)
	add()
	waited.Range(func(k, _ any) bool {
		t.Errorf("a third lease of two was given on key %v", k)
		return true
	})
	for k := range keys {
		assert.True(t, lease(client, k, "a"), "a lease was forgotten")
		assert.False(t, lease(client, k, "d"), "a third lease")
		await(t, func() bool {
			return client.Do(ctx, "RL.RELEASE", fmt.Sprint("lease", k), "b").Err() == nil
		})
	}
	await(t, func() bool { // those who have waited get what was released
		n := 0
		waited.Range(func(any, any) bool { n++; return true })
		return n == keys
	})
	// what was added is popped, but for calls of unknown outcome
	assert.Eventually(t, func() bool {
		n := 0
		popped.Range(func(any, any) bool { n++; return true })
		return n >= member-int(interrupted.Load())
	}, patience, 10*time.Millisecond)
	for k := range keys {
		left, err := client.ZRange(ctx, fmt.Sprint("queue", k), 0, -1).Result()
		assert.Empty(t, left)
		assert.NoError(t, err)
	}
	for m := 1; m <= member; m++ {
		if _, ok := popped.Load(fmt.Sprint("m", m)); !ok {
			t.Logf("m%d was not popped", m)
		}
	}
	close(stop)
	clients.Wait()
	assert.Zero(t, twice.Load(), "members that were popped twice")
	t.Logf("%d waiting calls got an error", interrupted.Load())
}
