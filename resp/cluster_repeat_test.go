package resp

import (
	"bytes"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/slot"
	"rlserver/resp/command"
	"rlserver/resp/forward"
)

// lose makes calls whose replies are lost, all in one write, though they were carried out. It
// returns the replies.
func (f *fakeCluster) lose(c *testClient, calls ...string) (replies []string) {
	f.failed.Store(true)
	defer f.failed.Store(false)
	request := ""
	for _, call := range calls {
		request += frame(strings.Fields(call)...)
	}
	_, err := c.Write([]byte(request))
	require.NoError(c.t, err)
	for range calls {
		replies = append(replies, c.read())
	}
	return replies
}

const (
	changedNothing = "-TRYAGAIN another node begins to lead this slot, and the call has changed nothing"
	countsOnce     = "-TRYAGAIN another node begins to lead this slot: send the call again, its ID counts once"
	uncertain      = "-UNCERTAIN"
)

// A client whose reply is lost is told to send its call again only if that counts nothing twice.
func TestCallsAreRepeatedOnlyIfTheyCountOnce(t *testing.T) {
	f, ts := newFakeCluster(t)
	c := ts.dial()
	for _, policy := range []string{
		"slide SLIDE 10 1m", "lease LEASE 10 1m", "token TOKEN 10 1 1h", "fixed FIXED 10 day", "counter COUNTER 10 1h",
		"shadow TOKEN 10 1 1h SHADOW",
	} {
		require.Equal(t, "+OK", c.do("RL.POLICY SET "+policy))
	}
	require.Contains(t, c.do("RL.SLIDE full 1 1h"), "*5 :1")
	for call, want := range map[string]string{
		"RL.SLIDE {a}1 10 1h":                          uncertain,
		"RL.SLIDE {a}2 10 1h ID x":                     countsOnce,
		"RL.MULTI {a}3 10 1h 20 1d ID x":               countsOnce,
		"RL.TOKEN {a}4 10 1 1h":                        uncertain,
		"RL.LEASE {a}5 10 1h x":                        countsOnce,
		"RL.ALL {id}6 SLIDE 10 1h id SLIDE 10 1h":      uncertain,
		"RL.ALL id SLIDE 10 1h":                        uncertain,
		"RL.ALL {a}7 LEASE 10 1h x {a}8 LEASE 10 1h x": countsOnce,
		"RL.CHECK b1 slide":                            uncertain,
		"RL.CHECK b2 slide ID x":                       countsOnce,
		"RL.CHECK b3 slide lease ID x":                 countsOnce,
		"RL.CHECK b4 token ID x":                       uncertain,
		"RL.CHECK b5 fixed ID x":                       uncertain,
		"RL.CHECK b6 counter ID x":                     uncertain,
		"RL.CHECK b7 lease fixed ID x":                 uncertain,
		"RL.CHECK b8 slide token ID x":                 uncertain,
		"RL.CHECK b9 lease shadow ID x":                uncertain,
		"SET {a}9 v":                                   uncertain,
		"SET {a}10 v XX":                               changedNothing, // there is no such key
		"RL.SLIDE full 1 1h":                           changedNothing, // it is denied
		"RL.CHECK ann token COST 11":                   changedNothing,
		"DEL none":                                     changedNothing,
		"GET full":                                     changedNothing,
		"RL.REFUND full 1 ID none":                     changedNothing,
		"RL.TOKEN full 1 1 1h":                         changedNothing, // an error
		"RL.SLIDE full 1 1h WAIT 1s":                   changedNothing, // denied at once
		"RL.SLIDE {a}11 10 1h COST 0":                  changedNothing,
		"RL.SLIDE {a}12 10 1h WAIT 5s":                 uncertain,
		"RL.SLIDE {a}13 10 1h WAIT 5s ID x":            countsOnce,
		"RL.POLICY SET other TOKEN 1 1 1h":             uncertain,
		"RL.POLICY LIST":                               changedNothing,
	} {
		assert.Contains(t, f.lose(c, call)[0], want, call)
		if want == countsOnce {
			before := ts.usage(f)
			c.do(call)
			assert.Equal(t, before, ts.usage(f), "%s is sent again", call)
		}
	}
}

// usage returns how many members and counts all keys have together.
func (ts *testServer) usage(f *fakeCluster) string {
	c := ts.dial()
	defer c.Close()
	all := ""
	for _, key := range strings.Split(c.do("KEYS *"), " ")[1:] {
		if key != "" && key[0] != '$' {
			all += key + " " + c.do("ZCARD "+key) + " "
		}
	}
	return all
}

// Each call of a pipeline is marked by itself, though they run under the same locks.
func TestEachCallOfAPipelineIsMarkedByItself(t *testing.T) {
	f, ts := newFakeCluster(t)
	c := ts.dial()
	require.Contains(t, c.do("RL.SLIDE full 1 1h"), "*5 :1")
	replies := f.lose(c, "GET x", "RL.SLIDE a 1 1h", "RL.SLIDE full 1 1h", "RL.SLIDE b 1 1h ID x", "GET x", "SET y 1")
	for i, want := range []string{
		changedNothing, uncertain, changedNothing, countsOnce, changedNothing, uncertain,
	} {
		assert.Contains(t, replies[i], want, i)
	}
}

