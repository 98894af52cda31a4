package clientmem

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
type HeldPart int

const (
	HeldInput   HeldPart = iota // the buffer of what has arrived
	HeldArgs                    // the words of a large command
	HeldReply                   // a large reply while it is built
	HeldOutput                  // replies that wait for the client to read
	HeldMulti                   // the commands of a transaction
	HeldWatch                   // WATCH
	HeldWaiting                 // the copy of a call that waits
	heldParts
)

// connectionSize is about what a connection takes beside what it holds, in bytes, as the runtime counts it: a goroutine's stack, its session,
// redcon's buffer. Half of that is never touched while it is idle, so the process grows by less.
const ConnectionSize = 16 << 10

// held counts what one client holds. Each part is changed by one goroutine at a time; any may read.
type Held struct {
	Parts  [heldParts]atomic.Int64
	sum    atomic.Int64 // of the parts
	Output atomic.Int64 // chunks of unread replies

	Mu     sync.Mutex
	Pool   *Pool // nil: not counted
	Closed atomic.Bool
}

// note says how many bytes a part takes now. It tells whether the client may go on: not if it has been closed for what it holds.
func (h *Held) Note(part HeldPart, bytes int) bool {
	if h.Parts[part].Load() != int64(bytes) {
		h.change(part, int64(bytes))
	}
	return !h.Closed.Load()
}

func (h *Held) change(part HeldPart, bytes int64) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	by := bytes - h.Parts[part].Swap(bytes)
	h.sum.Add(by)
	if h.Pool != nil {
		h.Pool.add(by)
		h.Pool.clients.noteLargest(part, bytes)
	}
}

// total is all that the client holds.
func (h *Held) Total() (bytes int64) { return h.sum.Load() }

// moveTo has the client counted in another pool.
func (h *Held) MoveTo(p *Pool) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if h.Closed.Load() || h.Pool == p {
		return
	}
	h.leave()
	h.Pool = p
	p.add(h.Total())
}

// close ends the counting: the client is gone, or is about to be. It tells whether that is news.
func (h *Held) Close() bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.leave()
	return !h.Closed.Swap(true)
}

func (h *Held) leave() {
	if h.Pool != nil {
		h.Pool.add(-h.Total())
		h.Pool = nil
	}
}

// crowded tells whether the clients of the pool hold more than they may.
func (h *Held) Crowded() bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.Pool != nil && h.Pool.Crowded()
}
