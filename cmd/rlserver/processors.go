package main

import (
	"os"
	"runtime"
	"time"
)

// A call that comes alone costs mostly the kernel's time: two system calls and what the network stack does about them, on whatever
// processor is free. If the server's own threads hold every processor then, they and the kernel and the neighbours, often the
// clients, push each other aside: on two processors a third of the throughput is lost. Calls that come in deep pipelines cost
// mostly our own time. So one processor is left alone until pipelines are deep.
const (
	deepBatch    = 4   // calls in one read, on average, from which on every processor is used
	shallowBatch = 2   // and below which one is left alone
	busyBatches  = 100 // in one tick; fewer say nothing
	loadTick     = 250 * time.Millisecond
)

// fitProcessors adapts how many processors run the server to what it is asked, until the function that it returns is called.
// Whoever has set GOMAXPROCS has decided for themselves.
func fitProcessors(load func() (calls, batches int64)) (stop func()) {
	all := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") != "" || all == 1 {
		return func() {}
	}
	quit := make(chan struct{})
	go func() {
		ticker := time.NewTicker(loadTick)
		defer ticker.Stop()
		runtime.GOMAXPROCS(all - 1)
		for used, calls, batches := all-1, int64(0), int64(0); ; {
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
	}()
	return func() { close(quit) }
}

// processors is how many to use after a tick in which so many calls came in so many batches.
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
