package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// tracker is a connection that tracks keys.
type tracker struct {
	net.Conn
	t    *testing.T
	in   *bufio.Reader
	told map[string]bool // keys, or "*" for everything, since the last call of told
	// values that were read, of keys that it has not been told of since
	copies map[string]string
}

func track(t *testing.T, address, options string) *tracker {
	conn, err := dial(address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	c := &tracker{
		Conn: conn, t: t, in: bufio.NewReader(conn), told: make(map[string]bool), copies: make(map[string]string),
	}
	c.do("HELLO", "3")
	require.Equal(t, "OK", c.do("CLIENT", "TRACKING", "ON", options).text)
	return c
}

// do returns the reply of a call, and notes what it is told before.
func (c *tracker) do(words ...string) reply {
	c.t.Helper()
	for i := range words {
		if words[i] == "" {
			words = words[:i]
			break
		}
	}
	_, err := io.WriteString(c, frame(words...))
	require.NoError(c.t, err)
	for {
		r := c.next()
		if r.kind != '>' {
			return r
		}
	}
}

func (c *tracker) next() reply {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	r, err := readReply(c.in)
	require.NoError(c.t, err)
	if r.kind == '>' {
		if len(r.items[1].items) == 0 {
			c.told["*"] = true
			clear(c.copies)
		}
		for _, key := range r.items[1].items {
			c.told[key.text] = true
			delete(c.copies, key.text)
		}
	}
	return r
}

// expect waits until the client is told of a key, or of all.
func (c *tracker) expect(key string) {
	c.t.Helper()
	for !c.told[key] && !c.told["*"] {
		c.next()
	}
	clear(c.told)
}

// settle reads what the client is told until nothing more comes for now.
func (c *tracker) settle() {
	c.do("PING")
	clear(c.told)
}

// A client of the proxy port is told of changes to keys that it has read on other nodes, whatever
// changes them, and that all may have changed when slots have another leader or a node hangs.
func TestTrackingOnTheProxyPort(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	c := startCluster(t, 3, patient...)
	c.balanced()
	other := c.proxied(1, 2)
	reader, prefixes := track(t, "127.0.0.1:"+c.proxy[0], ""), track(t, "127.0.0.1:"+c.proxy[0], "BCAST")
	links := func() bool { return c.infoOf(0, "stats")["tracking_links"] == "2" }
	await(t, links)
	both := func(key string, change func()) {
		t.Helper()
		for _, read := range [][]string{
			{"GET", key}, {"STRLEN", key}, {"EVAL", "return redis.call('EXISTS', KEYS[1])", "1", key},
		} {
			reader.settle()
			prefixes.settle()
			reader.do(read...)
			change()
			reader.expect(key)
			prefixes.expect(key)
		}
		reader.do("MULTI")
		reader.do("GET", key)
		reader.do("EXEC")
		change()
		reader.expect(key)
	}
	for i := range 12 { // on all nodes
		key := fmt.Sprint("key", i)
		both(key, func() { require.NoError(t, other.Set(t.Context(), key, i, 0).Err()) })
		both(key, func() { require.NoError(t, other.Set(t.Context(), key, i, time.Hour).Err()) })
		both(key, func() {
			script := "return redis.call('INCR', KEYS[1])"
			require.NoError(t, other.Eval(t.Context(), script, []string{key}).Err())
		})
		both(key, func() {
			_, err := other.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
				p.Incr(t.Context(), key)
				return nil
			})
			require.NoError(t, err)
		})
		both(key, func() { reader.do("SET", key, "own") })
		prefixes.settle()
		require.NoError(t, other.PExpire(t.Context(), key, 10*time.Millisecond).Err())
		prefixes.expect(key)
		prefixes.expect(key) // it has expired
	}
	both("flushed", func() { require.NoError(t, other.FlushAll(t.Context()).Err()) })

	for i := range 12 {
		reader.do("GET", fmt.Sprint("key", i))
	}
	reader.settle()
	await(t, func() bool { return other.Do(t.Context(), "CLUSTER", "FAILOVER").Err() == nil })
	reader.expect("*")
	prefixes.expect("*")

	reader.settle()
	require.NoError(t, c.run[2].cmd.Process.Signal(syscall.SIGSTOP))
	reader.expect("*")
	prefixes.expect("*")
	require.NoError(t, c.run[2].cmd.Process.Signal(syscall.SIGCONT))
	await(t, links)
	c.settled()
	reader.settle()
	both("again", func() { require.NoError(t, other.Incr(t.Context(), "again").Err()) })

	reader.Close()
	prefixes.Close()
	await(t, func() bool { return c.infoOf(0, "stats")["tracking_links"] == "0" })
}

