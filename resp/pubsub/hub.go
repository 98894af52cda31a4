package pubsub

import (
	"slices"
	"sync"
	"sync/atomic"

	"rlserver/engine"
	"rlserver/resp/config"
	"rlserver/resp/glob"
	"rlserver/resp/pubsub/relay"
	"rlserver/resp/wire"
)

// Kind is what a client subscribes to.
type Kind int

const (
	Channels Kind = iota
	Patterns
	Shards // channels that belong to a slot of a cluster
	kinds
)

// words are those of the replies and messages of each kind.
var words = [kinds]struct{ subscribe, unsubscribe, message string }{
	Channels: {"subscribe", "unsubscribe", "message"},
	Patterns: {"psubscribe", "punsubscribe", "pmessage"},
	Shards:   {"ssubscribe", "sunsubscribe", "smessage"},
}

// Hub has the subscriptions of all clients. It is safe for concurrent use.
type Hub struct {
	Relay   *relay.Relay // to the other nodes of a cluster; nil: there is none
	Relieve func()       // called without locks after a delivery: it has taken memory; may be nil

	delivery delivery

	limits *config.PubSubLimits

	mu     sync.RWMutex
	topics [kinds]map[string]*topic
	total  int64 // subscriptions
	empty  [kinds]atomic.Bool
}

// topic is a channel or pattern with subscribers.
type topic struct {
	kind Kind
	name string
	text []byte // the same as name

	subscribers map[*Client]*subscription
	list        atomic.Pointer[[]*subscription] // of subscribers; nil: they have changed since
}

// subscription is one client's to one topic.
type subscription struct {
	client *Client
	ended  bool // guarded by client.mu
}

// New returns a hub without subscriptions.
func New(limits *config.PubSubLimits) *Hub {
	h := &Hub{limits: limits}
	h.delivery.taken.L = &h.delivery.mu
	for kind := range h.topics {
		h.topics[kind] = make(map[string]*topic)
		h.empty[kind].Store(true)
	}
	return h
}

// targets returns the current subscriptions of a topic. The hub's lock is held, for reading at
// least.
func (t *topic) targets() []*subscription {
	if list := t.list.Load(); list != nil {
		return *list
	}
	list := make([]*subscription, 0, len(t.subscribers))
	for _, s := range t.subscribers {
		list = append(list, s)
	}
	t.list.Store(&list)
	return list
}

// Subscribe subscribes a client to names, of which those that it has already do not count, and
// calls each after each of them. It changes nothing if a limit would be exceeded, and returns the
// error of the call. each must not call the hub or the client's methods that take locks.
func (h *Hub) Subscribe(c *Client, kind Kind, names [][]byte, each func(name []byte)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	if err := h.refuse(c, kind, names); err != nil {
		return err
	}
	for _, name := range names {
		if _, has := c.topics[kind][string(name)]; !has {
			h.add(c, kind, string(name))
		}
		each(name)
	}
	return nil
}

// refuse returns why a client may not have more subscriptions, or nil.
func (h *Hub) refuse(c *Client, kind Kind, names [][]byte) error {
	added, patterns := int64(0), int64(len(h.topics[Patterns]))
	var seen map[string]bool
	if len(names) > 1 {
		seen = make(map[string]bool, len(names))
	}
	for _, name := range names {
		if _, has := c.topics[kind][string(name)]; has || seen[string(name)] {
			continue
		}
		if seen != nil {
			seen[string(name)] = true
		}
		added++
		if kind == Patterns && h.topics[kind][string(name)] == nil {
			patterns++
		}
	}
	own, all, most := h.limits.PerClient.Load(), h.limits.All.Load(), h.limits.Patterns.Load()
	switch {
	case added == 0:
		return nil
	case c.total+added > own:
		return engine.Errorf("ERR a client may have %d subscriptions, see pubsub-max-subscriptions-per-client", own)
	case h.total+added > all:
		return engine.Errorf("ERR all clients together may have %d subscriptions, see pubsub-max-subscriptions", all)
	case kind == Patterns && patterns > most:
		return engine.Errorf("ERR there may be %d different patterns with subscribers, see pubsub-max-patterns", most)
	}
	return nil
}

