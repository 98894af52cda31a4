package resp

import (
	"sync"
	"sync/atomic"
)

// What clients hold is counted where it changes, so that it is known at every moment: what arrives and is not a whole command, replies
// that are not read, queued transactions, waiting calls. Clients are in one of three pools. The normal pool is bounded by
// maxmemory-clients and the one of clients that have not authenticated by preauth-memory: beyond that the largest client
// is closed. CLIENT NO-EVICT moves a client to the exempt pool, which has no bound of its own.
//
// The few KB that every connection takes are not counted in a pool: maxclients bounds those. So a client whose commands
// arrive whole and whose replies are read holds nothing, and is never closed for what others hold.

// heldPart is what a client holds memory for.
type heldPart int

const (
	heldInput   heldPart = iota // the buffer of what has arrived
	heldArgs                    // the words of a large command
	heldReply                   // a large reply while it is built
	heldOutput                  // replies that wait for the client to read
	heldMulti                   // the commands of a transaction
	heldWatch                   // WATCH
	heldWaiting                 // the copy of a call that waits
	heldParts
)

// connectionSize is about what a connection takes beside what it holds, in bytes, as the runtime counts it: a goroutine's stack, its session,
// redcon's buffer. Half of that is never touched while it is idle, so the process grows by less.
const connectionSize = 16 << 10

// held counts what one client holds. Each part is changed by one goroutine at a time; any may read.
type held struct {
	parts  [heldParts]atomic.Int64
	sum    atomic.Int64 // of the parts
	output atomic.Int64 // chunks of unread replies

	mu     sync.Mutex
	pool   *pool // nil: not counted
	closed atomic.Bool
}

// note says how many bytes a part takes now. It tells whether the client may go on: not if it has been closed for what it holds.
func (h *held) note(part heldPart, bytes int) bool {
	if h.parts[part].Load() != int64(bytes) {
		h.change(part, int64(bytes))
	}
	return !h.closed.Load()
}

func (h *held) change(part heldPart, bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	by := bytes - h.parts[part].Swap(bytes)
	h.sum.Add(by)
	if h.pool != nil {
		h.pool.add(by)
		h.pool.clients.noteLargest(part, bytes)
	}
}

// total is all that the client holds.
func (h *held) total() (bytes int64) { return h.sum.Load() }

// moveTo has the client counted in another pool.
func (h *held) moveTo(p *pool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed.Load() || h.pool == p {
		return
	}
	h.leave()
	h.pool = p
	p.add(h.total())
}

// close ends the counting: the client is gone, or is about to be. It tells whether that is news.
func (h *held) close() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leave()
	return !h.closed.Swap(true)
}

func (h *held) leave() {
	if h.pool != nil {
		h.pool.add(-h.total())
		h.pool = nil
	}
}

// crowded tells whether the clients of the pool hold more than they may.
func (h *held) crowded() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pool != nil && h.pool.crowded()
}
