package pubsub

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"rlserver/resp/wire"
)

// Pusher sends bytes to a client. It never waits.
type Pusher interface {
	// PushShared reports whether the bytes, which nobody changes, are still needed.
	PushShared(p []byte) (kept bool)
	// SetSubscribed is called when the subscriptions have changed: whether there is any, and how
	// many bytes of memory they take.
	SetSubscribed(yes bool, bytes int)
}

// Client is a connection as a subscriber. The methods without a comment on that belong to the
// connection's goroutine.
type Client struct {
	Own  []byte // what belongs before the reply of the current call
	Late []byte // and what belongs behind it: events only

	events []Span // in Own

	to     Pusher
	counts [kinds]atomic.Int32 // subscriptions

	mu     sync.Mutex
	topics [kinds]map[string]*topic
	total  int64 // subscriptions
	bytes  int   // memory of the subscriptions
	resp3  bool
	closed bool
}

// Span is a part of bytes.
type Span struct{ Start, End int }

// addEvent notes that an event has been added to Own, from an index on.
func (c *Client) addEvent(start int) {
	if last := len(c.events) - 1; last >= 0 && c.events[last].End == start {
		c.events[last].End = len(c.Own)
		return
	}
	c.events = append(c.events, Span{start, len(c.Own)})
}

// NewClient returns a client without subscriptions.
func NewClient(to Pusher) *Client { return &Client{to: to} }

// subscriptionSize is the approximate memory of a subscription without its name, in bytes: entries
// of two maps and a list.
const subscriptionSize = 160

func (c *Client) add(kind Kind, t *topic) {
	if c.topics[kind] == nil {
		c.topics[kind] = make(map[string]*topic)
	}
	c.topics[kind][t.name] = t
	c.count(t, 1)
}

func (c *Client) remove(t *topic) {
	delete(c.topics[t.kind], t.name)
	c.count(t, -1)
}

func (c *Client) count(t *topic, by int) {
	c.counts[t.kind].Add(int32(by))
	c.total += int64(by)
	c.bytes += by * (subscriptionSize + len(t.name))
}

// setProtocol sets the version of the protocol of the messages that follow. before, which may be
// nil, is called when there can be no more messages in another version.
func (c *Client) setProtocol(resp3 bool, before func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before != nil && c.resp3 != resp3 {
		before()
	}
	c.resp3 = resp3
}

// Size returns the memory of the subscriptions in bytes. Any goroutine may call it.
func (c *Client) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// AddBytes adds to the memory of the subscriptions. Any goroutine may call it.
func (c *Client) AddBytes(bytes int) {
	if bytes == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += bytes
	c.to.SetSubscribed(c.Has(), c.bytes)
}

// RESP3 reports whether the client speaks RESP3. Any goroutine may call it.
func (c *Client) RESP3() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resp3
}

// Names returns what the client has subscribed to, in order. Any goroutine may call it.
func (c *Client) Names(kind Kind) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.topics[kind]))
}

// Has reports whether the client has subscribed to anything. Any goroutine may call it.
func (c *Client) Has() bool {
	return c.counts[Channels].Load()|c.counts[Patterns].Load()|c.counts[Shards].Load() != 0
}

// push passes messages to the client, unless the subscription has ended.
func (s *subscription) push(r *run) {
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.ended && !c.closed {
		r.kept = c.to.PushShared(r.bytes(c.resp3)) || r.kept
	}
}

// confirm writes the reply to one name of a call that subscribes or unsubscribes. name is nil if a
// call has ended all subscriptions of a kind and there was none.
func (c *Client) confirm(r *wire.Reply, kind Kind, subscribed bool, name []byte) {
	word := words[kind].unsubscribe
	if subscribed {
		word = words[kind].subscribe
	}
	r.Push(3)
	r.BulkString(word)
	r.BulkOrNull(name, name != nil)
	n := c.counts[Channels].Load() + c.counts[Patterns].Load()
	if kind == Shards {
		n = c.counts[Shards].Load()
	}
	r.Integer(int64(n))
}
