package pubsub

import (
	"sync/atomic"

	"rlserver/resp/wire"
)

// Connection is what a Conn needs of its connection.
type Connection interface {
	Pusher
	// Hold makes PushShared keep what it gets until the replies of the batch are sent.
	Hold()
	// TakeHeld appends what was held so far.
	TakeHeld(to []byte) []byte
}

// Conn is what a connection has of publish and subscribe. Only the connection's goroutine uses it,
// and those that have a Client.
type Conn struct {
	Outbox

	Client *Client                // nil: it has never subscribed to anything
	Shared atomic.Pointer[Client] // the same, for other goroutines

	hub      *Hub
	to       Connection
	holding  bool // since the first call of the batch
	delivers bool // between Order and Sent: no one else delivers
	silent   bool // CLIENT REPLY drops the reply of the call, but not what confirms subscriptions
}

// Init sets the hub, and where messages go.
func (m *Conn) Init(h *Hub, to Connection) { m.hub, m.to = h, to }

// Begin notes that a call begins: what others publish follows its reply. It must be called before
// each call. silent: CLIENT REPLY drops the reply.
func (m *Conn) Begin(silent bool) {
	m.silent = silent
	if m.Client == nil {
		m.Client = m.Shared.Load()
	}
	m.Hold()
}

// Hold keeps what others publish from now on until the replies of the batch are sent.
func (m *Conn) Hold() {
	if m.Client != nil && !m.holding {
		m.hold()
	}
}

func (m *Conn) hold() {
	m.to.Hold()
	m.holding = true
}

// Order gives the messages of the batch their place among those of other publishers. It is called
// before the replies are sent: what a client publishes when it knows of a reply comes after what
// the reply is about. No lock is held.
func (m *Conn) Order() {
	if m.messages > 0 {
		m.hub.Relay.Send(m.frames, m.messages)
	}
	if len(m.runs) > 0 {
		m.delivers = m.hub.order(&m.Outbox)
	} else if m.size > 0 {
		m.clear()
	}
}

// Sent notes that the replies of the batch are sent, and delivers its messages. No lock is held.
func (m *Conn) Sent() {
	m.holding = false
	if m.delivers {
		m.delivers = false
		m.hub.deliver(&m.Outbox)
	}
}

// Own returns the messages that belong before the reply of the current call, and those that belong
// behind it, and forgets them. events are those of the former that are events of changes; the
// latter all are.
func (m *Conn) Own() (before []byte, events []Span, behind []byte) {
	if c := m.Client; c != nil && len(c.Own)+len(c.Late) > 0 {
		before, events, behind = c.Own, c.events, c.Late
		c.Own, c.events, c.Late = nil, nil, nil
	}
	return before, events, behind
}

// Subscribed reports whether the client has subscribed to anything.
func (m *Conn) Subscribed() bool { return m.Client != nil && m.Client.Has() }

// Subscribe subscribes to names, and writes the replies.
func (m *Conn) Subscribe(kind Kind, names [][]byte, r *wire.Reply) error {
	defer m.change(&r)()
	return m.hub.Subscribe(m.Client, kind, names, func(name []byte) { m.Client.confirm(r, kind, true, name) })
}

// Drop ends the subscriptions to names, without a reply.
func (m *Conn) Drop(kind Kind, names [][]byte) {
	m.Unsubscribe(kind, names, new(wire.Reply))
}

// Unsubscribe ends the subscriptions to names, or all of a kind if there are none, and writes the
// replies.
func (m *Conn) Unsubscribe(kind Kind, names [][]byte, r *wire.Reply) {
	defer m.change(&r)()
	if len(names) == 0 {
		for _, name := range m.Client.Names(kind) {
			names = append(names, []byte(name))
		}
		if len(names) == 0 {
			m.Client.confirm(r, kind, false, nil)
		}
	}
	for _, name := range names {
		m.hub.Unsubscribe(m.Client, kind, name)
		m.takeHeld(r) // from now on there is no message to this name
		m.Client.confirm(r, kind, false, name)
	}
}

// takeHeld has what others have published so far precede the reply.
func (m *Conn) takeHeld(r *wire.Reply) {
	if m.silent {
		r.B = m.to.TakeHeld(r.B)
	} else {
		m.Client.Own = m.to.TakeHeld(m.Client.Own)
	}
}

