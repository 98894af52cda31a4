package lock

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Hold is a call that runs for long. It keeps its keys, but not the locks of their shards: others
// wait only for these keys.
type Hold struct {
	keys        []uint64 // their hashes; nil: all keys
	late, ended chan struct{}
	tookLong    bool // late is closed; only the call itself uses this
}

// Await returns true when the call has ended. With patient false it returns false if the call is
// late before that.
func (h *Hold) Await(patient bool) (ended bool) {
	if patient {
		<-h.ended
		return true
	}
	select {
	case <-h.ended:
		return true
	case <-h.late:
		return false
	}
}

// Holds are the calls of an engine that hold keys. Calls are added and removed under the locks of
// their keys; who has the lock of a key, and finds no call that holds it, may use it.
//
// The zero value is empty.
type Holds struct {
	begun atomic.Uint64 // calls so far
	calls atomic.Int64  // that hold keys now
	late  atomic.Int64  // of these, those that are late
	// those that have waited for long: no call begins to hold keys, until they have their locks
	starving atomic.Int64

	mu    sync.Mutex // taken last
	keys  map[uint64]*Hold
	whole *Hold // holds all keys
}

// maxAwaited is how many calls another one awaits before it is starving.
const maxAwaited = 100

// Empty reports whether no key is held.
func (t *Holds) Empty() bool { return t.calls.Load() == 0 }

// Len returns how many calls hold keys.
func (t *Holds) Len() int { return int(t.calls.Load()) }

// Late returns how many calls that hold keys are late.
func (t *Holds) Late() int { return int(t.late.Load()) }

// Begun returns how many calls have held keys so far, including those that do now.
func (t *Holds) Begun() uint64 { return t.begun.Load() }

// Add adds a call that holds the keys with these hashes; nil: all. Unless it must, it returns nil
// if others are starving.
func (t *Holds) Add(keys []uint64, must bool) *Hold {
	if !must && t.starving.Load() > 0 {
		return nil
	}
	h := &Hold{keys: keys, late: make(chan struct{}), ended: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if keys == nil {
		t.whole = h
	} else if t.keys == nil {
		t.keys = make(map[uint64]*Hold, len(keys))
	}
	for _, hash := range keys {
		t.keys[hash] = h
	}
	t.begun.Add(1)
	t.calls.Add(1)
	return h
}

// Starve has no further call begin to hold keys, unless it must, until end is called.
func (t *Holds) Starve() (end func()) {
	t.starving.Add(1)
	return func() { t.starving.Add(-1) }
}

func (t *Holds) makeLate(h *Hold) {
	h.tookLong = true
	t.late.Add(1)
	close(h.late)
}

// Remove removes a call, and ends the waiting for it.
func (t *Holds) Remove(h *Hold) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.keys == nil {
		t.whole = nil
	}
	for _, hash := range h.keys {
		delete(t.keys, hash)
	}
	if len(t.keys) == 0 {
		t.keys = nil // it may have been large
	}
	t.calls.Add(-1)
	if h.tookLong {
		t.late.Add(-1)
	}
	close(h.ended)
}

// Of returns the call that holds a key, or nil.
func (t *Holds) Of(hash uint64) *Hold {
	if t.Empty() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.whole != nil {
		return t.whole
	}
	return t.keys[hash]
}

// Within returns a call that holds a key whose hash is in [lo, hi], or nil.
func (t *Holds) Within(lo, hi uint64) *Hold {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.whole != nil {
		return t.whole
	}
	for hash, h := range t.keys {
		if lo <= hash && hash <= hi {
			return h
		}
	}
	return nil
}

// AwaitAll returns when the calls that hold keys now have ended.
func (t *Holds) AwaitAll() {
	for _, h := range t.list() {
		<-h.ended
	}
}

func (t *Holds) list() (list []*Hold) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.whole != nil {
		return []*Hold{t.whole}
	}
	for _, h := range t.keys {
		if !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list
}

// Take takes locks as All does. If a call holds a key that is needed, which blocked returns, it
// waits for the end of that. With patient false it takes no lock, and reports false, when that is
// late.
func Take[H Holder](list []H, in *Holds, patient bool, blocked func() *Hold) (ok bool) {
	for awaited := 1; ; awaited++ {
		All(list)
		h := blocked()
		if h == nil {
			return true
		}
		Release(list)
		if awaited == maxAwaited {
			defer in.Starve()()
		}
		if !h.Await(patient) {
			return false
		}
	}
}

// Place has a lock, and a part of its state that a call which holds keys sees as it was.
type Place[M any] interface {
	Holder
	Moment() *M
}

// Kept is what a call holds instead of its locks, which are those of a list. The zero value is
// nothing.
type Kept[H Place[M], M any] struct {
	Call *Hold // nil: none
	// of the places, for the others; while the locks are given back, for the call. They stay after
	// Resume
	Moments []M
	among   *Holds
	away    bool // the locks are given back
}

// Hold gives back the locks, and holds the keys with these hashes; nil: all. It reports false if it
// does not, see Holds.Add.
func (k *Kept[H, M]) Hold(among *Holds, list []H, hashes []uint64, must bool) (held bool) {
	if k.Call = among.Add(hashes, must); k.Call == nil {
		return false
	}
	k.among = among
	if k.Moments == nil {
		k.Moments = make([]M, len(list))
		for i, place := range list {
			k.Moments[i] = *place.Moment()
		}
	}
	k.Leave(list)
	return true
}

// Enter takes the locks if they are given back.
func (k *Kept[H, M]) Enter(list []H) {
	if k.away {
		k.away = false
		All(list)
		k.exchange(list)
	}
}

// Leave gives back the locks if keys are held.
func (k *Kept[H, M]) Leave(list []H) {
	if k.Call != nil {
		k.exchange(list)
		Release(list)
		k.away = true
	}
}

func (k *Kept[H, M]) exchange(list []H) {
	for i, place := range list {
		m := place.Moment()
		*m, k.Moments[i] = k.Moments[i], *m
	}
}

// MakeLate has those stop waiting that are not patient. It is called once.
func (k *Kept[H, M]) MakeLate() {
	if k.Call != nil {
		k.among.makeLate(k.Call)
	}
}

// Resume takes the locks, and holds no keys.
func (k *Kept[H, M]) Resume(list []H) {
	if k.Call != nil {
		k.Enter(list)
		k.among.Remove(k.Call)
		k.Call = nil
	}
}
