// Package notify passes on what calls have changed: as keyspace events to the subscribers of their
// channels.
//
//	engine.Tx     tells of the changes of a call, under its locks: Listener.Tell adds the messages
//	              to those of the connection, which are sent after the replies of its batch
//	engine.Tx     of nobody's call (a deadline, an eviction, a waiting call whose time has come):
//	              Listener.Hear queues the changes, until the journal has them
//
// # In a cluster
//
// As in Redis, an event is published on the node that has changed the key: the leader of its group.
// It is not passed on to other nodes, and followers publish none. A client that wants the events of
// all keys subscribes at every node.
package notify

import (
	"strconv"
	"sync"
	"sync/atomic"

	"rlserver/engine"
	"rlserver/engine/change"
	"rlserver/resp/events"
	"rlserver/resp/pubsub"
)

// Listener is what the connections of a server share. It is safe for concurrent use.
type Listener struct {
	Dropped atomic.Int64 // changes of nobody's calls of which no one was told, since the start

	channels *pubsub.Hub
	classes  *atomic.Uint32 // a change.Class, the value of notify-keyspace-events

	mu     sync.Mutex
	queues map[*engine.Engine]*queue
}

// New returns a listener that publishes the classes of events to the channels of a hub.
func New(h *pubsub.Hub, classes *atomic.Uint32) *Listener {
	return &Listener{channels: h, classes: classes, queues: make(map[*engine.Engine]*queue)}
}

// Attach makes the engines that share a memory tell the listener of the changes of nobody's calls.
func (l *Listener) Attach(m *engine.Memory) {
	m.Listen(l.hear)
	l.Apply(m)
}

// Apply makes the engines that share a memory tell of changes if anybody wants to know.
func (l *Listener) Apply(m *engine.Memory) {
	classes := change.Class(l.classes.Load())
	m.Tell(classes.Publishes(), classes.Publishes() && classes&change.Miss != 0)
}

// Tell adds the messages about changes to those of a connection.
func (l *Listener) Tell(m *pubsub.Conn, list []change.Change) {
	classes := change.Class(l.classes.Load())
	if !classes.Publishes() || l.channels.Idle() {
		return
	}
	for i := range list {
		if c := &list[i]; c.Class&classes != 0 {
			publish(m, classes, c)
		}
	}
}

// publish adds the messages of an event.
func publish(m *pubsub.Conn, classes change.Class, c *change.Change) {
	var buf [128]byte
	if classes&change.Keyspace != 0 {
		channel := strconv.AppendInt(append(buf[:0], "__keyspace@"...), int64(c.DB), 10)
		channel = append(append(channel, "__:"...), c.Key...)
		m.Event(channel, append(buf[len(buf)/2:len(buf)/2:len(buf)/2], c.Event...), c.Late)
	}
	if classes&change.Keyevent != 0 {
		channel := strconv.AppendInt(append(buf[:0], "__keyevent@"...), int64(c.DB), 10)
		channel = append(append(channel, "__:"...), c.Event...)
		m.Event(channel, []byte(c.Key), c.Late)
	}
}

// queue has the changes of nobody's calls to the keys of an engine, in order.
type queue struct {
	batches []batch
	size    int
}

// batch is what was told at a time.
type batch struct {
	list []change.Change
	at   engine.Position // that the journal must reach before they are published
}

// maxQueued is how many changes of an engine may wait for the journal.
const maxQueued = 1 << 16

// hear queues changes. It does not wait, as it is called under the locks of their keys.
func (l *Listener) hear(e *engine.Engine, c engine.Changes, at engine.Position) {
	list := append(c.Named, events.Name("", nil, c.Rest)...)
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[e]
	if q == nil {
		q = new(queue)
		l.queues[e] = q
		go l.run(e, q)
	}
	if q.size+len(list) > maxQueued {
		l.Dropped.Add(int64(len(list)))
		return
	}
	q.batches = append(q.batches, batch{list, at})
	q.size += len(list)
}

// run publishes what a queue has, until it is empty.
func (l *Listener) run(e *engine.Engine, q *queue) {
	var m pubsub.Conn
	m.Init(l.channels, nil)
	for {
		l.mu.Lock()
		list := q.batches
		if q.batches, q.size = nil, 0; len(list) == 0 {
			delete(l.queues, e)
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		for _, b := range list {
			if e.Wait(b.at) == nil {
				l.Tell(&m, b.list)
			}
			m.Order()
			m.Sent()
		}
	}
}
