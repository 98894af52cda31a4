package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
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

// nodes are the processes of a cluster.
type nodes struct {
	t     *testing.T
	dir   string
	ports []string // for clients
	proxy []string // for clients whose calls are passed on
	bus   []string // between nodes
	flags []string
	each  func(i int) []string // flags of one node; nil: none
	run   []*process

	// addresses of the nodes; nil: all are on the loopback interface
	hosts []string
	// start the nodes, each in its network; nil: they share that of the test
	spaces []func(run func() error) error
	// returns a command that runs another one on a disk; nil: on that of the machine
	onDisk func(i int, cmd *exec.Cmd) (*exec.Cmd, func(started error) error)
}

// startCluster starts a cluster of so many processes, and waits until each group has a leader.
func startCluster(t *testing.T, size int, flags ...string) *nodes {
	t.Helper()
	return startClusterOf(t, size, nil, flags...)
}

// startClusterOf is startCluster with flags of their own for each node.
func startClusterOf(t *testing.T, size int, each func(i int) []string, flags ...string) *nodes {
	t.Helper()
	c := newCluster(t, size, each, flags...)
	c.startAll()
	return c
}

// newCluster is startClusterOf without the start.
func newCluster(t *testing.T, size int, each func(i int) []string, flags ...string) *nodes {
	t.Helper()
	c := &nodes{t: t, dir: clustertest.Dir(t), flags: flags, each: each, run: make([]*process, size)}
	for range size {
		c.ports, c.bus = append(c.ports, freePort(t)), append(c.bus, freePort(t))
		c.proxy = append(c.proxy, freePort(t))
	}
	return c
}

func (c *nodes) startAll() {
	for i := range c.run {
		c.start(i)
	}
	c.settled()
}

func (c *nodes) host(i int) string {
	if c.hosts == nil {
		return "127.0.0.1"
	}
	return c.hosts[i]
}

// address returns where clients connect to a node.
func (c *nodes) address(i int) string { return net.JoinHostPort(c.host(i), c.ports[i]) }

func (c *nodes) start(i int) {
	c.t.Helper()
	var join []string
	for i, port := range c.bus {
		join = append(join, net.JoinHostPort(c.host(i), port))
	}
	flags := slices.Clone(c.flags)
	if c.each != nil {
		flags = append(flags, c.each(i)...)
	}
	cmd := rlserver(c.t, append([]string{
		"--cluster", "--bind", c.host(i), "--port", c.ports[i], "--cluster-port", c.bus[i],
		"--proxy-port", c.proxy[i],
		"--node-id", fmt.Sprint("n", i), "--dir", fmt.Sprint(c.dir, "/", i), "--join", strings.Join(join, ","),
		"--bootstrap-expect", fmt.Sprint(len(c.run)), "--cluster-groups", "4", "--cluster-timeout", "400",
	}, flags...)...)
	if c.onDisk != nil {
		cmd, started := c.onDisk(i, cmd)
		c.run[i] = startBy(c.t, cmd, func(run func() error) error { return started(run()) })
	} else if c.spaces == nil {
		c.run[i] = start(c.t, cmd)
	} else {
		c.run[i] = startBy(c.t, cmd, c.spaces[i])
	}
	require.True(c.t, c.run[i].becomesReady(), "%s", c.run[i].output())
}

func (c *nodes) kill(i int) {
	c.run[i].cmd.Process.Kill()
	<-c.run[i].ended
	c.run[i] = nil
}

func (c *nodes) stop(i int) {
	c.run[i].stop(c.t)
	c.run[i] = nil
}

// client returns a client of one node alone.
func (c *nodes) client(i int) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: c.address(i), MaxRetries: -1})
	c.t.Cleanup(func() { client.Close() })
	return client
}

// settled waits until each running node sees a leader of each group.
func (c *nodes) settled() {
	c.t.Helper()
	for i, p := range c.run {
		if p == nil {
			continue
		}
		client := c.client(i)
		var info string
		if !assert.Eventually(c.t, func() bool {
			info = client.ClusterInfo(c.t.Context()).Val()
			return strings.Contains(info, "cluster_slots_ok:16384")
		}, patience, 10*time.Millisecond) {
			c.t.Log(info)
			for i, p := range c.run {
				if p != nil {
					c.t.Logf("node %d:\n%s", i, p.output())
				}
			}
			c.t.FailNow()
		}
	}
}

// addresses returns where clients connect to.
func (c *nodes) addresses() (list []string) {
	for i := range c.ports {
		list = append(list, c.address(i))
	}
	return list
}

func (c *nodes) clusterClient() *redis.ClusterClient {
	// A node that was killed refuses connections: trying again at the same node only takes time.
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.addresses(), DialerRetries: 1})
	c.t.Cleanup(func() { client.Close() })
	return client
}

