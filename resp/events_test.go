package resp

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
)

// The events of keys that a call evicts before it runs are not named after the call before it.
func TestEventsOfEvictions(t *testing.T) {
	ts := startServer(t, config.Defaults{"maxmemory": "41943040", "maxmemory-policy": "allkeys-lru"})
	c, subscriber := ts.dial(), ts.dial()
	require.Equal(t, "+OK", c.send("CONFIG", "SET", "notify-keyspace-events", "Ee"))
	require.Contains(t, subscriber.do("SUBSCRIBE __keyevent@0__:evicted"), "subscribe")
	value := strings.Repeat("x", 1<<20)
	for i := range 100 {
		for _, call := range [][]string{
			{"SET", "k", value}, {"LMPOP", "1", "k", "LEFT"}, {"INCREX", "k"}, {"BITOP", "NOT", "k", "k"},
			{"LMOVE", "k", "k", "LEFT", "LEFT"},
		} {
			call[1] = strings.Replace(call[1], "k", "k"+string(rune('0'+i%10))+string(rune('0'+i/10)), 1)
			c.send(call...)
		}
	}
	assert.Contains(t, subscriber.read(), "__keyevent@0__:evicted")
	assert.Equal(t, "+PONG", c.do("PING"))
}

// A change that may be lost has no event, but messages are sent.
func TestEventsOfLostChanges(t *testing.T) {
	store := new(commandtest.Store)
	ts := startServer(t, config.Defaults{}, func(o *Options) {
		o.Store, o.Journal = store, failing{newSlowJournal(), store}
		o.Engine = engine.New(engine.Options{Journal: o.Journal})
	})
	c, subscriber := ts.dial(), ts.dial()
	require.Equal(t, "+OK", c.send("CONFIG", "SET", "notify-keyspace-events", "KEA"))
	require.Contains(t, subscriber.do("PSUBSCRIBE *"), "psubscribe")
	require.Equal(t, "+OK", c.do("SET k 1"))
	assert.Contains(t, subscriber.read(), "__keyspace@0__:k")
	assert.Contains(t, subscriber.read(), "__keyevent@0__:set")
	assert.Contains(t, c.do("SET lost 1"), "-MISCONF")
	require.Equal(t, ":1", c.do("PUBLISH news text"))
	assert.Contains(t, subscriber.read(), "news")
}

// Nor does the client itself get the events of its changes that may be lost, before or behind the
// reply, but the messages that it has published.
func TestOwnEventsOfLostChanges(t *testing.T) {
	for _, calls := range []string{
		"SET lost 1", "ZADD lost 1 a\nZPOPMIN lost", "MULTI\nSET lost 1\nPUBLISH news text\nDEL lost\nEXEC",
		"PING\nPUBLISH news text\nRPUSH lost a b\nLPOP lost 2\nPING",
	} {
		store := new(commandtest.Store)
		ts := startServer(t, config.Defaults{}, func(o *Options) {
			o.Store, o.Journal = store, failing{newSlowJournal(), store}
			o.Engine = engine.New(engine.Options{Journal: o.Journal})
		})
		c := ts.dial()
		require.Contains(t, c.do("HELLO 3"), "proto :3")
		require.Equal(t, "+OK", c.send("CONFIG", "SET", "notify-keyspace-events", "KEA"))
		require.Contains(t, c.do("PSUBSCRIBE *"), "psubscribe")
		c.Write([]byte(pipeline("ZADD kept 1 a")))
		for range 3 {
			assert.Contains(t, c.read()+":1", ":1")
		}
		c.Write([]byte(pipeline(strings.Split(calls, "\n")...)))
		require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
		all, err := io.ReadAll(c.In)
		require.NoError(t, err)
		got, published := string(all), strings.Count(calls, "PUBLISH")
		assert.NotContains(t, got, "__key", calls)
		assert.Contains(t, got, "-MISCONF", calls)
		assert.Equal(t, published, strings.Count(got, "\r\nnews\r\n$4\r\ntext\r\n"), "%s: %s", calls, got)
	}
}
