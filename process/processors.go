package process

import (
	"os"
	"runtime"
	"sync"
	"time"
)

// A call that comes alone costs mostly kernel time: two system calls and the work of the network
// stack, on whatever processor is free. If the server's threads occupy every processor, then they,
// the kernel and the other processes (often the clients) displace each other: on two processors a
// third of the throughput is lost. Calls that come in deep pipelines cost mostly the server's own
// time. So one processor is left free until pipelines are deep.
const (
	deepBatch    = 4   // average calls per read from which every processor is used
	shallowBatch = 2   // average calls per read below which one processor is left free
	busyBatches  = 100 // reads per tick below which nothing is changed
	loadTick     = 250 * time.Millisecond
)

// FitProcessors adapts GOMAXPROCS to the load until stop is called. load returns how many calls
// have come since the start, and in how many reads (batches). It does nothing if the environment
// sets GOMAXPROCS or there is only one processor.
func FitProcessors(load func() (calls, batches int64)) (stop func()) {
	all := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") != "" || all == 1 {
		return func() {}
	}
	quit := make(chan struct{})
	go fitProcessors(all, load, quit)
	return sync.OnceFunc(func() { close(quit) })
}

func fitProcessors(all int, load func() (calls, batches int64), quit <-chan struct{}) {
	ticker := time.NewTicker(loadTick)
	defer ticker.Stop()
	used := all - 1
	runtime.GOMAXPROCS(used)
	for calls, batches := int64(0), int64(0); ; {
		select {
		case <-quit:
			return
		case <-ticker.C:
		}
		c, b := load()
		if want := processors(all, used, c-calls, b-batches); want != used {
			runtime.GOMAXPROCS(want) // stops the world for some microseconds
			used = want
		}
		calls, batches = c, b
	}
}

// processors returns how many processors to use after a tick in which so many calls came in so many
// batches.
func processors(all, used int, calls, batches int64) int {
	switch {
	case batches < busyBatches:
		return used
	case calls >= deepBatch*batches:
		return all
	case calls < shallowBatch*batches:
		return all - 1
	}
	return used
}
