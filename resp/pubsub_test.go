package resp

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/resp/config"
)

// Replies of PUBLISH, SUBSCRIBE and others are compared with those of Redis in package integration.

// A subscriber that does not read is closed by its output limit. It costs neither the publisher nor
// the other subscribers anything.
func TestSlowSubscriberIsClosed(t *testing.T) {
	for name, limit := range map[string]string{
		"hard": "pubsub 1mb 0 0", "soft": "pubsub 0 200kb 1", "none": "pubsub 0 0 0",
	} {
		t.Run(name, func(t *testing.T) {
			ts := startServer(t, config.Defaults{})
			admin, slow, quick := ts.dial(), ts.named("slow"), ts.dial()
			require.Equal(t, "+OK", admin.send("CONFIG", "SET", "client-output-buffer-limit", limit))
			if name == "none" {
				admin.check([]answer{{"CONFIG SET maxmemory-clients 2mb", "+OK"}})
			}
			require.Equal(t, "*3 $9 subscribe $4 news :1", slow.do("SUBSCRIBE news"))
			require.Equal(t, "*3 $9 subscribe $4 news :1", quick.do("SUBSCRIBE news"))

			message := strings.Repeat("x", 10_000)
			for closed := 0; closed < 100; { // until long after the slow one is closed
				receivers, _ := strconv.Atoi(admin.do("PUBLISH news " + message)[1:])
				if receivers == 1 {
					closed++
				}
				require.Equal(t, "*3 $7 message $4 news $10000 "+message+" ", quick.read())
			}
			assert.NotContains(t, admin.do("CLIENT LIST"), "name=slow")
			if name == "none" {
				assert.Equal(t, "1", admin.field("evicted_clients"))
			} else {
				assert.Equal(t, "1", admin.field("client_output_buffer_limit_disconnections"))
			}
			assert.Equal(t, "1", admin.field("pubsub_subscriptions"))
			assert.EqualValues(t, 160+len("news"), ts.memory.Normal.Bytes.Load(), "of the subscription that is left")
		})
	}
}

// What a subscriber has not read is counted in its memory.
func TestMemoryOfMessagesIsCounted(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	admin, slow := ts.dial(), ts.named("slow")
	require.Contains(t, slow.do("SUBSCRIBE news"), "subscribe")
	assert.Equal(t, 0, admin.clientField("slow", "omem"))
	admin.eventually("messages are queued", func() bool {
		admin.do("PUBLISH news " + strings.Repeat("x", 10_000))
		return admin.clientField("slow", "omem") > 1_000_000
	})
	before := admin.clientField("slow", "tot-mem")
	admin.send("PUBLISH", "news", strings.Repeat("x", 100_000))
	assert.Equal(t, 100_000+len(">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$100000\r\n\r\n"),
		admin.clientField("slow", "tot-mem")-before)
	slow.Close()
	admin.nothingHeld(ts)
}