func (h *Hub) add(c *Client, kind Kind, name string) {
	t := h.topics[kind][name]
	if t == nil {
		t = &topic{kind: kind, name: name, text: []byte(name), subscribers: make(map[*Client]*subscription, 1)}
		h.topics[kind][name] = t
		h.empty[kind].Store(false)
	}
	t.subscribers[c] = &subscription{client: c}
	t.list.Store(nil)
	h.total++
	c.add(kind, t)
}

// Unsubscribe ends the subscription of a client to a name, and reports whether there was one.
func (h *Hub) Unsubscribe(c *Client, kind Kind, name []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.topics[kind][string(name)]
	if t == nil {
		return false
	}
	h.remove(c, t)
	return true
}

func (h *Hub) remove(c *Client, t *topic) {
	t.subscribers[c].ended = true
	delete(t.subscribers, c)
	t.list.Store(nil)
	if len(t.subscribers) == 0 {
		delete(h.topics[t.kind], t.name)
		h.empty[t.kind].Store(len(h.topics[t.kind]) == 0)
	}
	h.total--
	c.remove(t)
}

// Close ends all subscriptions of a client, which gets no further ones: its connection ends. Any
// goroutine may call it.
func (h *Hub) Close(c *Client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for kind := range c.topics {
		for _, t := range c.topics[kind] {
			h.remove(c, t)
		}
	}
}

// EndShards ends the subscriptions to the shard channels that moved returns true for, because
// another node serves them from now on, and tells the subscribers.
func (h *Hub) EndShards(moved func(name string) bool) {
	if h.empty[Shards].Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, t := range h.topics[Shards] {
		if !moved(name) {
			continue
		}
		for c := range t.subscribers {
			h.endShard(c, t)
		}
	}
}

// endShard ends one subscription, and tells the client.
func (h *Hub) endShard(c *Client, t *topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.remove(c, t)
	r := wire.Reply{RESP3: c.resp3}
	c.confirm(&r, Shards, false, t.text)
	c.to.PushShared(r.B)
	c.to.SetSubscribed(c.Has(), c.bytes)
}

// Publish adds a message to an outbox, for the subscribers of a channel and of the patterns that
// match it. It returns their number. self, which may be nil, is the client that publishes: its own
// messages are appended to its Own.
func (h *Hub) Publish(o *Outbox, self *Client, channel, payload []byte) (receivers int) {
	if h.Idle() {
		return 0
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if t := h.topics[Channels][string(channel)]; t != nil {
		receivers += o.add(self, t, channel, payload)
	}
	for _, t := range h.topics[Patterns] {
		if pattern := glob.New(t.text, false); pattern.Match(channel) {
			receivers += o.add(self, t, channel, payload)
		}
	}
	return receivers
}

// Idle reports whether nobody has subscribed to a channel or a pattern.
func (h *Hub) Idle() bool { return h.empty[Channels].Load() && h.empty[Patterns].Load() }

// PublishShard is Publish to a shard channel.
func (h *Hub) PublishShard(o *Outbox, self *Client, channel, payload []byte) (receivers int) {
	if h.empty[Shards].Load() {
		return 0
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if t := h.topics[Shards][string(channel)]; t != nil {
		return o.add(self, t, channel, payload)
	}
	return 0
}

// Names returns the channels with subscribers that match a pattern, in order; nil: all.
func (h *Hub) Names(kind Kind, pattern []byte) (list []string, err error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	match := glob.New(pattern, false)
	for name := range h.topics[kind] {
		if pattern == nil || match.Match([]byte(name)) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, match.Err()
}

// Subscribers returns how many clients have subscribed to a channel.
func (h *Hub) Subscribers(kind Kind, name []byte) int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if t := h.topics[kind][string(name)]; t != nil {
		return len(t.subscribers)
	}
	return 0
}

// Count returns how many channels, patterns or shard channels have subscribers.
func (h *Hub) Count(kind Kind) int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.topics[kind])
}

// Total returns the number of subscriptions of all clients.
func (h *Hub) Total() int64 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.total
}
