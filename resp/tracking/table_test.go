package tracking

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/change"
	"rlserver/engine/effect"
	"rlserver/resp/config"
	"rlserver/resp/pubsub"
)

// end is a connection that keeps what it gets.
type end struct{ got []byte }

func (e *end) PushShared(p []byte) (kept bool) {
	e.got = append(e.got, p...)
	return false
}
func (e *end) SetSubscribed(bool, int)   {}
func (e *end) Hold()                     {}
func (e *end) TakeHeld(to []byte) []byte { return to }

// take returns what was received, and forgets it: "nil" for everything, otherwise the keys.
func (e *end) take() string {
	text := strings.NewReplacer(">2\r\n$10\r\ninvalidate\r\n", " ", "_\r\n", "all").Replace(string(e.got))
	e.got = nil
	var keys []string
	for _, message := range strings.Split(text, " ")[1:] {
		lines := strings.Split(message, "\r\n")
		if lines[0] == "all" || message == "all" {
			keys = append(keys, "all")
			continue
		}
		var names []string
		for i := 2; i < len(lines); i += 2 {
			names = append(names, lines[i])
		}
		keys = append(keys, strings.Join(names, ","))
	}
	return strings.Join(keys, " ")
}

// table is a table with clients.
type table struct {
	*Table
	t        *testing.T
	hub      *pubsub.Hub
	settings *config.Settings
	conn     pubsub.Conn // of who changes keys
	on       int         // calls of Changed
}

func newTable(t *testing.T) *table {
	settings := config.NewSettings(config.Defaults{})
	tt := &table{Table: New(&settings.Tracking), t: t, hub: pubsub.New(&settings.PubSub), settings: settings}
	tt.Changed = func() { tt.on++ }
	tt.Find = func(int64) *pubsub.Client { return nil }
	tt.conn.Init(tt.hub, new(end))
	return tt
}

// reader is a client that tracks keys.
type reader struct {
	*Client
	*end
	conn pubsub.Conn
}

func (tt *table) client(kind Kind, m Mode) *reader {
	r := &reader{end: new(end)}
	r.conn.Init(tt.hub, r.end)
	r.Client = tt.NewClient(r.conn.Join(true), kind)
	require.NoError(tt.t, r.Set(m))
	return r
}

func (r *reader) read(keys ...string) {
	for _, key := range keys {
		r.Remember(&r.conn, []byte(key))
	}
	r.conn.Order()
	r.conn.Sent()
}

func (tt *table) tell(by *Client, list ...change.Change) {
	tt.Tell(&tt.conn, by, list)
	tt.conn.Order()
	tt.conn.Sent()
}

func set(key string) change.Change { return change.Change{Kind: effect.Insert, Key: key} }

// A client is told once of a key that it has read, until it reads it again.
func TestClientsAreToldOnce(t *testing.T) {
	tt := newTable(t)
	a, b := tt.client(Ordinary, Mode{}), tt.client(Ordinary, Mode{NoLoop: true})
	a.read("x", "y")
	b.read("x")
	tt.tell(b.Client, set("x"), set("x"), set("z"))
	assert.Equal(t, "x", a.take())
	assert.Equal(t, "", b.take(), "its own change")
	tt.tell(nil, set("x"), change.Change{Reason: change.Missed, Key: "y"})
	assert.Equal(t, "", a.take())
	evicted := set("y")
	evicted.Reason = change.Evicted
	b.read("y")
	tt.tell(b.Client, evicted)
	assert.Equal(t, "y", a.take())
	assert.Equal(t, "y", b.take(), "it was evicted during a call of its own")
	a.read("x")
	tt.tell(nil, change.Change{Kind: effect.Flush})
	assert.Equal(t, "all", a.take())
	assert.Equal(t, "all", b.take())
	assert.Equal(t, Sizes{Clients: 2}, tt.Sizes())
}

