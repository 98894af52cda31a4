package clientmem

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Part is a use of memory by a client.
type Part int

const (
	Input         Part = iota // buffer of the input that is not yet a whole command
	Args                      // argument list of a large command
	Reply                     // large reply under construction
	Output                    // replies that the client has not read
	Transaction               // commands queued by MULTI
	Watch                     // keys of WATCH
	Waiting                   // copy of a call that waits
	TLS                       // memory of TLS beyond TLSSize
	Subscriptions             // to channels and patterns, and tracked prefixes
	partCount
)

// ConnectionSize is the approximate memory of a connection whose account is empty, in bytes, as the
// runtime counts it: a goroutine's stack, the session and redcon's buffer. Half of that is never
// touched while the connection is idle, so the process grows by less.
const ConnectionSize = 16 << 10

// TLSSize is the approximate memory that TLS adds to a connection, in bytes: its state, and a
// buffer for the input. Records of 16 KB take more.
const TLSSize = 12 << 10

// Account is the memory that one client holds. The zero value is an empty account in no pool. Each
// part is set by one goroutine at a time. Any goroutine may read.
type Account struct {
	Chunks atomic.Int64 // buffers that hold the unread replies

	parts  [partCount]atomic.Int64
	sum    atomic.Int64 // of the parts
	closed atomic.Bool

	mu   sync.Mutex
	pool *Pool // nil: not counted
}

// Set sets the size of a part in bytes. It returns false after Close: the client must stop.
func (a *Account) Set(part Part, bytes int) bool {
	if a.parts[part].Load() != int64(bytes) {
		a.change(part, int64(bytes))
	}
	return !a.Closed()
}

func (a *Account) change(part Part, bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	by := bytes - a.parts[part].Swap(bytes)
	a.sum.Add(by)
	if a.pool != nil {
		a.pool.add(by)
		a.pool.pools.noteLargest(part, bytes)
	}
}

// Part returns the size of a part in bytes.
func (a *Account) Part(part Part) (bytes int64) { return a.parts[part].Load() }

// Total returns the sum of all parts in bytes.
func (a *Account) Total() (bytes int64) { return a.sum.Load() }

// Pool returns the pool that counts the client, or nil.
func (a *Account) Pool() *Pool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pool
}

// PoolFull reports whether the clients of the account's pool together hold more than its limit.
func (a *Account) PoolFull() bool {
	p := a.Pool()
	return p != nil && p.Full()
}

// MoveTo moves the account to another pool. A closed account is in no pool.
func (a *Account) MoveTo(p *Pool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Closed() || a.pool == p {
		return
	}
	a.leave()
	a.pool = p
	p.add(a.Total())
}

// Close ends the counting: the client is gone, or is about to be closed. It reports whether this
// call closed the account.
func (a *Account) Close() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leave()
	return !a.closed.Swap(true)
}

// Evict is Close for a client that is closed because its pool is full. It counts the client before
// a Close that follows returns.
func (a *Account) Evict() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pool == nil {
		return false
	}
	a.pool.pools.Evicted.Add(1)
	a.leave()
	return !a.closed.Swap(true)
}

// Closed reports whether Close or Evict was called.
func (a *Account) Closed() bool { return a.closed.Load() }

func (a *Account) leave() {
	if a.pool != nil {
		a.pool.add(-a.Total())
		a.pool = nil
	}
}

// Pool is a set of clients with a common limit.
type Pool struct {
	Bytes atomic.Int64 // held by its clients
	Limit atomic.Int64 // bytes; math.MaxInt64: no limit

	pools *Pools
}

// Full reports whether the clients of the pool together hold more than its limit.
func (p *Pool) Full() bool { return p.Bytes.Load() > p.Limit.Load() }

func (p *Pool) add(bytes int64) {
	p.Bytes.Add(bytes)
	p.pools.add(bytes)
}

// Pools is the memory that all clients of a server hold. Call Init before use.
type Pools struct {
	Unauthenticated, Normal, Exempt Pool

	Bytes   atomic.Int64 // of all pools
	Evicted atomic.Int64 // clients closed because their pool was full
	Unread  atomic.Int64 // clients closed because they left too many replies unread

	// Evicting is held while the server looks for clients to close.
	Evicting sync.Mutex

	LargestInput  RecentMax // largest input buffer of a client, in bytes
	LargestOutput RecentMax // most bytes of unread replies of a client

	peak atomic.Int64 // maximum of Bytes since TakePeak
}

// Init prepares the pools, without limits.
func (all *Pools) Init() {
	for _, p := range []*Pool{&all.Unauthenticated, &all.Normal, &all.Exempt} {
		p.pools = all
		p.Limit.Store(math.MaxInt64)
	}
}

func (all *Pools) add(bytes int64) {
	now := all.Bytes.Add(bytes)
	for peak := all.peak.Load(); now > peak && !all.peak.CompareAndSwap(peak, now); {
		peak = all.peak.Load()
	}
}

// TakePeak returns the maximum of Bytes since the last call.
func (all *Pools) TakePeak() (bytes int64) {
	return max(all.peak.Swap(all.Bytes.Load()), all.Bytes.Load())
}

func (all *Pools) noteLargest(part Part, bytes int64) {
	switch part {
	case Input:
		all.LargestInput.note(bytes)
	case Output:
		all.LargestOutput.note(bytes)
	}
}

// RecentMax is the largest of the values of the last 8 seconds, for INFO.
type RecentMax struct {
	mu    sync.Mutex
	slots [8]struct{ second, value int64 }
}

func (r *RecentMax) note(value int64) {
	second := time.Now().Unix()
	r.mu.Lock()
	defer r.mu.Unlock()
	slot := &r.slots[second%int64(len(r.slots))]
	if slot.second != second {
		slot.second, slot.value = second, 0
	}
	slot.value = max(slot.value, value)
}

// Value returns the largest recent value, 0 if there is none.
func (r *RecentMax) Value() (most int64) {
	oldest := time.Now().Unix() - int64(len(r.slots))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, slot := range r.slots {
		if slot.second > oldest {
			most = max(most, slot.value)
		}
	}
	return most
}
