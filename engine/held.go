package engine

import (
	"sync"

	"rlserver/engine/effect"
	"rlserver/engine/lock"
	"rlserver/engine/object"
)

// lock takes the locks of a call. If a script holds one of its keys, see Hold, it waits for the end
// of that or, with patient false, takes no lock and reports false when the script is Late.
func (tx *Tx) lock(patient bool) (ok bool) {
	if len(tx.locked) == 1 {
		tx.locked[0].mu.Lock()
	} else {
		lock.All(tx.locked)
	}
	if tx.e.Holds.Empty() || tx.blockedBy() == nil {
		return true
	}
	lock.Release(tx.locked)
	return lock.Take(tx.locked, &tx.e.Holds, patient, tx.blockedBy)
}

func (sh *shard) Mutex() *sync.Mutex { return &sh.mu }

// blockedBy returns a script that holds a key of the call, or nil. The call has its locks.
func (tx *Tx) blockedBy() *lock.Hold {
	if tx.whole {
		first, last := tx.locked[0], tx.locked[len(tx.locked)-1]
		return tx.e.Holds.Within(tx.e.hashesOf(first.index), tx.e.hashesOf(last.index+1)-1)
	}
	for i := range tx.keys {
		if h := tx.e.Holds.Of(tx.keys[i].Hash); h != nil {
			return h
		}
	}
	return nil
}

// hashesOf returns the lowest hash of the keys of a shard; 0 for the one after the last.
func (e *Engine) hashesOf(shard int) uint64 { return uint64(shard) << (64 - e.shardBits) }

// holdsObject reports whether a script holds the key of an object.
func (e *Engine) holdsObject(o object.Object) bool {
	return !e.Holds.Empty() && e.Holds.Of(e.hasher.Sum(object.BytesOf(o.Name()))) != nil
}

// lockFree locks the shard of a hash and reports true, unless a script holds the key.
func (e *Engine) lockFree(hash uint64) (sh *shard, ok bool) {
	sh = e.shardOf(Key{Hash: hash})
	sh.mu.Lock()
	if e.Holds.Of(hash) == nil {
		return sh, true
	}
	sh.mu.Unlock()
	return nil, false
}

// moment is what a call sees of a shard that others use meanwhile: its time, and the hits then.
type moment struct {
	now   int64 // the latest time that a call has passed: time never runs backward in a shard
	seq   effect.Sequence
	owner *Tx // whose call holds the lock; nil: none does, or one that is no call
}

func (sh *shard) Moment() *moment { return &sh.moment }

// Hold gives back the locks of a call that takes long, and keeps the keys that Begin was given;
// none was joined. Others wait for these only. The call goes on between Enter and Leave; Resume is
// called before End. Hold reports false, and the call goes on with its locks, if it has no keys or,
// unless it must, if it has all keys or others have waited for too many scripts.
func (tx *Tx) Hold(must bool) (held bool) {
	if len(tx.locked) == 0 || tx.whole && !must {
		return false
	}
	var hashes []uint64
	for _, k := range tx.keys {
		hashes = append(hashes, k.Hash)
	}
	return tx.kept.Hold(&tx.e.Holds, tx.locked, hashes, must)
}

// Enter takes the locks of a call that holds its keys, to use them. For others it does nothing.
func (tx *Tx) Enter() { tx.kept.Enter(tx.locked) }

// Leave ends Enter.
func (tx *Tx) Leave() { tx.kept.Leave(tx.locked) }

// Late has calls on the keys that the call holds refused from now on. It is called once.
func (tx *Tx) Late() { tx.kept.MakeLate() }

// Resume ends Hold: the call has its locks as before.
func (tx *Tx) Resume() { tx.kept.Resume(tx.locked) }

// rejoin ends, under the locks, that the call sees moments of its own.
func (tx *Tx) rejoin() {
	for i, other := range tx.kept.Moments {
		sh := tx.locked[i]
		sh.now = max(sh.now, other.now)
		sh.seq.Continue(&other.seq)
	}
	tx.kept.Moments = nil
}

// AwaitCalls returns when all calls that have locks or hold keys now have ended. The caller has no
// lock.
func (e *Engine) AwaitCalls() {
	for i := range e.shards {
		e.shards[i].mu.Lock()
		//lint:ignore SA2001 the lock is only waited for
		e.shards[i].mu.Unlock()
	}
	e.Holds.AwaitAll()
	e.Scripts.AwaitAdd()
}
