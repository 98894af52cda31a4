// Package background deletes expired keys and evicts keys while no call does.
package background

import (
	"sync"
	"time"

	"rlserver/engine"
	"rlserver/engine/overrides"
)

const (
	tick       = 100 * time.Millisecond
	share      = 25 * time.Millisecond  // most time in each tick, for each kind of work
	turn       = 200 * time.Microsecond // work before it sleeps so that calls can run
	sweepRound = time.Second            // a pass over all keys, if share suffices
)

// Options are the options of Start. All are required. Refused is called from any goroutine, also
// under locks of shards; the others from that of the work.
type Options struct {
	Now     func() int64 // the time, in Unix ms
	Expire  func() bool  // reports whether expired keys are to be deleted now
	Refused func() error // why changes are refused now; nil: they are not
}

// Work deletes expired keys that no call looks up, evicts keys while they take more memory than the
// budget, and drops the overrides of policies that are gone. While it runs, lookups delete the
// expired keys that they meet. Calls evict only before they take more memory, and only for
// themselves. It pauses while changes are refused, because its effects would then stay in memory.
type Work struct {
	engine    *engine.Engine
	options   Options
	sweeper   *engine.Sweeper
	overrides *overrides.Sweeper
	tx        *engine.Tx

	end  func() // has lookups leave expired keys
	stop sync.Once
	quit chan struct{}
	done chan struct{}
}

// Start starts the background work of an engine, which runs until Stop.
func Start(e *engine.Engine, o Options) *Work {
	w := &Work{
		engine: e, options: o, sweeper: e.NewSweeper(), overrides: overrides.NewSweeper(e), tx: e.NewTx(),
		end: e.DeleteExpired(o.Refused), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go w.run()
	return w
}

// Stop ends the work. It returns when the step in progress has ended, and may be called again.
func (w *Work) Stop() {
	w.stop.Do(func() {
		w.end()
		close(w.quit)
	})
	<-w.done
}

func (w *Work) run() {
	defer close(w.done)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-ticker.C:
		}
		if w.options.Refused() != nil {
			continue
		}
		if w.options.Expire() {
			w.sweep()
		}
		w.evict()
		inTurns(func() (more bool) { return w.overrides.Step(w.options.Now()) })
	}
}

// sweep sweeps one tick's share of the keyspace.
func (w *Work) sweep() {
	goal := w.sweeper.Rounds() + 1/float64(sweepRound/tick)
	inTurns(func() (more bool) {
		w.sweeper.Step(w.options.Now())
		return w.sweeper.Rounds() < goal
	})
}

// evict evicts keys until they fit the budget, nothing is left to evict, or the tick's share of
// time is used. Of several engines that share a memory one evicts at a time.
func (w *Work) evict() {
	w.engine.Memory().EvictAlone(func() {
		inTurns(func() (more bool) { return w.engine.Crowded() && w.tx.MakeRoom(w.options.Now()) })
	})
}

// inTurns takes short steps until one reports that there are no more, or share is
// used. It sleeps between turns because the server may have a single processor: as long as any
// goroutine can run there, the Go runtime polls the network only every 10 ms.
func inTurns(step func() (more bool)) {
	begun := time.Now()
	for used := time.Duration(0); used < share && step(); {
		if worked := time.Since(begun); worked > turn {
			used += worked
			time.Sleep(turn)
			begun = time.Now()
		}
	}
}
