package process

import (
	"os"
	"runtime"
	"sync"
	"time"
)

// A single call costs mostly kernel time: two system calls and the work of the network stack, on
// whatever processor is free. If the server's threads occupy every processor, then they, the kernel
// and the other processes (often the clients) displace each other: on two processors a third of the
// throughput is lost. Calls in deep pipelines cost mostly the server's own time. So one processor
// is left free until pipelines are deep.
//
// All processors are used while a long call runs. Goroutines are preempted every 10 ms, and the
// network is polled when a processor is idle, or every 10 ms: with one processor and a long call,
// other clients would wait for tens of milliseconds.
const (
	deepBatch    = 4   // average calls per read from which every processor is used
	shallowBatch = 2   // average calls per read below which one processor is left free
	busyBatches  = 100 // reads per tick below which nothing is changed
	loadTick     = 250 * time.Millisecond
)

// Processors adapts GOMAXPROCS to the load. It changes nothing if the environment sets GOMAXPROCS
// or there is only one processor. Its methods are safe for concurrent use.
type Processors struct {
	all int // number of processors; 0: GOMAXPROCS is not changed

	mu   sync.Mutex
	used int // GOMAXPROCS
	long int // number of long calls that are running
}

// FitProcessors leaves one processor free until the load requires it.
func FitProcessors() *Processors {
	all := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") != "" || all == 1 {
		return &Processors{}
	}
	p := &Processors{all: all, used: all}
	p.use(all - 1)
	return p
}

// Follow adapts to the load until stop is called. load returns the number of calls since the start,
// and the number of reads (batches) in which they arrived.
func (p *Processors) Follow(load func() (calls, batches int64)) (stop func()) {
	if p.all == 0 {
		return func() {}
	}
	quit := make(chan struct{})
	go p.follow(load, quit)
	return sync.OnceFunc(func() { close(quit) })
}

func (p *Processors) follow(load func() (calls, batches int64), quit <-chan struct{}) {
	ticker := time.NewTicker(loadTick)
	defer ticker.Stop()
	for calls, batches := int64(0), int64(0); ; {
		select {
		case <-quit:
			return
		case <-ticker.C:
		}
		c, b := load()
		p.adapt(c-calls, b-batches)
		calls, batches = c, b
	}
}

// adapt sets the number of processors after a tick with these numbers of calls and batches.
func (p *Processors) adapt(calls, batches int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.long == 0 {
		p.use(processors(p.all, p.used, calls, batches))
	}
}

// LongCall reports the begin of a long call; end reports its end. Meanwhile every processor is
// used. The next tick with enough load decides again.
func (p *Processors) LongCall() (end func()) {
	if p.all == 0 {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.long++
	p.use(p.all)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.long--
	}
}

// use sets the number of processors. The caller holds mu.
func (p *Processors) use(n int) {
	if n != p.used {
		runtime.GOMAXPROCS(n) // stops the world for a few microseconds
		p.used = n
	}
}

// processors returns how many processors to use after a tick with these numbers of calls and
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
