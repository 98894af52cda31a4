package engine

import (
	"sync"
	"time"
)

const (
	backgroundTick  = 100 * time.Millisecond
	backgroundShare = 25 * time.Millisecond  // most time in each tick, for each kind of work
	backgroundTurn  = 200 * time.Microsecond // work before it sleeps so that calls can run
	sweepRound      = time.Second            // a pass over all keys, if backgroundShare suffices
)

// BackgroundOptions are the options of a Background. All are required. Refused is called from any
// goroutine, also under locks of shards; the others from that of the Background.
type BackgroundOptions struct {
	Now     func() int64 // the time, in Unix ms
	Expire  func() bool  // reports whether expired keys are to be deleted now
	Refused func() error // why changes are refused now; nil: they are not
}

// Background deletes expired keys that no call looks up, and evicts keys while they take more
// memory than the budget. While it runs, lookups delete the expired keys that they meet. Calls
// evict only before they take more memory, and only for themselves. It pauses while changes are
// refused, because its effects would then stay in memory.
type Background struct {
	engine  *Engine
	options BackgroundOptions
	sweeper *Sweeper
	tx      *Tx

	stop sync.Once
	quit chan struct{}
	done chan struct{}
}

// StartBackground starts the engine's background work, which runs until Stop.
func (e *Engine) StartBackground(o BackgroundOptions) *Background {
	b := &Background{
		engine: e, options: o, sweeper: e.NewSweeper(), tx: e.NewTx(),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	e.background.Store(&b.options)
	go b.run()
	return b
}

// Stop ends the work. It returns when the step in progress has ended, and may be called again.
func (b *Background) Stop() {
	b.stop.Do(func() {
		b.engine.background.CompareAndSwap(&b.options, nil)
		close(b.quit)
	})
	<-b.done
}

func (b *Background) run() {
	defer close(b.done)
	ticker := time.NewTicker(backgroundTick)
	defer ticker.Stop()
	for {
		select {
		case <-b.quit:
			return
		case <-ticker.C:
		}
		if b.options.Refused() != nil {
			continue
		}
		if b.options.Expire() {
			b.sweep()
		}
		b.evict()
	}
}

// sweep sweeps one tick's share of the keyspace.
func (b *Background) sweep() {
	goal := b.sweeper.Rounds() + 1/float64(sweepRound/backgroundTick)
	workInTurns(func() (more bool) {
		b.sweeper.Step(b.options.Now())
		return b.sweeper.Rounds() < goal
	})
}

// evict evicts keys until they fit the budget, nothing is left to evict, or the tick's share of
// time is used. Of several engines that share a memory one evicts at a time.
func (b *Background) evict() {
	if !b.engine.memory.evicting.TryLock() {
		return
	}
	defer b.engine.memory.evicting.Unlock()
	workInTurns(func() (more bool) { return b.engine.Crowded() && b.tx.MakeRoom(b.options.Now()) })
}

// workInTurns takes short steps until one reports that there are no more, or backgroundShare is
// used. It sleeps between turns because the server may have a single processor: as long as any
// goroutine can run there, the Go runtime polls the network only every 10 ms.
func workInTurns(step func() (more bool)) {
	turn := time.Now()
	for used := time.Duration(0); used < backgroundShare && step(); {
		if worked := time.Since(turn); worked > backgroundTurn {
			used += worked
			time.Sleep(backgroundTurn)
			turn = time.Now()
		}
	}
}
