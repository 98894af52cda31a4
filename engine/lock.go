package engine

// lock takes the locks of a call. While it waits for one it holds no other for longer than a short call takes: a call that wants several shards, of which
// one is held for long, must not keep others from the rest meanwhile.
func (tx *Tx) lock() {
	if len(tx.locked) == 1 {
		tx.locked[0].mu.Lock()
		return
	}
	var first *shard // what was waited for
	for range lockRounds {
		first = tx.lockRest(first)
		if first == nil {
			return
		}
		first.mu.Lock()
	}
	if first != nil {
		first.mu.Unlock()
	}
	for _, sh := range tx.locked { // in the order of their index, so that no two calls wait for each other in a circle
		sh.mu.Lock()
	}
}

const (
	lockRounds = 100 // how often lock begins anew before it holds on to what it has
	lockTries  = 64  // how often it tries a lock that somebody else has, some 10 µs in all
)

// lockRest takes the locks of a call beside the one that is held, nil for none. If one cannot be had soon, it lets go of all and returns it.
func (tx *Tx) lockRest(held *shard) (missed *shard) {
	for i, sh := range tx.locked {
		if sh == held || sh.tryLock() {
			continue
		}
		for _, other := range tx.locked[:i] {
			if other != held {
				other.mu.Unlock()
			}
		}
		if held != nil {
			held.mu.Unlock()
		}
		return sh
	}
	return nil
}

// tryLock takes the lock if it is free now or in a few microseconds.
func (sh *shard) tryLock() bool {
	for range lockTries {
		if sh.mu.TryLock() {
			return true
		}
		for range 100 { // the processor's time of a short call; to sleep would take longer
		}
	}
	return false
}
