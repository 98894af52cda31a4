package engine

import (
	"rlserver/engine/denials"
	"rlserver/engine/object"
	"rlserver/engine/rule"
)

// AllDatabases is the argument of Top for all databases.
const AllDatabases = denials.AllDatabases

// MaxTop returns how many keys Top can return at most. Only a part of them is exact, see Top.
func (e *Engine) MaxTop() int { return len(e.shards) * denials.MaxCounters }

// Top returns the n keys of a database, or of all, that were denied most since the start or
// ResetStats, those denied most first. It counts in bounded memory: of N denials in a shard, a key
// with more than N/64 is known, and its count is too low by at most that. It locks one shard after
// the other. The caller owns the result.
func (e *Engine) Top(db, n int) (top []denials.Count) {
	for i := range e.shards {
		sh := &e.shards[i]
		sh.mu.Lock()
		top = sh.denied.Append(top, db)
		sh.mu.Unlock()
	}
	return denials.Top(top, n)
}

// NameOf returns the name of a key by the hash that Top returns; nil if the key does not exist,
// or if a script holds it for long.
func (e *Engine) NameOf(db int, hash uint64) (name []byte) {
	sh, ok := e.lockFree(hash)
	if !ok {
		return nil
	}
	defer sh.mu.Unlock()
	if keys := sh.dbs[db].keys; keys != nil {
		same := func(name string) bool { return e.hasher.Sum(object.BytesOf(name)) == hash }
		if o := keys.FindBy(e.place(hash), same); o != nil {
			name = []byte(o.Name())
		}
	}
	return name
}

// DeniedBy returns the rule that denied a key last, if the key is among those that Top can return;
// otherwise, or if no limiter has decided, nil. It takes the key's lock itself.
func (e *Engine) DeniedBy(db int, k Key) *rule.Rule {
	sh := e.shardOf(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.denied.Rule(db, k.Hash)
}