func TestSubscriptionsAreLimited(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, other := ts.dial(), ts.named("other")
	c.check([]answer{
		{"HELLO 3", "%7…"},
		{"CONFIG SET pubsub-max-subscriptions-per-client 3", "+OK"},
		{"SUBSCRIBE a", ">3 $9 subscribe $1 a :1"},
		{"SUBSCRIBE a b c d", "-ERR a client may have 3 subscriptions, see pubsub-max-subscriptions-per-client"},
		{"PUBSUB CHANNELS", "*1 $1 a"},
		{"SUBSCRIBE b", ">3 $9 subscribe $1 b :2"},
		{"PSUBSCRIBE c", ">3 $10 psubscribe $1 c :3"},
		{"SUBSCRIBE a", ">3 $9 subscribe $1 a :3"},
		{"UNSUBSCRIBE b", ">3 $11 unsubscribe $1 b :2"},
		{"SUBSCRIBE b b", ">3 $9 subscribe $1 b :3"}, // one name counts once
	})
	assert.Equal(t, ">3 $9 subscribe $1 b :3", strings.TrimSpace(c.read()))
	c.check([]answer{
		{"SSUBSCRIBE s", "-ERR a client may have 3 subscriptions, see pubsub-max-subscriptions-per-client"},
		{"CONFIG SET pubsub-max-subscriptions 4", "+OK"},
	})
	other.check([]answer{
		{"HELLO 3", "%7…"},
		{"SUBSCRIBE x", ">3 $9 subscribe $1 x :1"},
		{"SUBSCRIBE y", "-ERR all clients together may have 4 subscriptions, see pubsub-max-subscriptions"},
		{"CONFIG SET pubsub-max-subscriptions 5 pubsub-max-patterns 1", "+OK"},
		{"PSUBSCRIBE p", "-ERR there may be 1 different patterns with subscribers, see pubsub-max-patterns"},
		{"PSUBSCRIBE c", ">3 $10 psubscribe $1 c :2"},
	})
	assert.Equal(t, "5", c.field("pubsub_subscriptions"))
	assert.Equal(t, "3", c.field("pubsub_channels"))
	assert.Equal(t, "1", c.field("pubsub_patterns"))
	assert.Equal(t, "0", c.field("pubsubshard_channels"))
	other.Close()
	c.eventually("they end with the connection", func() bool { return c.number("pubsub_subscriptions") == 3 })
}

// Names of channels are counted in the memory of the client.
func TestMemoryOfSubscriptionsIsCounted(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	admin, c := ts.dial(), ts.named("greedy")
	require.Equal(t, "+OK", admin.do("CONFIG SET maxmemory-clients 1mb"))
	before := admin.clientField("greedy", "tot-mem")
	require.Contains(t, c.do("SUBSCRIBE "+strings.Repeat("x", 1000)), ":1")
	assert.Equal(t, 1160, admin.clientField("greedy", "tot-mem")-before)
	require.Contains(t, c.do("UNSUBSCRIBE"), ":0")
	assert.Equal(t, 0, admin.clientField("greedy", "tot-mem")-before)
	for i := range 1100 {
		fmt.Fprintf(c, "SUBSCRIBE %d%s\r\n", i, strings.Repeat("x", 1000))
	}
	c.eventually("it is evicted", func() bool { return admin.number("evicted_clients") == 1 })
	assert.Equal(t, "0", admin.field("pubsub_subscriptions"))
}

// Neither a message that follows a change, nor one to a client whose replies are not sent yet,
// overtakes the sync of the log.
func TestMessagesWaitForTheLog(t *testing.T) {
	journal := newSlowJournal()
	ts := startServer(t, config.Defaults{}, withJournal(journal))
	a, b, c := ts.dial(), ts.dial(), ts.dial()
	require.Contains(t, a.do("HELLO 3"), "proto :3")
	require.Contains(t, a.do("SUBSCRIBE news"), "subscribe")

	_, err := io.WriteString(a, "SET mine 1\r\nPING\r\n") // its replies wait
	require.NoError(t, err)
	c.eventually("the call has run", func() bool { return journal.length() == 1 })
	require.Equal(t, ":1", c.do("PUBLISH news first"))
	_, err = io.WriteString(b, "SET k v\r\nPUBLISH news second\r\n")
	require.NoError(t, err)
	c.eventually("the call has run", func() bool { return journal.length() == 2 })
	require.Equal(t, ":1", c.do("PUBLISH news third"))
	requireSilence(t, a)
	journal.sync()
	assert.Equal(t, "+OK ", a.read())
	assert.Equal(t, "+PONG ", a.read())
	assert.Equal(t, ">3 $7 message $4 news $5 first ", a.read())
	assert.Equal(t, ">3 $7 message $4 news $5 third ", a.read())
	assert.Equal(t, ">3 $7 message $4 news $6 second ", a.read())
}

// withJournal has the changes of a server kept by a journal.
func withJournal(j *slowJournal) func(*Options) {
	return func(o *Options) {
		o.Journal, o.Engine = j, engine.New(engine.Options{Databases: 16, Journal: j})
	}
}

