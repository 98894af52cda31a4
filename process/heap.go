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

// Go lets the heap grow by the size of what is live before it collects again. With few keys that is
// a few MB, which requests fill many times a second, and each collection costs more than it frees.
// So a small heap may grow by heapRoom. A larger one grows by the default, so a full server takes
// no more memory than it would otherwise.
//
// Under maxmemory what is live stays below it, and the runtime has to collect more often rather
// than take more than memoryLimit from the system. That is the memory of the process except for the
// program itself.
const (
	heapRoom       = 16 << 20 // bytes
	defaultPercent = 100
	programRoom    = 16 << 20
	heapTick       = 100 * time.Millisecond // between looks at maxmemory
)

// HeapOptions are what KeepHeap needs to know. All are required.
type HeapOptions struct {
	MaxMemory func() int64 // in bytes; 0: no limit
	// receives what the process cannot do without, after each collection
	InUse func(bytes int64)
}

// KeepHeap sets the targets of the garbage collector until stop is called: after each collection,
// before a heap that has grown can overshoot, and when maxmemory has changed.
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
	ownGOGC  bool  // GOGC is set: it stays as it is
	ownLimit int64 // of GOMEMLIMIT

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

// adapt runs once, and then after every collection: the runtime finalizes an object that nothing
// refers to.
func (k *heapKeeper) adapt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	metrics.Read(k.samples)
	read := func(i int) int64 { return int64(k.samples[i].Value.Uint64()) }
	live, heap := read(0), read(2)+read(3)+read(4)+read(5)
	k.InUse(live + read(1) - heap) // the stacks and the runtime's own structures included
	if want := gcPercent(uint64(live)); !k.ownGOGC && (want > k.percent*5/4 || want < k.percent*4/5) {
		k.percent = want // setting it stops the world for a moment: not for every small change
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

// memoryLimit returns how many bytes the runtime may take from the system: half as much again as
// may be live, less the memory of the program itself. The difference holds garbage and the gaps
// between objects of different sizes.
func memoryLimit(maxmemory int64) int64 {
	if maxmemory == 0 || maxmemory > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return maxmemory + max(maxmemory/2-programRoom, maxmemory/8*3)
}

// gcPercent returns by how many percent of its live bytes the heap may grow.
func gcPercent(live uint64) int {
	return max(defaultPercent, int(heapRoom*100/max(live, 1<<20)))
}
