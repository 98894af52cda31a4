// Package relay passes the messages of one node of a cluster on to the other nodes, as far as that
// costs the publisher nothing: each other node has a queue and a goroutine that sends it, and a
// message is dropped if the queue is full, the node is not heard, or its connection fails. So a
// message reaches the subscribers on another node at most once.
//
//	Send(frames) -> queue of node b -> connection -> node b: the words of each message
//	             -> queue of node c -> connection -> node c
//
// A message is a call of [Word] on the port for nodes, without a reply:
//
//	Word channel message
//
// All queues share the bytes of a message. A queue counts them until they are written, and holds at
// most Options.Most bytes. A node that hangs fills its queue, until a write has taken longer than
// the timeout: then its queue is dropped, and the next message dials again.
package relay

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/resp/wire"
)

// Word is the first word of a message on a connection between nodes. No command of clients has this
// name.
const Word = "\x00publish"

const (
	writeTimeout = 5 * time.Second // for what is written at a time
	pieces       = 64              // messages that are written at a time
)

// Options configure a Relay.
type Options struct {
	// Others returns the names of the other nodes that are heard.
	Others func() []string
	// Dial opens a connection to the port for nodes of another node.
	Dial func(node string) (net.Conn, error)
	Most *atomic.Int64 // bytes that may wait for one node
}

// Relay has the queues of a node. It is safe for concurrent use.
type Relay struct {
	Options
	Dropped atomic.Int64 // messages that were dropped for a node, since the start

	mu    sync.Mutex       // held before those of the peers
	peers map[string]*peer // to which something was sent lately
}

// peer is another node.
type peer struct {
	relay *Relay
	name  string
	wake  chan struct{} // the queue is not empty

	mu      sync.Mutex
	queue   []item
	size    int64 // bytes in the queue and of the write that is running
	sending bool  // run runs
}

// item is what was sent at a time: some messages.
type item struct {
	frames   []byte
	messages int64
}

// New returns a relay without connections.
func New(o Options) *Relay { return &Relay{Options: o, peers: make(map[string]*peer)} }

// Append appends a message to frames.
func Append(frames, channel, message []byte) []byte {
	frames = wire.AppendHeader(frames, '*', 3)
	for _, word := range [][]byte{[]byte(Word), channel, message} {
		frames = wire.AppendHeader(frames, '$', int64(len(word)))
		frames = append(frames, word...)
		frames = append(frames, '\r', '\n')
	}
	return frames
}

// Send passes messages, as Append makes them, on to all other nodes. It does not wait. Nobody may
// change frames from then on.
func (r *Relay) Send(frames []byte, messages int) {
	others := r.Others()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range others {
		p := r.peers[name]
		if p == nil {
			p = &peer{relay: r, name: name, wake: make(chan struct{}, 1)}
		}
		if p.add(item{frames, int64(messages)}) {
			r.peers[name] = p
		} else {
			r.Dropped.Add(int64(messages))
		}
	}
}

// forget removes a peer to which nothing is sent: its node may have left the cluster.
func (r *Relay) forget(p *peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.sending {
		delete(r.peers, p.name)
	}
}

// Queued returns how many bytes wait for all other nodes.
func (r *Relay) Queued() (bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.peers {
		p.mu.Lock()
		bytes += p.size
		p.mu.Unlock()
	}
	return bytes
}

// add queues an item, if there is space.
func (p *peer) add(i item) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size+int64(len(i.frames)) > p.relay.Most.Load() {
		return false
	}
	p.queue = append(p.queue, i)
	p.size += int64(len(i.frames))
	p.notify()
	if !p.sending {
		p.sending = true
		go p.run()
	}
	return true
}

// idle is how long a connection is kept when there is nothing to send.
const idle = 10 * time.Second

// run sends the queue until it has been empty for a while, or a connection fails.
func (p *peer) run() {
	for again := true; again; {
		again = p.serve()
	}
	p.relay.forget(p)
}

// serve sends the queue on a new connection. It reports whether there is more to send.
func (p *peer) serve() (again bool) {
	conn, err := p.relay.Dial(p.name)
	if err != nil {
		p.drop(nil)
		return false
	}
	defer conn.Close()
	gone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, conn) // it ends when the other node closes the connection
		close(gone)
	}()
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-gone:
			return !p.ended()
		case <-timer.C:
			if p.ended() {
				return false
			}
		case <-p.wake:
			if !p.write(conn, p.take()) {
				return false
			}
		}
		timer.Reset(idle)
	}
}

func (p *peer) take() (list []item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, p.queue = p.queue, nil
	return list
}

// ended reports whether there is nothing to send: then run ends.
func (p *peer) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sending = len(p.queue) > 0
	if p.sending {
		p.notify()
	}
	return !p.sending
}

func (p *peer) notify() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// write sends items. If that fails, they and the queue are dropped, and run ends.
func (p *peer) write(conn net.Conn, list []item) bool {
	for len(list) > 0 {
		some := list[:min(len(list), pieces)]
		buffers, size := make(net.Buffers, len(some)), int64(0)
		for i := range some {
			buffers[i] = some[i].frames
			size += int64(len(some[i].frames))
		}
		conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := buffers.WriteTo(conn); err != nil {
			p.drop(list)
			return false
		}
		list = list[len(some):]
		p.mu.Lock()
		p.size -= size
		p.mu.Unlock()
	}
	return true
}

// drop ends run: it drops what it has taken, and the queue.
func (p *peer) drop(list []item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dropped := int64(0)
	for _, i := range append(list, p.queue...) {
		dropped += i.messages
	}
	p.relay.Dropped.Add(dropped)
	p.queue, p.size, p.sending = nil, 0, false
}
