// Package lock takes the locks of shards, and knows the keys that scripts hold without them.
package lock

import "sync"

// Holder is what a lock belongs to.
type Holder interface {
	comparable
	Mutex() *sync.Mutex
}

// All takes several locks, which are in an order that all callers use. While it waits for one, it
// has no other for longer than a short call takes: a call that needs several, one of which is
// locked for long, must not block other calls on the rest.
func All[H Holder](list []H) {
	if len(list) == 0 {
		return
	}
	var none H
	missed := list[0]
	for range rounds {
		missed.Mutex().Lock()
		if missed = rest(list, missed); missed == none {
			return
		}
	}
	for _, h := range list { // in order, so that no two calls wait for each other
		h.Mutex().Lock()
	}
}

// Release unlocks what All has locked.
func Release[H Holder](list []H) {
	for _, h := range list {
		h.Mutex().Unlock()
	}
}

const (
	rounds = 100 // attempts of All before it keeps the locks that it has
	tries  = 64  // attempts of try, some 10 µs in all
)

// rest takes the locks except the one that the caller has already. If one is not free soon, it
// unlocks all and returns that one; otherwise it returns the zero value.
func rest[H Holder](list []H, has H) (missed H) {
	for i, h := range list {
		if h == has || try(h.Mutex()) {
			continue
		}
		for _, other := range list[:i] {
			if other != has {
				other.Mutex().Unlock()
			}
		}
		has.Mutex().Unlock()
		return h
	}
	return missed
}

// try takes the lock if it is free now or in a few microseconds.
func try(mu *sync.Mutex) bool {
	for range tries {
		if mu.TryLock() {
			return true
		}
		for range 100 { // about as long as a short call; sleeping would take longer
		}
	}
	return false
}
