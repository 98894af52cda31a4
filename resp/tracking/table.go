package tracking

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"rlserver/engine"
	"rlserver/engine/change"
	"rlserver/engine/effect"
	"rlserver/resp/config"
	"rlserver/resp/pubsub"
	"rlserver/resp/wire"
)

// For each of the keys that the table may have, it has on average so many clients and bytes of
// names at most.
const (
	maxShare = 8
	maxName  = 256
)

// Table has what clients have read. It is safe for concurrent use.
type Table struct {
	// Find returns a connected client by its id, or nil.
	Find func(id int64) *pubsub.Client
	// Changed is called, without locks, when there is a first client, or none any more.
	Changed func()
	Links   *Links // to the other nodes of a cluster; nil: there is none

	Forgotten atomic.Int64 // keys that the table had no space for, since the start

	limits  *config.TrackingLimits
	told    atomic.Int64 // clients that track, other nodes too
	proxied atomic.Int64 // of them, those of Kind Proxied

	mu       sync.Mutex
	clients  map[*Client]struct{} // that track, without other nodes
	nodes    map[*Client]struct{} // that are told of all keys
	keys     map[string]readers
	items    int // pairs of a key and a client
	bytes    int // of the keys' names
	prefixes prefixes
}

// readers are the clients that have read a key. A client that has ended may be one.
type readers struct {
	one  *Client
	more map[*Client]struct{} // all of them, if there are several
}

// New returns an empty table.
func New(limits *config.TrackingLimits) *Table {
	return &Table{
		limits: limits, clients: make(map[*Client]struct{}), nodes: make(map[*Client]struct{}),
		keys: make(map[string]readers),
	}
}

// Listens reports whether anybody is to be told of changes.
func (t *Table) Listens() bool { return t.told.Load() > 0 }

// Sizes are what the table has.
type Sizes struct {
	Clients, Keys, Items, Bytes, Prefixes int
	Forgotten                             int64
	Nodes                                 int // that tell this one of changes
}

// Sizes returns what the table has.
func (t *Table) Sizes() Sizes {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Sizes{
		Clients: len(t.clients), Keys: len(t.keys), Items: t.items, Bytes: t.bytes,
		Prefixes: len(t.prefixes.list), Forgotten: t.Forgotten.Load(), Nodes: t.Links.count(),
	}
}

// set sets how a client tracks. The prefixes added are new among those of the mode.
func (t *Table) set(c *Client, m *Mode, added []string) error {
	t.mu.Lock()
	if most := t.limits.Prefixes.Load(); int64(t.prefixes.withNew(added)) > most {
		t.mu.Unlock()
		return engine.Errorf("ERR all clients together may have %d different prefixes, see "+
			"tracking-max-prefixes", most)
	}
	c.broken.Store(false)
	if c.mode.Swap(m) == nil {
		t.count(c, 1)
	}
	for _, p := range added {
		t.prefixes.add(p, c)
	}
	c.to.AddBytes(prefixBytes(added))
	t.mu.Unlock()
	t.changed()
	return nil
}

// end ends the tracking of a client; closed: for good.
func (t *Table) end(c *Client, closed bool) {
	t.mu.Lock()
	if m := c.mode.Swap(nil); m != nil {
		t.count(c, -1)
		for _, p := range m.Prefixes {
			t.prefixes.remove(p, c)
		}
		c.to.AddBytes(-prefixBytes(m.Prefixes))
	}
	if closed {
		c.to = nil
	}
	if t.told.Load() == 0 {
		clear(t.keys)
		t.items, t.bytes = 0, 0
	}
	t.mu.Unlock()
	t.changed()
}

// count notes that a client has begun to track, or ended. t.mu is held.
func (t *Table) count(c *Client, by int) {
	list := t.clients
	if c.kind == Node {
		list = t.nodes
	}
	if delete(list, c); by > 0 {
		list[c] = struct{}{}
	}
	t.told.Add(int64(by))
	if c.kind == Proxied {
		t.proxied.Add(int64(by))
	}
}

func (t *Table) changed() {
	t.Changed()
	t.Links.wake()
}

// prefixSize is the memory of a prefix without its name, in bytes, about.
const prefixSize = 200

func prefixBytes(list []string) (bytes int) {
	for _, p := range list {
		bytes += prefixSize + len(p)
	}
	return bytes
}

// Remember notes that the client, whose messages are m, has read a key. The lock of the key is held
// if this node has it.
func (c *Client) Remember(m *pubsub.Conn, name []byte) {
	if !c.remembers() {
		return
	}
	t := c.table
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(c, name)
	t.trim(m)
}

func (t *Table) add(c *Client, name []byte) {
	r, has := t.keys[string(name)]
	switch {
	case !has:
		t.keys[string(name)] = readers{one: c}
		t.bytes += len(name)
	case r.one == c:
		return
	case r.more == nil:
		t.keys[string(name)] = readers{more: map[*Client]struct{}{r.one: {}, c: {}}}
	default:
		if _, has := r.more[c]; has {
			return
		}
		r.more[c] = struct{}{}
	}
	t.items++
}

// Trim applies a new bound.
func (t *Table) Trim(m *pubsub.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim(m)
}

// trim forgets any keys, as if they had changed, until the table is within its bounds.
func (t *Table) trim(m *pubsub.Conn) {
	for t.full() {
		for key := range t.keys {
			t.invalidate(m, nil, key)
			t.Forgotten.Add(1)
			break
		}
	}
}

func (t *Table) full() bool {
	most := t.limits.Keys.Load()
	return most > 0 && (int64(len(t.keys)) > most || int64(t.items)/maxShare > most || int64(t.bytes)/maxName > most)
}