// The table has a bound on keys, on clients for each, and on the names of keys. What it forgets
// counts as changed.
func TestTableIsBounded(t *testing.T) {
	tt := newTable(t)
	tt.settings.Tracking.Keys.Store(10)
	a := tt.client(Ordinary, Mode{})
	for i := range 25 {
		a.read(fmt.Sprint("k", i))
	}
	assert.Equal(t, 10, tt.Sizes().Keys)
	assert.EqualValues(t, 15, tt.Sizes().Forgotten)
	assert.Len(t, strings.Fields(a.take()), 15)

	tt.settings.Tracking.Keys.Store(2)
	tt.Trim(&tt.conn)
	tt.conn.Order()
	tt.conn.Sent()
	assert.Equal(t, 2, tt.Sizes().Keys)
	assert.Len(t, strings.Fields(a.take()), 8)

	tt.tell(nil, change.Change{Kind: effect.Flush})
	for range 3*maxShare + 5 {
		tt.client(Ordinary, Mode{}).read("x")
	}
	assert.LessOrEqual(t, tt.Sizes().Items, 3*maxShare, "clients of a key")

	tt.tell(nil, change.Change{Kind: effect.Flush})
	a.take()
	long := strings.Repeat("x", 3*maxName)
	a.read(long)
	assert.Equal(t, long, a.take(), "it is told at once: the client cannot keep it")
	assert.Equal(t, 0, tt.Sizes().Bytes)

	tt.settings.Tracking.Keys.Store(0)
	for i := range 1000 {
		a.read(fmt.Sprint(long, i))
	}
	assert.Equal(t, 1000, tt.Sizes().Keys, "0 is no bound")
}

// A connection that has ended is not kept by what it has read.
func TestClientsThatHaveLeft(t *testing.T) {
	tt := newTable(t)
	a, b := tt.client(Ordinary, Mode{}), tt.client(Ordinary, Mode{Broadcast: true})
	a.read("x", "y")
	b.read("x")
	assert.True(t, tt.Listens())
	a.Close()
	assert.Nil(t, a.to)
	assert.Equal(t, 2, tt.Sizes().Items)
	tt.tell(nil, set("x"))
	assert.Equal(t, "", a.take())
	assert.Equal(t, "x", b.take())
	b.Off()
	assert.Equal(t, Sizes{}, tt.Sizes())
	assert.False(t, tt.Listens())
	var never *Client
	never.Close()
	never.Off()
	assert.False(t, never.Remembers())
	assert.EqualValues(t, -1, never.Redirection())
}

// Prefixes have a limit for a client, and one for all. A call that would exceed one changes
// nothing.
func TestPrefixesAreBounded(t *testing.T) {
	tt := newTable(t)
	tt.settings.Tracking.PrefixesPerClient.Store(3)
	tt.settings.Tracking.Prefixes.Store(5)
	broadcast := func(prefixes ...string) Mode { return Mode{Broadcast: true, Prefixes: prefixes} }
	a := tt.client(Ordinary, broadcast("a", "b"))
	assert.EqualError(t, a.Set(broadcast("c", "d")),
		"ERR a client may have 3 prefixes, see tracking-max-prefixes-per-client")
	assert.Equal(t, []string{"a", "b"}, a.Mode().Prefixes)
	tt.client(Ordinary, broadcast("a", "b", "c"))
	d := tt.client(Ordinary, broadcast("d", "e"))
	assert.EqualError(t, d.Set(broadcast("f")),
		"ERR all clients together may have 5 different prefixes, see tracking-max-prefixes")
	tt.tell(nil, set("f"), set("e1"), set("d2"), set("e0"), set("e1"))
	assert.Equal(t, "e0,e1 d2", d.take())
	a.Off()
	assert.Equal(t, 5, tt.Sizes().Prefixes, "another client has them too")
}

// Other nodes are told of all changes here. What has changed on other nodes is told to clients
// whose calls run there.
func TestChangesOnOtherNodes(t *testing.T) {
	tt := newTable(t)
	node := tt.client(Node, Mode{})
	ordinary := tt.client(Ordinary, Mode{Broadcast: true})
	proxied, reads := tt.client(Proxied, Mode{Broadcast: true, Prefixes: []string{"x"}}), tt.client(Proxied, Mode{})
	tt.tell(nil, set("x"), set("y"), set("y"))
	assert.Equal(t, "x,y", node.take())
	assert.Equal(t, "x,y", ordinary.take())
	assert.Equal(t, "x", proxied.take())
	assert.Equal(t, 3, tt.Sizes().Clients, "without nodes")

	reads.read("a", "b")
	elsewhere := func(keys []string) {
		tt.Elsewhere(&tt.conn, keys)
		tt.conn.Order()
		tt.conn.Sent()
	}
	elsewhere([]string{"a", "x"})
	assert.Equal(t, "", node.take(), "the other node tells it")
	assert.Equal(t, "", ordinary.take())
	assert.Equal(t, "x", proxied.take())
	assert.Equal(t, "a", reads.take())
	elsewhere(nil)
	assert.Equal(t, "", node.take()+ordinary.take())
	assert.Equal(t, "all", proxied.take())
	assert.Equal(t, "all", reads.take())
	node.Close()
	assert.True(t, tt.Listens())
}