// copy reads a key, and keeps its value unless another node has to be asked.
func (c *tracker) copy(key string) {
	if r := c.do("GET", key); r.kind == '$' {
		c.copies[key] = r.text
	}
}

// A node has missed so much that a snapshot fills it: none of its clients keeps a copy of what has
// changed before, meanwhile or after, when it leads again. What the snapshot changes is no event of
// a key.
func TestTrackingOnANodeThatIsRefilled(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	c := startCluster(t, 3, "--failover-hold", "60000", "--loglevel", "debug")
	c.balanced()
	proxy, port := "127.0.0.1:"+c.proxy[0], c.address(0)
	trackers := []*tracker{track(t, proxy, ""), track(t, proxy, "BCAST"), track(t, port, ""), track(t, port, "BCAST")}
	await(t, func() bool { return c.infoOf(0, "stats")["tracking_links"] == "2" })
	events := c.client(0).PSubscribe(t.Context(), "__keyspace@0__:{k0}*")
	_, err := events.Receive(t.Context())
	require.NoError(t, err)
	defer events.Close()
	require.NoError(t, c.client(0).ConfigSet(t.Context(), "notify-keyspace-events", "KA").Err())
	key := func(i int) string { return fmt.Sprint("k", i%12) } // on all nodes
	other := c.proxied(1, 2)
	change := func(from, to int) {
		for i := from; i < to; i++ {
			require.NoError(t, other.Incr(t.Context(), key(i)).Err())
		}
	}
	copied := func() {
		for i := range 12 {
			for _, tr := range trackers {
				tr.copy(key(i))
			}
		}
	}
	current := func() {
		t.Helper()
		await(t, func() bool {
			for _, tr := range trackers {
				tr.do("PING")
				for key, value := range tr.copies {
					if value != other.Get(t.Context(), key).Val() {
						return false
					}
				}
			}
			return true
		})
	}
	change(0, 24)
	copied()
	require.NoError(t, c.run[0].cmd.Process.Signal(syscall.SIGSTOP))
	await(t, func() bool { // calls that are sent to a node that hangs are waited for
		one, two := c.infoOf(1, "cluster")["cluster_groups_led"], c.infoOf(2, "cluster")["cluster_groups_led"]
		return slices.Contains([]string{"04", "13", "22", "31", "40"}, one+two)
	})
	change(0, 12)
	// more entries than a log keeps behind a snapshot, and more than one of its files
	for range 300 {
		require.NoError(t, other.Incr(t.Context(), key(0)).Err())
	}
	for i := range 40 {
		require.NoError(t, other.Set(t.Context(), fmt.Sprint("{k0}", i), strings.Repeat("x", 300_000), 0).Err())
	}
	for i := 1; i < 3; i++ {
		client := c.client(i)
		require.NoError(t, client.BgSave(t.Context()).Err())
		await(t, func() bool { return infoValue(client, "persistence", "rdb_bgsave_in_progress") == "0" })
	}
	change(0, 24)
	require.NoError(t, c.run[0].cmd.Process.Signal(syscall.SIGCONT))
	for i := range 100 {
		copied()
		change(i, i+3)
	}
	current()
	await(t, func() bool { return strings.Contains(c.run[0].output(), "Installed remote snapshot") })
	c.balanced()
	copied()
	change(0, 12)
	current()
	_, err = events.ReceiveTimeout(t.Context(), 10*time.Millisecond)
	assert.ErrorContains(t, err, "timeout")
}