// A call that has waited is marked by what it has done itself, not by the calls before it.
func TestWaitedCallsAreMarkedByThemselves(t *testing.T) {
	f, ts := newFakeCluster(t)
	c, other := ts.dial(), ts.dial()
	for call, want := range map[string]string{
		"RL.SLIDE a 1 1h WAIT 2h":                          uncertain,
		"RL.SLIDE a 1 1h WAIT 2h ID x":                     countsOnce,
		"RL.ALL a SLIDE 1 1h {a}id TOKEN 100 1 1h WAIT 2h": uncertain,
		"RL.SLIDE a 1 1h COST 1 WAIT 1h ID " + longID:      countsOnce,
	} {
		require.Contains(t, other.do("RL.SLIDE a 1 1h"), "*5 :1")
		_, err := c.Write([]byte(frame("GET", "b") + frame(strings.Fields(call)...)))
		require.NoError(t, err)
		require.Equal(t, "$-1 ", c.read())
		queues := ts.partitionOf(0, f.partition).queues
		c.eventually("the call waits", func() bool { return queues.Waiting.Load() == 1 })
		_, err = c.Write([]byte(frame("GET", strings.Repeat("b", 2000)))) // overwrites its words
		require.NoError(t, err)
		f.failed.Store(true)
		other.do("RL.REFUND a 1")
		assert.Contains(t, c.read(), want, call)
		f.failed.Store(false)
		c.read()
		other.do("DEL a")
	}
}

var longID = strings.Repeat("x", 1000)

// elsewhere is a cluster whose one group another node leads, which hangs up on calls.
type elsewhere struct {
	*fakeCluster
	received chan []byte
	epoch    *atomic.Int64
}

func (elsewhere) Lead(int) (Partition, error) { return Partition{}, &slot.MovedError{Node: "other"} }

func (e elsewhere) Epoch(string) string { return strconv.Itoa(int(e.epoch.Load())) }

func (e elsewhere) Reachable(string) bool { return true }

func (e elsewhere) Over(_, epoch string) bool { return epoch != e.Epoch("") }

func (e elsewhere) End(_, epoch string) {
	if epoch == e.Epoch("") {
		e.epoch.Add(1)
	}
}

func (e elsewhere) DialNode(string) (net.Conn, error) {
	own, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		b, all := make([]byte, 64<<10), []byte(nil)
		for !strings.Contains(string(all), "RL.") {
			n, err := theirs.Read(b)
			if err != nil {
				return
			}
			all = append(all, b[:n]...)
		}
		e.received <- all
		<-e.received // the client has sent more
	}()
	return own, nil
}

