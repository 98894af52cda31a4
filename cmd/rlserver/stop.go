package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	drainTime = 10 * time.Second // for calls in progress to end
	// for what waits for the locks of calls that are still running after that
	stopTime = time.Second
)

// stop ends the server in the reverse order of its start.
func (p *parts) stop(stops []func()) error {
	drained, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	ending := context.Background() // limits the wait for the engine's locks
	if p.cluster != nil {
		p.cluster.handOver(drained)
	}
	if left := p.server.Shutdown(drained); left > 0 {
		p.log.Warn("connections were cut off", "count", left)
		ending, cancel = context.WithTimeout(ending, stopTime)
		defer cancel()
	}
	p.closeWeb() // until here /readyz has said that the server is stopping
	// before the log is closed, because what they change is written to it
	for _, stop := range stops {
		within(ending, stop)
	}
	if err := p.closeData(ending); err != nil {
		return err
	}
	p.log.Info("stopped")
	return nil
}

// closeData takes the last snapshot, if one is wanted, and closes the data directory. It waits for
// locks until the context ends. The error says what may be lost.
func (p *parts) closeData(ending context.Context) error {
	var failed error
	if p.cluster == nil && !p.settings.Start.AppendOnly && len(p.settings.Store().Save) > 0 && !p.server.EndsUnsaved() {
		err := errors.New("a call that is still running holds a part of the data")
		if saved := make(chan error, 1); within(ending, func() { saved <- p.data.Snapshot() }) {
			err = <-saved
		}
		if err != nil {
			const lost = "the last snapshot could not be taken, and changes since the one before are lost"
			failed = fmt.Errorf("%s: %w", lost, err)
		}
	}
	if p.cluster != nil {
		failed = errors.Join(failed, p.cluster.node.Close())
	}
	if err := p.data.CloseBy(ending); err != nil {
		failed = errors.Join(failed, fmt.Errorf("the log could not be written to its end: %w", err))
	}
	return failed
}

// within calls do and reports whether it returned before the context ended. If it did not, it goes
// on in the background.
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
