package clientmem

import (
	"math"
	"sync"
	"sync/atomic"
)

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
