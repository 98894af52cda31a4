package lua

import (
	"os"
	"runtime"
	"sync"
)

// yielding lets others run on one processor. The scheduler of Go asks the network for calls when no
// goroutine can run, or after 10 ms. One that calls Gosched can run, and a sleep ends after a ms at
// the earliest. So a script waits for a byte that it sends to itself.
type yielding struct {
	once     sync.Once
	from, to *os.File // nil: there is no pipe
}

func (y *yielding) yield() {
	if runtime.GOMAXPROCS(0) > 1 {
		return // another processor asks
	}
	y.once.Do(func() {
		if from, to, err := os.Pipe(); err == nil {
			y.from, y.to = from, to
		}
	})
	if y.from != nil {
		go y.to.Write([]byte{0})
		y.from.Read(make([]byte, 1))
	}
	runtime.Gosched() // calls that have arrived are served first
}
