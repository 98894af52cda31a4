package resp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/overview"
	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/forward"
)

// fakeCluster is a cluster with one group. absent: this node does not lead it; failed: changes
// cannot be replicated; lost: no node will lead it.
type fakeCluster struct {
	command.Cluster
	forward.Nodes
	partition      Partition
	ended          chan struct{}
	absent, failed atomic.Bool
	lost           atomic.Bool
	awaited        chan struct{} // Await returns when something is received
	server         *Server
	shared         atomic.Int64 // changes of policies
	view           overview.Cluster
	wanted         func() bool                   // calls of other nodes
	handOver       error                         // of HandOver
	waits          atomic.Pointer[chan struct{}] // Wait returns when it is closed
}

func (f *fakeCluster) HandOver(context.Context) error { return f.handOver }

func (f *fakeCluster) Groups() int { return 1 }

func (f *fakeCluster) ChangeUsers([]byte) (int, error) { return 0, nil }

func (f *fakeCluster) Lead(int) (Partition, error) {
	if f.absent.Load() {
		return Partition{}, slot.ErrNoLeader
	}
	return f.partition, nil
}

func (f *fakeCluster) Await(context.Context, int) (Partition, error) {
	<-f.awaited
	if f.lost.Load() {
		return Partition{}, slot.ErrNoLeader
	}
	f.absent.Store(false)
	return f.partition, nil
}

func (f *fakeCluster) View() *overview.Cluster { return &f.view }

func (f *fakeCluster) OtherNodes() []string { return nil }

func (f *fakeCluster) Wanted(string) func() bool { return f.wanted }

func (f *fakeCluster) SetPolicies(_ *command.Env, list []*policy.Policy) (engine.PolicyChanges, error) {
	f.shared.Add(1)
	return f.partition.Engine.SetPolicies(f.partition.Clock.Now(), list)
}

func (f *fakeCluster) DeletePolicy(_ *command.Env, name string) (found bool, err error) {
	if found, err = f.partition.Engine.DeletePolicy(f.partition.Clock.Now(), name); found {
		f.shared.Add(1)
	}
	return found, err
}

func (f *fakeCluster) Overview() *overview.Cluster {
	return &overview.Cluster{Groups: []overview.Group{{
		Role: overview.Leader, Counts: overview.Counts{GroupCounts: f.server.Stats.Group(0).Snapshot()},
	}}}
}

func (f *fakeCluster) Ask() func() error { return func() error { return f.Wait(0) } }

func (f *fakeCluster) Wait(engine.Position) error {
	if until := f.waits.Load(); until != nil {
		<-*until
	}
	if f.failed.Load() {
		return errors.New("leadership has ended")
	}
	return nil
}

func (f *fakeCluster) Ended() <-chan struct{} { return f.ended }

// clusterOf returns a cluster as its first node sees it, whose nodes are named by their ids; of
// each group the leader is first, "" for none.
func clusterOf(nodes []overview.Node, groups ...[]string) overview.Cluster {
	c := overview.Cluster{Name: nodes[0].ID, Nodes: nodes}
	for i := range nodes {
		nodes[i].Name = nodes[i].ID
	}
	for i, replicas := range groups {
		r := slot.RangeOf(i, len(groups))
		g := overview.Group{Number: i, First: r.First, Last: r.Last, Leader: replicas[0], Replicas: replicas}
		if g.Leader == "" {
			g.Replicas = replicas[1:]
		}
		c.Groups = append(c.Groups, g)
	}
	return c
}

func newFakeCluster(t *testing.T, with ...func(*Options)) (*fakeCluster, *testServer) {
	f := &fakeCluster{awaited: make(chan struct{}), ended: make(chan struct{})}
	ts := startServer(t, config.Defaults{"databases": "1"}, func(o *Options) {
		o.Cluster = f
		for _, change := range with {
			change(o)
		}
		f.partition = Partition{
			Engine: engine.New(engine.Options{
				Databases: 1, Seed: [2]uint64{1, 2}, Origin: 1, Memory: o.Engine.Memory(),
			}),
			Clock:      o.Clock,
			Leadership: f,
		}
	})
	f.server = ts.Server
	return f, ts
}

