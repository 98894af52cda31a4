package engine

import (
	"rlserver/engine/denials"
	"rlserver/engine/object"
	"rlserver/engine/rule"
)

// MaxTop returns how many keys Memory.Top can return at most. Only a part of them is exact.
func (e *Engine) MaxTop() int { return len(e.shards) * denials.MaxCounters }

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
