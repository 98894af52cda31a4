package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// Go lets the heap grow by what is live before it collects again. With few keys that is a few MB, which requests fill many times a
// second; each collection then costs more than it frees. So a small heap is given heapRoom to grow into. From there on the default holds,
// and a full server is no larger than it would be.
const (
	heapRoom       = 16 << 20 // bytes
	defaultPercent = 100
)

// heapKeeper sets the garbage collector's target anew after each collection, before a heap that has grown can overshoot it.
type heapKeeper struct {
	live    []metrics.Sample
	percent int
	stopped atomic.Bool
}

// keepHeapRoom keeps that room until the function that it returns is called. Whoever has set GOGC has decided for themselves.
func keepHeapRoom() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	k := &heapKeeper{live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}, percent: defaultPercent}
	k.adapt()
	return func() { k.stopped.Store(true) }
}

// adapt runs once now and then after every collection: the runtime tells of one by finalizing what nobody holds.
func (k *heapKeeper) adapt() {
	if k.stopped.Load() {
		return
	}
	metrics.Read(k.live)
	if want := gcPercent(k.live[0].Value.Uint64()); want > k.percent*5/4 || want < k.percent*4/5 {
		k.percent = want // setting it stops the world for a moment: not for every little change
		debug.SetGCPercent(want)
	}
	runtime.SetFinalizer(&struct{ k *heapKeeper }{k}, func(*struct{ k *heapKeeper }) { k.adapt() })
}

// gcPercent is by how much of its live bytes the heap may grow.
func gcPercent(live uint64) int {
	return max(defaultPercent, int(heapRoom*100/max(live, 1<<20)))
}
