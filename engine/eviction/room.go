package eviction

import (
	"math"
	"sync/atomic"
)

// LargeGrowth is the growth in bytes from which a change is checked against the budget before it is
// made. Smaller changes may exceed the budget until keys are evicted, as may data that a client
// sends.
const LargeGrowth = 64 << 10

// Room is how much memory keys take, and how much they may take. It is safe for concurrent use.
type Room struct {
	used atomic.Int64
	_    [56]byte // the fields below are read by every call, and rarely written

	budget atomic.Int64 // bytes above which keys are evicted; math.MaxInt64: never
	bound  atomic.Int64 // bytes above which calls are refused, see SetBound
}

// SetBudget sets how many bytes all keys may take; math.MaxInt64: any number. They may exceed it
// until keys are evicted.
func (b *Room) SetBudget(bytes int64) {
	b.budget.Store(bytes)
	b.bound.Store(bytes)
}

// Unbound is SetBudget for any number.
func (b *Room) Unbound() { b.SetBudget(math.MaxInt64) }

// SetBound sets, after SetBudget, how many bytes the keys may take without an eviction. It is above
// the budget if other processes evict keys as well; one below the budget means the budget.
func (b *Room) SetBound(bytes int64) { b.bound.Store(max(bytes, b.Budget())) }

// Budget returns how many bytes all keys may take.
func (b *Room) Budget() int64 { return b.budget.Load() }

// Use adds bytes to those that keys take.
func (b *Room) Use(bytes int64) { b.used.Add(bytes) }

// Crowded reports whether the keys take more than the budget, to within a KB per shard. It runs
// before each call and is cheap.
func (b *Room) Crowded() bool { return b.CrowdedBy(0) }

// CrowdedBy reports whether the keys would be Crowded if they took more bytes by this number.
func (b *Room) CrowdedBy(bytes int64) bool { return b.used.Load()+bytes > b.budget.Load() }

// RoomFor reports whether a change may take a number of bytes more.
func (b *Room) RoomFor(bytes int64) bool {
	return bytes < LargeGrowth || b.used.Load()+bytes <= b.bound.Load()
}

// Full reports whether the keys take more than they may without an eviction, see SetBound.
func (b *Room) Full() bool { return b.used.Load() > b.bound.Load() }
