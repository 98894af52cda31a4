// Package lock has the lock of a shard: a mutex that its owner can hold without keeping others
// waiting. A script that runs for too long does so, and other calls are refused meanwhile.
package lock

import "sync"

// Lock is a mutex. The zero value is unlocked. Whoever waits for one that is held, waits until its
// owner ends that, unless it says so.
type Lock struct {
	mu   sync.Mutex
	held bool
	free *sync.Cond // nil until the lock is held for the first time
}

// Lock locks l.
func (l *Lock) Lock() {
	if l.mu.Lock(); l.held {
		l.wait()
	}
}

func (l *Lock) wait() {
	for l.held {
		l.free.Wait()
	}
}

// Take locks l. If the lock is held, it waits, or with patient false reports false.
func (l *Lock) Take(patient bool) (ok bool) {
	switch l.mu.Lock(); {
	case !l.held:
	case patient:
		l.wait()
	default:
		l.mu.Unlock()
		return false
	}
	return true
}

// TryLock locks l and reports true if that is possible at once.
func (l *Lock) TryLock() (ok bool) {
	if !l.mu.TryLock() {
		return false
	}
	if l.held {
		l.mu.Unlock()
		return false
	}
	return true
}

// Unlock unlocks l, which is locked and not held.
func (l *Lock) Unlock() { l.mu.Unlock() }

// Hold lets others see that the lock, which the caller has, is held from now on.
func (l *Lock) Hold() {
	if l.free == nil {
		l.free = sync.NewCond(&l.mu)
	}
	l.held = true
	l.mu.Unlock()
}

// Resume ends Hold. The caller has the lock as before.
func (l *Lock) Resume() {
	l.mu.Lock()
	l.held = false
	l.free.Broadcast()
}
