// Package notify passes on what calls have changed: as keyspace events to the subscribers of their
// channels, and to the clients that track keys.
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
	"rlserver/resp/tracking"
)

// Listener is what the connections of a server share. It is safe for concurrent use.
type Listener struct {
	Dropped atomic.Int64 // changes of nobody's calls of which no one was told, since the start

	channels *pubsub.Hub
	tracking *tracking.Table
	classes  *atomic.Uint32 // a change.Class, the value of notify-keyspace-events
	most     *atomic.Int64  // changes of an engine that may wait for the journal

	applying sync.Mutex

	mu     sync.Mutex
	queues map[*engine.Engine]*queue
}

// New returns a listener that publishes the classes of events to the channels of a hub, and tells
// the clients of a table. At most so many changes of nobody's calls to keys of an engine may wait
// for its journal.
func New(h *pubsub.Hub, t *tracking.Table, classes *atomic.Uint32, most *atomic.Int64) *Listener {
	return &Listener{
		channels: h, tracking: t, classes: classes, most: most, queues: make(map[*engine.Engine]*queue),
	}
}

// Attach makes the engines that share a memory tell the listener of the changes of nobody's calls.
func (l *Listener) Attach(m *engine.Memory) {
	m.Listen(l.hear)
	l.Apply(m)
}

// Apply makes the engines that share a memory tell of changes if anybody wants to know.
func (l *Listener) Apply(m *engine.Memory) {
	l.applying.Lock() // the last to apply has seen the latest state
	defer l.applying.Unlock()
	classes := change.Class(l.classes.Load())
	m.Tell(classes.Publishes() || l.tracking.Listens(), classes.Publishes() && classes&change.Miss != 0)
}

// Tell adds the messages about changes to those of a connection. by is the client that has made
// them, if it tracks keys.
func (l *Listener) Tell(m *pubsub.Conn, by *tracking.Client, list []change.Change) {
	l.publish(m, list)
	l.tracking.Tell(m, by, list)
}

func (l *Listener) publish(m *pubsub.Conn, list []change.Change) {
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

// Forget tells all clients that track keys that everything has changed.
func (l *Listener) Forget() { l.send(l.tracking.Flush) }

// Elsewhere tells clients whose calls other nodes run that keys have changed there; nil: all have.
func (l *Listener) Elsewhere(keys []string) {
	l.send(func(m *pubsub.Conn) { l.tracking.Elsewhere(m, keys) })
}

func (l *Listener) send(add func(*pubsub.Conn)) {
	var m pubsub.Conn
	m.Init(l.channels, nil)
	add(&m)
	m.Order()
	m.Sent()
}

// queue has the changes of nobody's calls to the keys of an engine, in order.
type queue struct {
	batches []batch
	size    int
	lost    bool // changes were dropped
}

// batch is what was told at a time.
type batch struct {
	list []change.Change
	at   engine.Position // that the journal must reach before they are published
}

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
	if int64(q.size+len(list)) > l.most.Load() {
		l.Dropped.Add(int64(len(list)))
		q.lost = true
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
		list, lost := q.batches, q.lost
		if q.batches, q.size, q.lost = nil, 0, false; len(list) == 0 {
			delete(l.queues, e)
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		for _, b := range list {
			if e.Wait(b.at) == nil {
				l.publish(&m, b.list)
			}
			if l.tracking.Tell(&m, nil, b.list); lost {
				l.tracking.Flush(&m)
				lost = false
			}
			m.Order()
			m.Sent()
		}
	}
}
