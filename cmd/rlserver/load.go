package main

import (
	"sync"
	"time"
)

// loadPatience is how long clients that connect at the start wait for the data: their connections stand in the
// system's queues. After that they are let in, and are told LOADING.
const loadPatience = 2 * time.Second

// loadThenOpen lets clients in when the data is loaded, or after patience. If the data cannot be loaded, that is
// returned; clients may have been let in by then.
func loadThenOpen(patience time.Duration, load func() error, open func()) error {
	open = sync.OnceFunc(open)
	impatient := time.AfterFunc(patience, open)
	defer impatient.Stop()
	if err := load(); err != nil {
		return err
	}
	open()
	return nil
}