// Tell adds messages about changes to those of a connection. by is the client that has made them;
// nil: it does not track, or it was no client.
func (t *Table) Tell(m *pubsub.Conn, by *Client, list []change.Change) {
	if !t.Listens() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	b := broadcast{table: t}
	for i := range list {
		switch c := &list[i]; {
		case !c.Touches() || c.Class == change.New: // another event of the key follows
		case c.Kind == effect.Flush && i > 0 && list[i-1].Kind == effect.Flush && list[i-1].DB < c.DB: // FLUSHALL
		case c.Kind == effect.Flush || c.Kind == effect.Swap:
			t.flush(m)
		case c.Reason != change.Called:
			b.add(m, nil, c.Key)
		default:
			b.add(m, by, c.Key)
		}
	}
	b.send(m)
}

// Elsewhere adds messages that keys have changed on another node to those of a connection; nil:
// all that clients have read there.
func (t *Table) Elsewhere(m *pubsub.Conn, keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if keys == nil {
		var list []*Client
		for c := range t.clients {
			if c.kind == Proxied {
				list = append(list, c)
			}
		}
		t.send(m, list, nil)
		return
	}
	b := broadcast{table: t, elsewhere: true}
	for _, key := range keys {
		b.add(m, nil, key)
	}
	b.send(m)
}

// Flush adds messages that everything has changed to those of a connection.
func (t *Table) Flush(m *pubsub.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush(m)
}

func (t *Table) flush(m *pubsub.Conn) {
	t.send(m, slices.AppendSeq(slices.Collect(maps.Keys(t.clients)), maps.Keys(t.nodes)), nil)
	clear(t.keys)
	t.items, t.bytes = 0, 0
}

// invalidate tells those who have read a key, and forgets them. t.mu is held.
func (t *Table) invalidate(m *pubsub.Conn, by *Client, key string) {
	r, has := t.keys[key]
	if !has {
		return
	}
	delete(t.keys, key)
	t.bytes -= len(key)
	t.items -= max(1, len(r.more))
	list := make([]*Client, 0, max(1, len(r.more)))
	add := func(c *Client) {
		if mode := c.mode.Load(); mode != nil && !mode.Broadcast && !(mode.NoLoop && c == by) {
			list = append(list, c)
		}
	}
	if r.one != nil {
		add(r.one)
	}
	for c := range r.more {
		add(c)
	}
	t.send(m, list, []string{key})
}

// broadcast has the keys that were changed at a time, by prefix.
type broadcast struct {
	table     *Table
	elsewhere bool      // by other nodes, which tell ordinary clients themselves
	by        *Client   // of the keys so far
	prefixes  []*prefix // with keys
	all       []string  // keys, for other nodes
}

// add tells those who have read a key, and notes it for those with a prefix. It sends what it has
// if that was changed by another client.
func (b *broadcast) add(m *pubsub.Conn, by *Client, key string) {
	t := b.table
	t.invalidate(m, by, key)
	if by != b.by {
		b.send(m)
		b.by = by
	}
	for p := t.prefixes.longest(key); p != nil; p = p.parent {
		if len(p.keys) == 0 {
			b.prefixes = append(b.prefixes, p)
		}
		p.keys = addLast(p.keys, key)
	}
	if len(t.nodes) > 0 && !b.elsewhere {
		b.all = addLast(b.all, key)
	}
}

func addLast(list []string, key string) []string {
	if n := len(list); n > 0 && list[n-1] == key {
		return list
	}
	return append(list, key)
}

func (b *broadcast) send(m *pubsub.Conn) {
	t := b.table
	for _, p := range b.prefixes {
		slices.Sort(p.keys)
		var list []*Client
		for c := range p.clients {
			noLoop := c == b.by && c.mode.Load().NoLoop
			if !noLoop && (!b.elsewhere || c.kind == Proxied) {
				list = append(list, c)
			}
		}
		t.send(m, list, slices.Compact(p.keys))
		p.keys = nil
	}
	if len(b.all) > 0 {
		t.send(m, slices.Collect(maps.Keys(t.nodes)), b.all)
	}
	b.prefixes, b.all = b.prefixes[:0], nil
}

// invalidations is the channel of the messages to clients that know no others.
const invalidations = "__redis__:invalidate"

// send adds a message to clients; keys is nil if everything has changed. t.mu is held.
func (t *Table) send(m *pubsub.Conn, list []*Client, keys []string) {
	var targets []*pubsub.Client
	for _, c := range list {
		if to := t.target(m, c); to != nil {
			targets = append(targets, to)
		}
	}
	if len(targets) > 0 {
		m.Direct(targets, message(keys, true), message(keys, false))
	}
}

func message(keys []string, resp3 bool) []byte {
	r := wire.Reply{RESP3: resp3}
	if resp3 {
		r.Push(2)
		r.BulkString("invalidate")
	} else {
		r.Array(3)
		r.BulkString("message")
		r.BulkString(invalidations)
	}
	if keys == nil {
		r.Null()
		return r.B
	}
	r.Array(len(keys))
	for _, key := range keys {
		r.BulkString(key)
	}
	return r.B
}

// target returns who gets the messages of a client that tracks; nil: nobody can.
func (t *Table) target(m *pubsub.Conn, c *Client) *pubsub.Client {
	mode := c.mode.Load()
	if mode.Redirect == 0 {
		if c.to.RESP3() {
			return c.to
		}
		return nil
	}
	to := t.Find(mode.Redirect)
	if to != nil {
		if to.RESP3() || to.Has() {
			return to
		}
		return nil
	}
	if c.broken.Store(true); c.to.RESP3() {
		r := wire.Reply{RESP3: true}
		r.Push(2)
		r.BulkString("tracking-redir-broken")
		r.Integer(mode.Redirect)
		m.Direct([]*pubsub.Client{c.to}, r.B, r.B)
	}
	return nil
}
