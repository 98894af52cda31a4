package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Go lets the heap grow by what is live before it collects again. With few keys that is a few MB, which requests fill many times a
// second; each collection then costs more than it frees. So a small heap is given heapRoom to grow into. From there on the default holds,
// and a full server is no larger than it would be.
//
// Under maxmemory what is live stays below that, and the runtime is told to collect more often rather than let all it has from the
// system grow beyond memoryLimit: that is what the process takes, but for the program itself.
const (
	heapRoom       = 16 << 20 // bytes
	defaultPercent = 100
	programRoom    = 16 << 20
)

// heapKeeper looks after each collection at what is live, before a heap that has grown can overshoot: it tells of it, and sets the garbage
// collector's target anew.
type heapKeeper struct {
	tell    func(bytes int64) // what the process cannot do without
	ownGOGC bool              // whoever has set it has decided for themselves
	foreign int64             // the limit of GOMEMLIMIT, likewise

	mu      sync.Mutex
	limit   int64
	percent int
	stopped bool
	samples []metrics.Sample
}

// keepHeap does so until the keeper is stopped.
func keepHeap(tell func(bytes int64)) *heapKeeper {
	k := &heapKeeper{
		tell: tell, ownGOGC: os.Getenv("GOGC") != "", foreign: debug.SetMemoryLimit(-1), percent: defaultPercent,
		samples: []metrics.Sample{
			{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
			{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		},
	}
	k.limit = k.foreign
	k.adapt()
	return k
}

func (k *heapKeeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
}

// adapt runs once now and then after every collection: the runtime tells of one by finalizing what nobody holds.
func (k *heapKeeper) adapt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	metrics.Read(k.samples)
	read := func(i int) int64 { return int64(k.samples[i].Value.Uint64()) }
	live, heap := read(0), read(2)+read(3)+read(4)+read(5)
	k.tell(live + read(1) - heap) // stacks, and what the runtime keeps for itself
	if want := gcPercent(uint64(live)); !k.ownGOGC && (want > k.percent*5/4 || want < k.percent*4/5) {
		k.percent = want // setting it stops the world for a moment: not for every little change
		debug.SetGCPercent(want)
	}
	runtime.SetFinalizer(&struct{ k *heapKeeper }{k}, func(*struct{ k *heapKeeper }) { k.adapt() })
}

// keepTo makes the collector keep to a maxmemory, which is 0 for none, unless it does already.
func (k *heapKeeper) keepTo(maxmemory int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if limit := min(memoryLimit(maxmemory), k.foreign); limit != k.limit {
		k.limit = limit
		debug.SetMemoryLimit(limit)
	}
}

// memoryLimit is how many bytes the runtime may have from the system: half more than is live at most, but for what the system counts to the process
// beside that, as its program. That is what there is to collect in, and for the gaps between objects of different sizes.
func memoryLimit(maxmemory int64) int64 {
	if maxmemory == 0 || maxmemory > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return maxmemory + max(maxmemory/2-programRoom, maxmemory/8*3)
}

// gcPercent is by how much of its live bytes the heap may grow.
func gcPercent(live uint64) int {
	return max(defaultPercent, int(heapRoom*100/max(live, 1<<20)))
}
