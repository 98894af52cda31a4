package policy

import (
	"fmt"

	"rlserver/engine/rule"
)

// View is what an engine knows of policies: those in use, and their overrides.
type View struct {
	*Table
	Version   uint64 // of Shared, or an earlier one than the table is of; 0: they are not shared
	Overrides *Sharded
}

// NoSuchPolicy returns the error for a name that no policy has.
func NoSuchPolicy(name []byte) error {
	return rule.Error(fmt.Sprintf("ERR no such policy '%.128s'", name))
}

// DefinitionFor returns the definition that a policy has for the id of a key; "": that of the
// policy. A policy that does not exist is an error.
func (v View) DefinitionFor(name []byte, hash uint64, key []byte) (definition string, err error) {
	p := v.Get(name)
	if p == nil {
		return "", NoSuchPolicy(name)
	}
	o, found := v.Overrides.Find(hash, key)
	if _, ok := p.Numbers(o); found && ok {
		definition = o.Definition
	}
	return definition, nil
}

// Scan is Sharded.Scan for the policy of a name. One that does not exist is an error.
func (v View) Scan(
	name []byte, from uint64, n int, visit func(id, definition string),
) (next uint64, more bool, err error) {
	p := v.Get(name)
	if p == nil {
		return 0, false, NoSuchPolicy(name)
	}
	next, more = v.Overrides.Scan(p, from, n, visit)
	return next, more, nil
}

// NewGiven returns the overrides that come with policies, without those that are there.
func (v View) NewGiven(list []*Policy) (missing []Override) {
	for _, p := range list {
		for _, g := range p.Given() {
			key := p.AppendKey(nil, []byte(g.ID))
			o, found := v.Overrides.Find(v.Overrides.hash(string(key)), key)
			if !found || o.Definition != g.Definition.Text {
				missing = append(missing, Override{Key: string(key), Definition: g.Definition.Text})
			}
		}
	}
	return missing
}

// BytesWith is Bytes after policies are set, none of them twice.
func (v View) BytesWith(list []*Policy) int64 {
	bytes := v.Bytes()
	for _, p := range list {
		bytes += p.Bytes()
		if before := v.Get([]byte(p.Name())); before != nil {
			bytes -= before.Bytes()
		}
	}
	return bytes
}

// Sweep finds the overrides of shared policies that are none any more, see Table.IsOld, shard by
// shard.
type Sweep struct {
	done  uint64 // the version for which it has ended
	shard int    // where it continues
}

// Next returns keys of old overrides, at most some number; more is false if there are no others.
func (s *Sweep) Next(v View, most int) (keys []string, more bool) {
	version := v.Version
	for version != s.done {
		if s.shard == len(v.Overrides.tables) {
			s.done, s.shard = version, 0
			break
		}
		if keys = v.Overrides.old(s.shard, v.Table, version, most); len(keys) > 0 {
			return keys, true
		}
		s.shard++
	}
	return nil, false
}
