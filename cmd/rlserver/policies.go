package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"rlserver/engine"
)

// policyFile is the file of --policies, and the engine that keeps what it says.
type policyFile struct {
	path string
	e    *engine.Engine
	now  func() int64
	log  *slog.Logger

	refusal func() string // why nothing may be changed now; "" while it may
	changed func()        // is told that policies were set

	mu sync.Mutex // held from reading to setting: what was read last is set last
}

// reloader is reload for the server; nil if there is no file.
func (f *policyFile) reloader() func() error {
	if f.path == "" {
		return nil
	}
	return f.reload
}

// reloadEvery is how long after a signal the next one is followed at the earliest.
const reloadEvery = time.Second

// reloadOn reads the file again with each signal until the function that it returns is called.
func (f *policyFile) reloadOn(hangups <-chan os.Signal) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		paced(reloadEvery, hangups, quit, func() { _ = f.reload() }) // the log tells
	}()
	return func() {
		signal.Ignore(syscall.SIGHUP) // one more must not end the process while it ends in order
		close(quit)
		<-done
	}
}

// paced calls do for each signal, but not twice within a time: the signals that come meanwhile count as one.
func paced(every time.Duration, signals <-chan os.Signal, quit <-chan struct{}, do func()) {
	for {
		select {
		case <-quit:
			return
		case <-signals:
			do()
		}
		select {
		case <-quit:
			return
		case <-time.After(every):
		}
	}
}

// reload reads the file again and sets all of its policies, or with an error none.
func (f *policyFile) reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	list, err := readPolicies(f.path)
	if why := f.refusal(); err == nil && why != "" {
		err = errors.New(why)
	}
	if err != nil {
		f.log.Warn("no policy was changed", "error", err)
		return err
	}
	f.set(list)
	return nil
}

// set puts the policies of the file in the place of those of the same names. Those of other names stay.
func (f *policyFile) set(list []*engine.Policy) {
	changes := f.e.SetPolicies(f.now(), list)
	f.changed()
	f.log.Info("policies set", "file", f.path, "policies", len(list), "changed", some(changes.Names),
		"switched", some(changes.Switched), "dropped", changes.Dropped)
}

// some writes a list of names, as far as a line of the log has room for it.
func some(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], " "), len(names)-most)
	}
	return strings.Join(names, " ")
}