// The advice about a forwarded call whose node is lost is about the call that was sent, also if it
// has waited.
func TestLostForwardedCalls(t *testing.T) {
	var e elsewhere
	_, ts := newFakeCluster(t, func(o *Options) {
		e = elsewhere{o.Cluster.(*fakeCluster), make(chan []byte), new(atomic.Int64)}
		o.Cluster, o.Hold = e, time.Minute
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go ts.ServeProxy(ln, nil)
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	c := ts.over(conn)
	for call, want := range map[string]string{
		"RL.SLIDE a 1 1h ID x":              countsOnce,
		"RL.SLIDE a 1 1h WAIT 2h ID x":      countsOnce,
		"RL.SLIDE a 1 1h WAIT 2h":           uncertain,
		"RL.SLIDE id 1 1h":                  uncertain,
		"RL.LEASE a 1 1h x WAIT 1h":         countsOnce,
		"RL.CHECK a slide ID x":             uncertain, // this node need not know the policy
		"RL.TOKEN a 1 1 1h COST 1 WAIT 10m": uncertain,
		"EVAL return'RL.TOKEN' 1 a":         uncertain,
		"EVALSHA_RO RL.TOKEN 1 a":           changedNothing,
	} {
		_, err := c.Write([]byte(frame(strings.Fields(call)...)))
		require.NoError(t, err)
		<-e.received
		p := command.Prepared{Words: words(strings.Fields(call)...)}
		if p.Command = command.Table.Find(p.Words[0]); p.MayWait() {
			_, err = c.Write([]byte(frame("PING", strings.Repeat("b", 2000))))
			require.NoError(t, err)
			c.eventually("the node has read it", func() bool {
				return strings.Contains(ts.dial().do("CLIENT LIST"), "qbuf=20")
			})
		}
		e.received <- nil
		assert.Contains(t, c.read(), want, call)
		if p.MayWait() {
			c.read()
		}
	}
}

// A reply to another node that is too large fails its call alone: the link and the calls behind it
// go on.
func TestOversizedReplyToAnotherNode(t *testing.T) {
	f, ts := newFakeCluster(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go ts.ServeNodes(ln)
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	c, node := ts.dial(), ts.over(conn)
	require.Equal(t, "+OK", c.send("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 512kb 60"))
	require.Equal(t, "+OK", c.send("SET", "big", strings.Repeat("x", 3<<20)))
	send := func(calls ...string) {
		request := frame(forward.Control, "default", "2", "0", "link 1.1.other")
		for _, call := range calls {
			request += frame(strings.Fields(call)...)
		}
		_, err := node.Write([]byte(request))
		require.NoError(t, err)
	}
	const tooLarge = "-ERR the call was carried out, and its reply is larger than client-output-buffer-limit"
	send("INCR {big}a", "GET big", "INCR {big}a", "MULTI", "INCR {big}a", "GET big", "EXEC",
		"MULTI", "GET {big}a", "EXEC", "GETDEL big", "EXISTS big", "PING")
	for _, want := range []string{
		":1", tooLarge, ":2", "+OK", "+QUEUED", "+QUEUED", tooLarge,
		"+OK", "+QUEUED", "*1 $1 3", tooLarge, ":0", "+PONG",
	} {
		assert.Contains(t, node.read(), want)
	}
	require.Equal(t, "+OK", c.send("SET", "big", strings.Repeat("x", 3<<20)))
	f.failed.Store(true) // an error that is sent for a reply depends on what that showed
	send("INCR {big}a", "GET big", "PING")
	assert.Contains(t, node.read(), "-UNCERTAIN")
	assert.Contains(t, node.read(), "-TRYAGAIN")
	assert.Contains(t, node.read(), "+PONG")
}

// A call of another node that no longer waits for it does not begin to run: it is refused, and so
// are those behind it.
func TestCallsThatWereGivenUpDoNotRun(t *testing.T) {
	f, ts := newFakeCluster(t)
	var wanted atomic.Bool
	f.wanted = wanted.Load
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go ts.ServeNodes(ln)
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	c, node := ts.dial(), ts.over(conn)
	send := func(calls ...string) (replies []string) {
		request := frame(forward.Control, "default", "2", "0", "link 1.1.other")
		for _, call := range calls {
			request += frame(strings.Fields(call)...)
		}
		_, err := node.Write([]byte(request))
		require.NoError(t, err)
		for range calls {
			replies = append(replies, node.read())
		}
		return replies
	}
	for _, reply := range send("RL.SLIDE a 1 1h", "SET {a}b 1", "BZPOPMIN q 0", "RL.LEASE l 1 1h x WAIT 1h") {
		assert.Contains(t, reply, "-CLUSTERDOWN")
	}
	_, err = node.Write(forward.AppendOnGroup(nil, 0, words("FLUSHALL")))
	require.NoError(t, err)
	assert.Contains(t, node.read(), "-CLUSTERDOWN")
	for _, reply := range send("MULTI", "SET a 1", "EXEC")[1:] {
		assert.NotContains(t, reply, "OK")
	}
	assert.Equal(t, "*0", c.do("KEYS *"))

	wanted.Store(true)
	assert.Contains(t, send("RL.SLIDE a 1 1h")[0], "*5 :1")

	// a call that waits for its locks
	tx, _ := f.beginCall("k")
	_, err = node.Write([]byte(frame("SET", "k", "v")))
	require.NoError(t, err)
	stacks := make([]byte, 1<<20)
	c.eventually("it waits for the locks", func() bool {
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*session).lock("))
	})
	wanted.Store(false)
	tx.End()
	assert.Contains(t, node.read(), "-CLUSTERDOWN")
	assert.Equal(t, "$-1", c.do("GET k"))

	// a call on all keys that waits for its locks
	wanted.Store(true)
	tx, _ = f.beginCall("k")
	_, err = node.Write(append([]byte(frame(forward.Control, "default", "2", "0", "link 1.1.other")),
		forward.AppendOnGroup(nil, 0, words("FLUSHALL"))...))
	require.NoError(t, err)
	c.eventually("it waits for the locks", func() bool {
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*Tx).BeginUnlessHeld("))
	})
	wanted.Store(false)
	tx.End()
	assert.Contains(t, node.read(), "-CLUSTERDOWN")
	assert.Contains(t, c.do("EXISTS a"), ":1")

	// calls that wait for a key, which is then free
	queues := ts.partitionOf(0, f.partition).queues
	for call, free := range map[string]string{
		"BZPOPMIN q 0":              "ZADD q 1 m",
		"BLMOVE p {p}r LEFT LEFT 0": "RPUSH p e",
		"RL.LEASE l 1 1h x WAIT 1h": "RL.RELEASE l a",
	} {
		require.Contains(t, c.do("RL.LEASE l 1 1h a"), "*5 :1")
		wanted.Store(true)
		_, err := node.Write([]byte(frame(forward.Control, "default", "2", "0", "link 1.1.other") +
			frame(strings.Fields(call)...)))
		require.NoError(t, err)
		c.eventually("it waits", func() bool { return queues.Waiting.Load() == 1 })
		wanted.Store(false)
		c.do(free)
		assert.Contains(t, node.read(), changedNothing, call)
	}
	assert.Equal(t, ":1", c.do("ZCARD q"))
	assert.Equal(t, ":1", c.do("LLEN p"))
	c.do("RL.RELEASE l a") // in one of the orders it is still taken
	assert.Equal(t, ":0", c.do("ZCARD l"))
}