// length returns the number of records.
func (j *slowJournal) length() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return int(j.appended)
}

// requireSilence requires that nothing has been sent to the client.
func requireSilence(t *testing.T, c *testClient) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	_, err := c.r.Peek(1)
	require.Error(t, err)
	c.SetReadDeadline(time.Time{})
}

// Subscribers come and go while others publish: a client gets messages only between the replies
// that confirm and end its subscription, each message once and in order.
func TestSubscribersComeAndGo(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	var publishers, subscribers sync.WaitGroup
	var stop atomic.Bool
	for p := range 2 {
		publisher := ts.dial()
		publishers.Go(func() {
			for i := 0; !stop.Load(); i += 3 {
				publisher.pipe(fmt.Sprintf("PUBLISH news%d %d", p, i), fmt.Sprintf("PUBLISH news%d %d", p, i+1),
					fmt.Sprintf("SPUBLISH other %d", i), fmt.Sprintf("PUBLISH news%d %d", p, i+2))
			}
		})
	}
	for range 4 {
		c := ts.dial()
		subscribers.Go(func() {
			for range 50 {
				listenFor(t, c)
			}
		})
	}
	subscribers.Wait()
	stop.Store(true)
	publishers.Wait()
	c := ts.dial()
	assert.Equal(t, "0", c.field("pubsub_subscriptions"))
}

// listenFor subscribes, reads some messages and unsubscribes.
func listenFor(t *testing.T, c *testClient) {
	require.Equal(t, "*3 $9 subscribe $5 news0 :1", c.do("SUBSCRIBE news0"))
	require.Equal(t, "*3 $10 psubscribe $5 news1 :2", c.readUntil("psubscribe", "PSUBSCRIBE news1"))
	last := map[string]int{"news0": -1, "news1": -1}
	for range 20 {
		words := strings.Fields(c.read())
		require.Contains(t, words[2], "message")
		channel, text := words[len(words)-3], words[len(words)-1]
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		require.True(t, last[channel] == -1 || n == last[channel]+1, "%s: %d follows %d", channel, n, last[channel])
		last[channel] = n
	}
	require.Equal(t, "*3 $11 unsubscribe $5 news0 :1", c.readUntil(" unsubscribe", "UNSUBSCRIBE news0"))
	require.Equal(t, "*3 $12 punsubscribe $5 news1 :0", c.readUntil("punsubscribe", "PUNSUBSCRIBE"))
	require.Equal(t, "$-1", c.do("GET k")) // no message is behind the reply
}

// readUntil makes a call, and returns the first reply that contains a word.
func (c *testClient) readUntil(word, call string) string {
	_, err := io.WriteString(c, call+"\r\n")
	require.NoError(c.t, err)
	for {
		if got := c.read(); strings.Contains(got, word) {
			return strings.TrimSpace(got)
		}
	}
}

// A client that has made its messages wait for the end of a long batch is closed like any other.
func TestSubscriberInALongBatchIsClosed(t *testing.T) {
	journal := newSlowJournal()
	ts := startServer(t, config.Defaults{}, withJournal(journal))
	slow, c := ts.dial(), ts.dial()
	require.Equal(t, "+OK", c.send("CONFIG", "SET", "client-output-buffer-limit", "pubsub 100kb 0 0"))
	require.Contains(t, slow.do("HELLO 3"), "proto :3")
	require.Contains(t, slow.do("SUBSCRIBE news"), "subscribe")
	_, err := io.WriteString(slow, "SET k v\r\n")
	require.NoError(t, err)
	c.eventually("the call has run", func() bool { return journal.length() == 1 })
	for range 11 {
		c.send("PUBLISH", "news", strings.Repeat("x", 10_000))
	}
	// messages are delivered after the reply to PUBLISH
	c.eventually("the client is closed", func() bool { return ts.memory.Unread.Load() == 1 })
	journal.sync()
	slow.requireClosed()
}
