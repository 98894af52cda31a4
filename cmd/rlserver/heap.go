package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Go lets the heap grow by what is live before it collects again. With few keys that is a few MB, which requests fill many times a
// second; each collection then costs more than it frees. So a small heap is given heapRoom to grow into. From there on the default holds,
// and a full server is not larger than it would be.
const (
	heapRoom       = 32 << 20 // bytes
	defaultPercent = 100
)

// keepHeapRoom adapts the garbage collector's target to what is live, until the function that it returns is called.
// Whoever has set GOGC has decided for themselves.
func keepHeapRoom() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	quit := make(chan struct{})
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for percent := defaultPercent; ; {
			metrics.Read(live)
			if want := gcPercent(live[0].Value.Uint64()); want > percent*5/4 || want < percent*4/5 {
				percent = want // setting it stops the world for a moment: not for every little change
				debug.SetGCPercent(percent)
			}
			select {
			case <-quit:
				return
			case <-ticker.C:
			}
		}
	}()
	return func() { close(quit) }
}

// gcPercent is by how much of its live bytes the heap may grow.
func gcPercent(live uint64) int {
	return max(defaultPercent, int(heapRoom*100/max(live, 1<<20)))
}
