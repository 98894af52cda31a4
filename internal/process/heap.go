package process

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// By default, Go lets the heap grow by the size of its live bytes before the next collection. With
// few keys that is a few MB, which requests fill many times a second, and each collection costs
// more than it frees. So a small heap may grow by heapGrowth. A collection costs in proportion to
// the bytes that have pointers, and those of limiters have none. So a larger heap may grow by twice
// the former and a tenth of the rest, but by no more than the default.
//
// With maxmemory the live bytes stay below it. The runtime collects more often instead of taking
// more than memoryLimit from the system, which is the memory of the process except for the program
// itself.
const (
	heapGrowth     = 16 << 20 // bytes
	restShare      = 10
	defaultPercent = 100
	programSize    = 16 << 20
	heapTick       = 100 * time.Millisecond // time between checks of maxmemory
)

// HeapOptions configure KeepHeap. All are required.
type HeapOptions struct {
	MaxMemory func() int64 // in bytes; 0: no limit
	// receives after each collection how many bytes the process needs, without garbage
	InUse func(bytes int64)
}

// KeepHeap sets the targets of the garbage collector until stop is called. It adapts them after
// each collection, and when maxmemory has changed.
func KeepHeap(o HeapOptions) (stop func()) {
	k := newHeapKeeper(o)
	k.followMaxMemory()
	k.adapt()
	quit := make(chan struct{})
	go k.run(quit)
	return sync.OnceFunc(func() {
		close(quit)
		k.stop()
	})
}

type heapKeeper struct {
	HeapOptions
	ownGOGC  bool  // GOGC is set and must not change
	ownLimit int64 // GOMEMLIMIT

	mu      sync.Mutex
	limit   int64
	percent int
	stopped bool
	samples []metrics.Sample
}

func newHeapKeeper(o HeapOptions) *heapKeeper {
	limit := debug.SetMemoryLimit(-1)
	return &heapKeeper{
		HeapOptions: o, ownGOGC: os.Getenv("GOGC") != "", ownLimit: limit, limit: limit, percent: defaultPercent,
		samples: []metrics.Sample{
			{Name: "/gc/heap/live:bytes"},
			{Name: "/memory/classes/total:bytes"},
			{Name: "/memory/classes/heap/objects:bytes"},
			{Name: "/memory/classes/heap/unused:bytes"},
			{Name: "/memory/classes/heap/free:bytes"},
			{Name: "/memory/classes/heap/released:bytes"},
			{Name: "/gc/scan/heap:bytes"},
		},
	}
}

func (k *heapKeeper) run(quit <-chan struct{}) {
	ticker := time.NewTicker(heapTick)
	defer ticker.Stop()
	for {
		select {
		case <-quit:
			return
		case <-ticker.C:
			k.followMaxMemory()
		}
	}
}

func (k *heapKeeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
}

// adapt adapts the target, and runs again after each collection, as the finalizer of an unreachable
// object.
func (k *heapKeeper) adapt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	metrics.Read(k.samples)
	read := func(i int) int64 { return int64(k.samples[i].Value.Uint64()) }
	live, heap := read(0), read(2)+read(3)+read(4)+read(5)
	k.InUse(live + read(1) - heap) // with stacks and the structures of the runtime
	if want := gcPercent(live, read(6)); !k.ownGOGC && (want > k.percent*5/4 || want < k.percent*4/5) {
		k.percent = want // setting it stops the world, so small changes are skipped
		debug.SetGCPercent(want)
	}
	runtime.SetFinalizer(&struct{ k *heapKeeper }{k}, func(*struct{ k *heapKeeper }) { k.adapt() })
}

// followMaxMemory sets the runtime's memory limit if maxmemory has changed.
func (k *heapKeeper) followMaxMemory() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if limit := min(memoryLimit(k.MaxMemory()), k.ownLimit); limit != k.limit {
		k.limit = limit
		debug.SetMemoryLimit(limit)
	}
}

// memoryLimit returns how many bytes the runtime may take from the system: one and a half times
// maxmemory, minus the memory of the program itself. The difference is for garbage and for gaps
// between objects of different sizes.
func memoryLimit(maxmemory int64) int64 {
	if maxmemory == 0 || maxmemory > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return maxmemory + max(maxmemory/2-programSize, maxmemory/8*3)
}

// gcPercent returns how much the heap may grow before a collection, in percent of its live bytes,
// of which a number have pointers.
func gcPercent(live, pointers int64) int {
	pointers = min(pointers, live)
	growth := min(2*pointers+(live-pointers)/restShare, live*defaultPercent/100)
	return int(max(growth, heapGrowth) * 100 / max(live, 1<<20))
}