// A client whose reply was cut off is closed, also if the outcome of the call is unknown.
func TestOversizedReplyOfUnknownOutcome(t *testing.T) {
	f, ts := newFakeCluster(t)
	c, client := ts.dial(), ts.dial()
	require.Equal(t, "+OK", c.send("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 512kb 60"))
	require.Equal(t, "+OK", c.send("SET", "big", strings.Repeat("x", 3<<20)))
	f.failed.Store(true)
	_, err := io.WriteString(client, frame("GET", "big"))
	require.NoError(t, err)
	rest, err := io.ReadAll(client.r)
	assert.NoError(t, err)
	assert.Empty(t, rest)
}

// A call on all groups may be the first one of a connection, which has no statistics yet.
func TestWholeKeyspaceCallMayBeTheFirst(t *testing.T) {
	_, ts := newFakeCluster(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go ts.ServeProxy(ln, nil)
	for _, call := range []string{"DBSIZE", "FLUSHALL", "KEYS *", "RL.TOP", "SCAN 0", "RANDOMKEY"} {
		for _, address := range []string{ts.addr, ln.Addr().String()} {
			conn, err := net.Dial("tcp", address)
			require.NoError(t, err)
			c := ts.over(conn)
			assert.NotContains(t, c.do(call), "internal error", call)
			conn.Close()
		}
	}
}

// A call on all groups waits for the election of a group, which it would leave out otherwise.
func TestWholeKeyspaceCallsWaitForElections(t *testing.T) {
	f, ts := newFakeCluster(t)
	c := ts.dial()
	assert.Equal(t, "+OK", c.do("SET k v"))
	for _, call := range []struct{ words, reply string }{
		{"DBSIZE", ":1"}, {"KEYS *", "*1 $1 k"}, {"SCAN 0", "*2 $1 0 *1 $1 k"}, {"RANDOMKEY", "$1 k"},
		{"FLUSHALL", "+OK"},
	} {
		f.absent.Store(true)
		_, err := c.Write([]byte(frame(strings.Fields(call.words)...)))
		require.NoError(t, err)
		f.awaited <- struct{}{}
		assert.Equal(t, call.reply, strings.TrimSpace(c.read()), call.words)
	}
	f.absent.Store(true)
	f.lost.Store(true)
	close(f.awaited)
	assert.Contains(t, c.do("DBSIZE"), "-CLUSTERDOWN")
}

// A call that waits when leadership ends has changed nothing, and its reply says so.
func TestLeadershipEndsWhileCallsWait(t *testing.T) {
	f, ts := newFakeCluster(t)
	ended := make(chan struct{})
	f.ended = ended
	c, other := ts.dial(), ts.dial()
	for _, call := range [][]string{
		{"BZPOPMIN", "q", "0"}, {"BLMOVE", "q", "{q}r", "LEFT", "LEFT", "0"},
		{"RL.LEASE", "l", "1", "1h", "b", "WAIT", "2h"},
	} {
		assert.Contains(t, other.do("RL.LEASE l 1 1h a"), "*5 :1")
		_, err := c.Write([]byte(frame(call...)))
		require.NoError(t, err)
		waits := func() bool { return ts.partitionOf(0, f.partition).queues.Waiting.Load() == 1 }
		require.Eventually(t, waits, time.Minute, time.Millisecond)
		if call[0] != "RL.LEASE" { // CLIENT UNBLOCK changes nothing either
			f.failed.Store(true)
			assert.Equal(t, ":1", other.do("CLIENT UNBLOCK 1 ERROR"))
			assert.Contains(t, c.read(), "-UNBLOCKED")
			f.failed.Store(false)
		}
	}
	f.failed.Store(true)
	close(ended)
	assert.Contains(t, c.read(), "-TRYAGAIN another node begins to lead this slot, and the call has changed nothing")
}

// INFO counts held calls, and the replies that are replaced when leadership ends.
func TestInfoCountsHeldCallsAndUncertainReplies(t *testing.T) {
	f, ts := newFakeCluster(t)
	c, other := ts.dial(), ts.dial()
	expect := func(holding, held, uncertain, tryagain string) {
		t.Helper()
		text := other.do("INFO cluster")
		for name, value := range map[string]string{
			"holding_calls": holding, "held_calls": held, "uncertain_replies": uncertain, "tryagain_replies": tryagain,
		} {
			assert.Contains(t, text, "cluster_"+name+":"+value+"\r\n")
		}
	}
	assert.Equal(t, "+OK", c.do("SET k v"))
	f.absent.Store(true)
	_, err := c.Write([]byte(frame("GET", "k")))
	assert.NoError(t, err)
	holds := func() bool { return ts.Stats.Group(0).Snapshot().Holding == 1 }
	assert.Eventually(t, holds, time.Minute, time.Millisecond)
	expect("1", "1", "0", "0")
	f.awaited <- struct{}{}
	assert.Equal(t, "$1 v ", c.read())
	expect("0", "1", "0", "0")

	f.failed.Store(true)
	assert.Contains(t, c.do("SET k w"), "-UNCERTAIN")
	assert.Contains(t, c.do("RL.SLIDE l 1 1s ID a"), "-TRYAGAIN")
	assert.Contains(t, c.do("GET k"), "-TRYAGAIN")
	f.failed.Store(false)
	expect("0", "1", "1", "2")
	assert.Equal(t, "+OK", other.do("CONFIG RESETSTAT"))
	expect("0", "0", "0", "0")
}

func TestCountsOnce(t *testing.T) {
	for call, want := range map[string]bool{
		"RL.SLIDE k 5 1m": false, "RL.SLIDE k 5 1m ID a": true, "rl.multi k 5 1m 9 1h cost 2 id a": true,
		"RL.LEASE k 5 1m a": true, "RL.RELEASE k a": true, "RL.LEASE id 5 1m WAIT WAIT 1s": true,
		"RL.TOKEN k 5 1 1m": false, "RL.REFUND k 1 ID a": false, "SET k ID": false, "ZADD k 1 ID": false,
		// the algorithms of its policies decide: its handler knows them
		"RL.CHECK ann login ID a": false, "RL.CHECK ann id": false,
		// keys and values may look like options
		"RL.SLIDE id 5 1m": false, "RL.SLIDE id 5 1m COST 1": false, "RL.SLIDE k 5 1m ID cost COST 2": true,
		"RL.MULTI id 5 1m 9 1h": false, "RL.MULTI k 5 1m 9 1h WAIT 1s ID a": true,
		"RL.ALL k SLIDE 5 1m id SLIDE 5 1m": false, "RL.ALL id SLIDE 5 1m COST 2": false,
		"RL.ALL k LEASE 5 1m a id LEASE 5 1m b": true, "RL.ALL k LEASE 5 1m a id TOKEN 5 1 1m": false,
	} {
		p := command.Prepared{Words: words(strings.Fields(call)...)}
		p.Command = command.Table.Find(p.Words[0])
		assert.Equal(t, want, p.CountsOnce(), call)
	}
}

// What clients ask about nodes is answered as by Redis, and what there is not says what to use.
func TestClusterCommandsAboutNodes(t *testing.T) {
	f, ts := newFakeCluster(t)
	one, two, none := strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("3", 40)
	f.view = clusterOf([]overview.Node{{ID: one, Up: true}, {ID: two}}, []string{one, two})
	c := ts.dial()
	c.check([]answer{
		{"CLUSTER REPLICAS " + one, "*0"},
		{"CLUSTER SLAVES " + two, "*0"},
		{"CLUSTER REPLICAS " + none, "-ERR Unknown node " + none},
		{"CLUSTER SLAVES " + none, "-ERR Unknown node " + none},
		{"CLUSTER REPLICAS", "-ERR wrong number of arguments for 'cluster|replicas' command"},
		{"CLUSTER COUNT-FAILURE-REPORTS " + one, ":0"},
		{"CLUSTER COUNT-FAILURE-REPORTS " + two, ":1"},
		{"CLUSTER COUNT-FAILURE-REPORTS " + none, "-ERR Unknown node " + none},
		{"CLUSTER SAVECONFIG", "+OK"},
	})
	for call, want := range map[string]string{
		"ADDSLOTS 1": "CLUSTER MEET", "ADDSLOTSRANGE 1 2": "CLUSTER MEET", "DELSLOTS 1": "CLUSTER MEET",
		"DELSLOTSRANGE 1 2": "CLUSTER MEET", "FLUSHSLOTS": "CLUSTER MEET", "SETSLOT 1 STABLE": "CLUSTER MEET",
		"REPLICATE " + one: "INFO replication", "RESET HARD": "CLUSTER FORGET", "reset": "CLUSTER FORGET",
		"BUMPEPOCH": "CLUSTER FAILOVER", "SET-CONFIG-EPOCH 1": "CLUSTER FAILOVER", "LINKS": "INFO cluster",
	} {
		got := c.do("CLUSTER " + call)
		assert.True(t, strings.HasPrefix(got, "-ERR "), "%s: %s", call, got)
		assert.NotContains(t, got, "unknown")
		assert.Contains(t, got, want, call)
	}
	assert.Equal(t, "-ERR unknown subcommand 'FOO'. Try CLUSTER HELP.", c.do("CLUSTER FOO"))
}

// Replies that are written after the locks are released wait until they are committed like all
// others, alone and in a transaction.
func TestPostponedRepliesOfAnEndedLeadershipAreReplaced(t *testing.T) {
	f, ts := newFakeCluster(t)
	c := ts.dial()
	zadd, hset := []string{"ZADD", "{k}z"}, []string{"HSET", "{k}h"}
	for i := range command.LongWork + 1 {
		zadd = append(zadd, strconv.Itoa(i), strconv.Itoa(i))
		if i <= command.LongReply {
			hset = append(hset, strconv.Itoa(i), "v")
		}
	}
	for _, call := range [][]string{zadd, hset, {"SET", "{k}s", "value"}, {"SET", "{k}t", "valve"}} {
		_, err := c.Write([]byte(frame(call...)))
		require.NoError(t, err)
		c.read()
	}
	f.failed.Store(true)
	for call, want := range map[string]string{
		"ZUNIONSTORE {k}d 1 {k}z":    "UNCERTAIN",
		"ZRANGESTORE {k}d {k}z 0 -1": "UNCERTAIN",
		"SORT {k}z STORE {k}l":       "UNCERTAIN",
		"HGETALL {k}h":               "TRYAGAIN",
		"HSCAN {k}h 0":               "TRYAGAIN",
		"ZRANGE {k}z 0 -1":           "TRYAGAIN",
		"SORT {k}z":                  "UNCERTAIN", // it has the flag write, as in Redis
		"DUMP {k}z":                  "TRYAGAIN",
		"LCS {k}s {k}t":              "TRYAGAIN",
		"BITCOUNT {k}s":              "TRYAGAIN",
	} {
		assert.Contains(t, c.do(call), want, call)
		c.do("MULTI")
		c.do(call)
		c.do(call)
		assert.Contains(t, c.do("EXEC"), "UNCERTAIN", "%s in a transaction", call)
		assert.Equal(t, "+PONG", c.do("PING"), "after %s", call)
	}
}

// Clients take a node that they find as a replica of any slots for one that leads none. So each
// node has one role: it leads slots or, as a node that has just been started, none.
func TestClusterNodesHaveOneRole(t *testing.T) {
	f, ts := newFakeCluster(t)
	one, two, three := strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("3", 40)
	f.view = clusterOf([]overview.Node{
		{ID: one, Host: "a", Port: 1, Bus: "a:0", Up: true}, {ID: two, Host: "b", Port: 2, Bus: "b:0", Up: true},
		{ID: three, Host: "c", Port: 3, Bus: "c:0"},
	}, []string{one, two, three}, []string{two, one, three}, []string{one, two, three}, []string{one, three, two})
	c := ts.dial()
	assert.Equal(t, "*4 *3 :0 :4095 *4 $1 a :1 $40 "+one+" *0 *3 :4096 :8191 *4 $1 b :2 $40 "+two+" *0 "+
		"*3 :8192 :12287 *4 $1 a :1 $40 "+one+" *0 *3 :12288 :16383 *4 $1 a :1 $40 "+one+" *0",
		strings.TrimSpace(c.do("CLUSTER SLOTS")))
	shard := func(slots, id, host, port, health string) string {
		return "*4 $5 slots " + slots + " $5 nodes *1 *14 $2 id $40 " + id + " $4 port :" + port +
			" $2 ip $1 " + host + " $8 endpoint $1 " + host +
			" $4 role $6 master $18 replication-offset :0 $6 health " + health
	}
	assert.Equal(t, "*3 "+shard("*4 :0 :4095 :8192 :16383", one, "a", "1", "$6 online")+" "+
		shard("*2 :4096 :8191", two, "b", "2", "$6 online")+" "+shard("*0", three, "c", "3", "$4 fail"),
		strings.TrimSpace(c.do("CLUSTER SHARDS")))
	nodes := c.do("CLUSTER NODES")
	assert.Contains(t, nodes, one+" a:1@0 myself,master - 0 0 0 connected 0-4095 8192-16383")
	assert.Contains(t, nodes, two+" b:2@0 master - 0 0 0 connected 4096-8191")
	assert.Contains(t, nodes, three+" c:3@0 master,fail? - 0 0 0 disconnected")
}

// A reply that CLIENT REPLY has dropped is not replaced, and those behind it are.
func TestDroppedRepliesHaveNoOutcome(t *testing.T) {
	f, ts := newFakeCluster(t)
	c := ts.dial()
	f.failed.Store(true)
	_, err := c.Write([]byte(frame("PING") + frame("CLIENT", "REPLY", "SKIP") + frame("SET", "k", "v") +
		frame("SET", "k", "w") + frame("GET", "k") + frame("PING")))
	require.NoError(t, err)
	assert.Equal(t, "+PONG ", c.read())
	assert.Contains(t, c.read(), "-UNCERTAIN")
	assert.Contains(t, c.read(), "-TRYAGAIN")
	assert.Equal(t, "+PONG ", c.read())
}

// CLUSTER INFO counts what CLUSTER NODES, SLOTS and SHARDS list, whoever leads and whoever is up.
func TestClusterInfoAgreesWithClusterNodes(t *testing.T) {
	f, ts := newFakeCluster(t)
	c := ts.dial()
	ids := []string{strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("3", 40)}
	for bits := range 4 * 4 * 4 { // leaders of two groups, 3: none; which of the other nodes are up
		leaders, up := []int{bits % 4, bits / 4 % 4}, []bool{true, bits/16%2 == 1, bits/32 == 1}
		var members []overview.Node
		var groups [][]string
		down := 0
		for i, id := range ids {
			members = append(members, overview.Node{ID: id, Host: "h", Port: 1 + i, Up: up[i]})
			if !up[i] {
				down++
			}
		}
		for _, leader := range leaders {
			nodes := []string{""}
			if leader < 3 {
				nodes[0] = ids[leader]
			}
			for i, id := range ids {
				if i != leader {
					nodes = append(nodes, id)
				}
			}
			groups = append(groups, nodes)
		}
		f.view = clusterOf(members, groups...)
		info, nodes := c.do("CLUSTER INFO"), c.do("CLUSTER NODES")
		listed := 0
		for word := range strings.FieldsSeq(nodes) {
			if first, last, ok := strings.Cut(word, "-"); ok && first != "" {
				a, _ := strconv.Atoi(first)
				b, _ := strconv.Atoi(last)
				listed += b - a + 1
			}
		}
		assert.Contains(t, info, fmt.Sprintf("cluster_slots_assigned:%d\r\n", listed), "%v %v", leaders, up)
		flagged := strings.Count(nodes, "fail?")
		assert.Equal(t, down, flagged, "%v %v", leaders, up)
		assert.Equal(t, down, strings.Count(c.do("CLUSTER SHARDS"), "health $4 fail"))
		assert.Equal(t, 2*flagged > len(ids), strings.Contains(info, "cluster_state:fail"), "%v %v", leaders, up)
		waiting := 0
		for _, leader := range leaders {
			if leader == 3 || !up[leader] {
				waiting += 8192
			}
		}
		if 2*flagged > len(ids) {
			assert.Contains(t, info, "cluster_slots_ok:0\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:16384\r\n")
		} else {
			assert.Contains(t, info, fmt.Sprintf("cluster_slots_ok:%d\r\ncluster_slots_pfail:%d\r\n"+
				"cluster_slots_fail:0\r\n", 16384-waiting, waiting), "%v %v", leaders, up)
		}
	}
}

// CLUSTER FAILOVER says what could not be handed over.
func TestClusterFailoverThatFails(t *testing.T) {
	f, ts := newFakeCluster(t)
	f.view.Groups = []overview.Group{{Leader: "a", Replicas: []string{"a", "b"}}}
	f.handOver = errors.New("groups [0] (b is down)")
	c := ts.dial()
	assert.Equal(t, "-ERR this node still leads groups [0] (b is down). It goes on trying", c.do("CLUSTER FAILOVER"))
	c.do("MULTI")
	c.do("CLUSTER FAILOVER")
	assert.Contains(t, c.do("EXEC"), "cannot be called inside MULTI")
	f.handOver = nil
	assert.Equal(t, "+OK", c.do("CLUSTER FAILOVER FORCE"))
}

// A policy that is missing is in no group: the reply does not wait for those without a leader.
func TestDeletingAMissingPolicyAwaitsNoGroup(t *testing.T) {
	f, ts := newFakeCluster(t)
	c := ts.dial()
	assert.Equal(t, ":0", c.do("RL.POLICY DEL login"))
	assert.EqualValues(t, 0, f.shared.Load())
	assert.Equal(t, "+OK", c.do("RL.POLICY SET login SLIDE 5 1m"))
	assert.Equal(t, ":1", c.do("RL.POLICY DEL login"))
	assert.EqualValues(t, 2, f.shared.Load())
}