func TestClusterServesAClusterClient(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	client := c.clusterClient()
	for i := range 100 {
		key := fmt.Sprint("k", i)
		require.NoError(t, client.Set(t.Context(), key, i, 0).Err())
		require.Equal(t, fmt.Sprint(i), client.Get(t.Context(), key).Val())
	}
	pipe := client.Pipeline()
	for i := range 100 {
		pipe.Get(t.Context(), fmt.Sprint("k", i))
	}
	replies, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	for i, reply := range replies {
		assert.Equal(t, fmt.Sprint(i), reply.(*redis.StringCmd).Val())
	}
	_, err = client.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Incr(t.Context(), "{t}a")
		p.Incr(t.Context(), "{t}b")
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, "1", client.Get(t.Context(), "{t}b").Val())
	err = client.Do(t.Context(), "RL.ALL", "a", "SLIDE", 1, "1s", "b", "SLIDE", 1, "1s").Err()
	assert.Error(t, err)
	t.Run("redis-cli --cluster", func(t *testing.T) {
		needsProgram(t, "redis-cli", "--version")
		for _, call := range []struct{ command, says string }{
			{"check %s", "All 16384 slots covered"}, {"info %s", "102 keys in 3 masters"},
			{"call %s DBSIZE", c.ports[2] + ": "},
		} {
			args := append([]string{"--cluster"}, strings.Fields(fmt.Sprintf(call.command, c.addresses()[0]))...)
			await(t, func() bool { // leaders may be about to move
				out, err := exec.Command("redis-cli", args...).CombinedOutput()
				return err == nil && strings.Contains(string(out), call.says) && !strings.Contains(string(out), "ERR")
			})
		}
	})
}

// TestClusterAdmitsNothingTwice kills leaders with SIGKILL, and ends and starts nodes, while
// clients make calls against limits of an hour. Nobody gets more than the limit.
func TestClusterAdmitsNothingTwice(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	p := c.grants()
	for i, end := range []func(i int){c.kill, c.stop, c.kill} {
		p.goOn()
		end(i)
		p.goOn()
		c.start(i)
		c.settled()
	}
	p.conserved()
}

// grants are clients that make calls against limits of an hour, and count the permits that they
// are granted.
type grants struct {
	c                 *nodes
	admitted, unknown [permitKeys]atomic.Int64
	calls, longest    atomic.Int64
	stop              context.CancelFunc
	clients           sync.WaitGroup
}

const permitKeys = 20

func maxPermits(key int) int { return 5 + 10*key }

// grants starts the clients.
func (c *nodes) grants() *grants {
	p := &grants{c: c}
	ctx, stop := context.WithCancel(c.t.Context())
	p.stop = stop
	for w := range 4 {
		client := c.clusterClient()
		p.clients.Go(func() {
			for n := w; ctx.Err() == nil; n++ {
				p.call(client, n%permitKeys)
			}
		})
	}
	return p
}

func (p *grants) call(client *redis.ClusterClient, k int) {
	begun := time.Now()
	// in the background: a call that is cut short by the end of the test would be unknown
	reply, err := client.Do(context.Background(), "RL.SLIDE", fmt.Sprint("limit", k), maxPermits(k), "1h").Slice()
	took := int64(time.Since(begun))
	for l := p.longest.Load(); took > l && !p.longest.CompareAndSwap(l, took); l = p.longest.Load() {
	}
	switch {
	case err == nil && reply[0] == int64(1):
		p.admitted[k].Add(1)
	case err != nil:
		p.unknown[k].Add(1)
	}
	p.calls.Add(1)
}

// goOn waits until calls have been made.
func (p *grants) goOn() {
	p.c.t.Helper()
	before := p.calls.Load()
	await(p.c.t, func() bool { return p.calls.Load() > before+100 })
}

// conserved stops the clients, and checks that nobody got more than the limit.
func (p *grants) conserved() {
	t := p.c.t
	t.Helper()
	p.stop()
	p.clients.Wait()
	client := p.c.clusterClient()
	var sum, lost int64
	for k := range permitKeys {
		have, err := client.ZCard(t.Context(), fmt.Sprint("limit", k)).Result()
		require.NoError(t, err)
		assert.LessOrEqual(t, p.admitted[k].Load(), int64(maxPermits(k)), "key %d", k)
		assert.LessOrEqual(t, have, int64(maxPermits(k)))
		assert.GreaterOrEqual(t, have, p.admitted[k].Load(), "an acknowledged admit is forgotten")
		sum, lost = sum+p.admitted[k].Load(), lost+have-p.admitted[k].Load()
	}
	t.Logf("%d calls, %d admitted, %d permits lost, longest call %v", p.calls.Load(), sum, lost,
		time.Duration(p.longest.Load()))
}

