package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	drainTime = 10 * time.Second // limit of the wait for calls in progress
	// limit of the wait for locks of calls that are still running after drainTime
	stopTime = time.Second
	// limit of the wait for the logs of a node, or for the next answer of the disk of a server
	// alone. If the disk hangs, that is for ever
	closeTime = 10 * time.Second
)

// stop ends the server in the reverse order of its start.
func (p *parts) stop(stops []func()) error {
	drained, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	ending := context.Background() // limits the wait for the engine's locks
	p.mode.handOver(drained, p)
	if left := p.server.Shutdown(drained); left > 0 {
		p.log.Warn("connections were closed during calls", "count", left)
		ending, cancel = context.WithTimeout(ending, stopTime)
		defer cancel()
	}
	p.closeWeb() // /readyz has reported the stop until now
	// before the log is closed, because they write changes to it
	for _, stop := range stops {
		within(ending, stop)
	}
	if err := p.closeData(ending); err != nil {
		return err
	}
	p.log.Info("stopped")
	return nil
}

// closeData ends what depends on the mode, and closes the data directory. It waits for locks until
// the context ends. It returns an error if data may be lost.
func (p *parts) closeData(ending context.Context) error {
	failed := p.mode.close(ending, p)
	err := untilHung(context.Background(), p.settings.Start.Dir, p.data.Answers, func() error {
		return p.data.CloseBy(ending)
	})
	if err != nil {
		failed = errors.Join(failed, fmt.Errorf("the log could not be written to its end: %w", err))
	}
	return failed
}

// untilHung returns what do returns, or an error when the context ends or the disk of a directory
// hangs: then the number of its answers stays the same, and do continues in the background.
func untilHung(ctx context.Context, dir string, answers func() int64, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	for before := int64(-1); before != answers(); {
		before = answers()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return errors.New("a call that is still running holds a part of the data")
		case <-time.After(closeTime):
		}
	}
	return fmt.Errorf("the disk of %s has not answered for %v", dir, closeTime)
}

// within calls do and reports whether it returned before the context ended. If not, do continues in
// the background.
func within(ctx context.Context, do func()) bool {
	done := make(chan struct{})
	go func() {
		do()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