// Join makes the connection a client, if it is none yet, which speaks a version of the protocol.
func (m *Conn) Join(resp3 bool) *Client {
	if m.Client == nil {
		m.Shared.CompareAndSwap(nil, NewClient(m.to))
		m.Client = m.Shared.Load()
	}
	if !m.holding {
		m.hold()
	}
	m.Client.setProtocol(resp3, nil)
	return m.Client
}

// Target returns the connection as a client that messages can be sent to. resp3 reports which
// version of the protocol it speaks now. Any goroutine may call it.
func (m *Conn) Target(resp3 func() bool) *Client {
	if c := m.Shared.Load(); c != nil {
		return c
	}
	c := NewClient(m.to)
	if m.Shared.CompareAndSwap(nil, c) {
		c.setProtocol(resp3(), nil) // a HELLO that has not seen the client has stored it
	}
	return m.Shared.Load()
}

// change prepares a change of the subscriptions, and returns what ends it. The replies are messages
// too: with CLIENT REPLY OFF they go to another place than r.
func (m *Conn) change(r **wire.Reply) (changed func()) {
	m.Join((*r).RESP3)
	c, own := m.Client, *r
	if m.silent {
		own = &wire.Reply{RESP3: own.RESP3, B: c.Own}
		*r = own
	}
	return func() {
		if m.silent {
			c.Own = own.B
		}
		m.to.SetSubscribed(c.Has(), c.Size())
	}
}

// Reset ends all subscriptions, without replies.
func (m *Conn) Reset() {
	if m.Client == nil {
		return
	}
	for kind := range kinds {
		for _, name := range m.Client.Names(kind) {
			m.hub.Unsubscribe(m.Client, kind, []byte(name))
		}
	}
	m.Client.Own = m.to.TakeHeld(m.Client.Own)
	m.to.SetSubscribed(false, 0)
}

// SetProtocol sets the version of the protocol for the messages that follow.
func (m *Conn) SetProtocol(resp3 bool) {
	if m.Client == nil {
		m.Client = m.Shared.Load()
	}
	if m.Client != nil {
		m.Client.setProtocol(resp3, func() { m.Client.Own = m.to.TakeHeld(m.Client.Own) })
	}
}

// Publish sends a message to the subscribers of a channel when the replies of the batch are sent,
// and returns their number.
func (m *Conn) Publish(channel, payload []byte) (receivers int) {
	if m.hub.Relay != nil {
		m.relay(channel, payload)
	}
	return m.hub.Publish(&m.Outbox, m.Client, channel, payload)
}

// Event is Publish to the subscribers at this node only. late: the client that publishes gets this
// message of its call, and those that follow, after the reply, not before.
func (m *Conn) Event(channel, payload []byte, late bool) {
	c := m.Client
	m.event = true
	defer func() { m.event = false }()
	if c == nil || !late && len(c.Late) == 0 {
		m.hub.Publish(&m.Outbox, c, channel, payload)
		return
	}
	before, events := c.Own, c.events
	c.Own, c.events = c.Late, nil
	m.hub.Publish(&m.Outbox, c, channel, payload)
	c.Own, c.events, c.Late = before, events, c.Own
}

// Relayed is Publish of a message from another node.
func (m *Conn) Relayed(channel, payload []byte) { m.hub.Publish(&m.Outbox, nil, channel, payload) }

// PublishShard is Publish to a shard channel.
func (m *Conn) PublishShard(channel, payload []byte) (receivers int) {
	return m.hub.PublishShard(&m.Outbox, m.Client, channel, payload)
}

// Close ends all subscriptions for good. Any goroutine may call it.
func (m *Conn) Close() {
	if c := m.Shared.Load(); c != nil {
		m.hub.Close(c)
	}
}

// Counts returns the numbers of subscriptions to channels, patterns and shard channels. Any
// goroutine may call it.
func (m *Conn) Counts() (n [kinds]int32) {
	if c := m.Shared.Load(); c != nil {
		for kind := range n {
			n[kind] = c.counts[kind].Load()
		}
	}
	return n
}

// Allowed reports whether all subscriptions are to channels and patterns that allows returns true
// for. Any goroutine may call it.
func (m *Conn) Allowed(allows func(name []byte, pattern bool) bool) bool {
	c := m.Shared.Load()
	if c == nil {
		return true
	}
	for kind := range kinds {
		for _, name := range c.Names(kind) {
			if !allows([]byte(name), kind == Patterns) {
				return false
			}
		}
	}
	return true
}