func TestClusterIsDownWithoutAMajority(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	c.kill(1)
	c.kill(2)
	client := c.client(0)
	await(t, func() bool {
		err := client.Set(t.Context(), "k", 1, 0).Err()
		var said redis.Error
		return errors.As(err, &said) && strings.HasPrefix(said.Error(), "CLUSTERDOWN")
	})
}

// TestClusterRefusesWhatItDoesNotHave makes calls that would be half right on one of several nodes.
func TestClusterRefusesWhatItDoesNotHave(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	client := c.client(0)
	for _, test := range []struct{ call, want string }{
		{"CONFIG SET requirepass x", "ERR CONFIG SET failed"},
		{"DEBUG RELOAD", "ERR in a cluster, a node does not reload"},
		{"DEBUG LOADAOF", "ERR in a cluster, a node does not reload"},
		{"SWAPDB 0 0", "ERR SWAPDB is not allowed in cluster mode"},
		{"SORT k BY w_*", "ERR BY option of SORT denied in Cluster mode."},
		{"SORT k GET w_*", "ERR GET option of SORT denied in Cluster mode."},
		{"SELECT 1", "ERR SELECT is not allowed in cluster mode"},
		{"CLUSTER COUNTKEYSINSLOT 99999", "ERR Invalid slot"},
		{"CLUSTER COUNTKEYSINSLOT x", "ERR value is not an integer or out of range"},
		{"CLUSTER GETKEYSINSLOT 1 -1", "ERR Invalid slot or number of keys"},
		{"COPY {a}b {a}c DB 1", "ERR Copying to another database is not allowed in cluster mode"},
		{"COPY {a}b {a}c DB 0 REPLACE DB 15", "ERR Copying to another database is not allowed in cluster mode"},
		{"COPY {a}b {a}c DB 16", "ERR DB index is out of range"},
		{"COPY {a}b {a}c DB -1", "ERR DB index is out of range"},
		{"COPY {a}b {a}c DB x", "ERR value is not an integer or out of range"},
		{"COPY {a}b {d}c DB 1", "CROSSSLOT Keys in request don't hash to the same slot"},
		{"CLUSTER FAILOVER", "ERR no other node has the slots of this one and could take over"},
		{"CLUSTER DRAIN", "ERR no other node has the slots of this one and could take over"},
		{"CLUSTER DRAIN x", "ERR wrong number of arguments for 'cluster|drain' command"},
		{"MOVE a 1", "ERR MOVE is not allowed in cluster mode"},
		{"CLUSTER MEET 127.0.0.1 x", "ERR Invalid TCP base port specified: x"},
		{"CLUSTER MEET 127.0.0.1 7000 x", "ERR Invalid TCP bus port specified: x"},
		{"CLUSTER MEET 127.0.0.1 65530", "ERR Invalid node address specified: 127.0.0.1:65530"},
		{"CLUSTER MEET 127.0.0.1 7", "ERR the node at 127.0.0.1:10007 cannot be reached"},
		{"CLUSTER MEET 127.0.0.1 7 8 9", "ERR unknown subcommand or wrong number of arguments for 'MEET'"},
		{"CLUSTER FAILOVER x", "ERR syntax error"},
		{"CLUSTER FAILOVER FORCE x", "ERR unknown subcommand or wrong number of arguments for 'FAILOVER'"},
		{"CLUSTER FORGET x", "ERR Unknown node x"},
		{"CLUSTER REPLICAS x", "ERR Unknown node x"},
		{"CLUSTER RESET", "ERR a node is not reset"},
		{"CLUSTER FORGET n0", "ERR node n0 is the last one of the cluster"},
		{"CONFIG SET save 1", "BGSAVE makes snapshots now"},
	} {
		var words []any
		for _, word := range strings.Fields(test.call) {
			words = append(words, word)
		}
		assert.ErrorContains(t, client.Do(t.Context(), words...).Err(), test.want, test.call)
	}
	pipe := client.TxPipeline()
	pipe.Do(t.Context(), "ACL", "SETUSER", "bob")
	_, err := pipe.Exec(t.Context())
	assert.ErrorContains(t, err, "EXECABORT")
	pipe = client.TxPipeline()
	pipe.Do(t.Context(), "CLUSTER", "DRAIN")
	_, err = pipe.Exec(t.Context())
	assert.ErrorContains(t, err, "ERR CLUSTER DRAIN waits for other nodes: it cannot be called inside MULTI")
	assert.NoError(t, client.Set(t.Context(), "k", 1, 0).Err())
	assert.Equal(t, "1", client.ConfigGet(t.Context(), "databases").Val()["databases"])
	assert.Equal(t, "4", client.ConfigGet(t.Context(), "cluster-groups").Val()["cluster-groups"])
	c.run[0].stop(t)
	assert.NotContains(t, c.run[0].output(), "cannot find peer")
	assert.NotContains(t, c.run[0].output(), "not all groups were handed over")
	c.run[0] = nil
}
