package policy

import (
	"iter"
	"math/bits"

	"rlserver/engine/counts"
	"rlserver/engine/effect"
)

// Sharded has the overrides of an engine: a table for each shard, which its lock guards.
type Sharded struct {
	tables []*Overrides            // by the top bits of hashes; nil: it has none
	hash   func(key string) uint64 // of all bits
	bits   int                     // how many choose the shard
}

// NewSharded returns the tables of 1<<bits shards. hash is that of all keys which are passed.
func NewSharded(bits int, hash func(key string) uint64) *Sharded {
	return &Sharded{tables: make([]*Overrides, 1<<bits), hash: hash, bits: bits}
}

func (s *Sharded) shard(hash uint64) int { return int(hash >> (64 - s.bits)) }

// place returns the hash within a shard: without the bits that all its keys have.
func (s *Sharded) place(hash uint64) uint64 { return hash << s.bits }

// Find returns the override of a key.
func (s *Sharded) Find(hash uint64, key []byte) (o Override, found bool) {
	if t := s.tables[s.shard(hash)]; t != nil {
		return t.Find(s.place(hash), key)
	}
	return o, false
}

// Put adds an override, in place of the one of the same key.
func (s *Sharded) Put(hash uint64, o Override) {
	t := &s.tables[s.shard(hash)]
	if *t == nil {
		*t = NewOverrides(func(key string) uint64 { return s.place(s.hash(key)) })
	}
	(*t).Put(o)
}

// Delete removes the override of a key.
func (s *Sharded) Delete(hash uint64, key []byte) {
	if t := s.tables[s.shard(hash)]; t != nil {
		t.Delete(s.place(hash), key)
	}
}

// Clear removes all.
func (s *Sharded) Clear() { clear(s.tables) }

// DeleteAll removes those of a policy; nil: of none.
func (s *Sharded) DeleteAll(p *Policy) {
	if p == nil || !p.Overridden() {
		return
	}
	for _, t := range s.tables {
		if t != nil {
			t.DeleteAll(p.Name())
		}
	}
}

// Size returns how many there are, and their memory.
func (s *Sharded) Size() (sum counts.Load) {
	for _, t := range s.tables {
		if t != nil {
			sum = sum.Plus(counts.Load{N: int64(t.Len()), Bytes: t.Bytes()})
		}
	}
	return sum
}

// Cut returns all as they are now, to be read while the tables change; nil: there are none.
func (s *Sharded) Cut() iter.Seq[Override] {
	var cuts []iter.Seq[Override]
	for _, t := range s.tables {
		if t != nil && t.Len() > 0 {
			cuts = append(cuts, t.Cut())
		}
	}
	if len(cuts) == 0 {
		return nil
	}
	return func(yield func(Override) bool) {
		for _, cut := range cuts {
			for o := range cut {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// CutEffects is Cut for the effects that set them.
func (s *Sharded) CutEffects() iter.Seq[effect.Effect] {
	all := s.Cut()
	if all == nil {
		return nil
	}
	return func(yield func(effect.Effect) bool) {
		all(func(o Override) bool { return yield(o.Effect()) })
	}
}

// Effect returns the effect that sets the override, without the hash of its key.
func (o *Override) Effect() effect.Effect {
	k := effect.Key{Name: []byte(o.Key)}
	return effect.Effect{Kind: effect.Override, Key: k, Value: []byte(o.Definition), Lo: int(o.Since)}
}

// Scan visits the overrides of a policy whose hashes are at least from, until it has seen some n of
// all policies. It returns where the next Scan continues; more is false at the end.
func (s *Sharded) Scan(p *Policy, from uint64, n int, visit func(id, definition string)) (next uint64, more bool) {
	for i := s.shard(from); i < len(s.tables); i, from = i+1, 0 {
		t, first := s.tables[i], bits.RotateLeft64(uint64(i), -s.bits)
		if n <= 0 {
			return first, true
		}
		if t == nil {
			continue
		}
		place, more := t.Scan(s.place(from), n, func(o Override) {
			n--
			if _, ok := p.Numbers(o); ok && o.Of(p.Name()) {
				visit(o.ID(), o.Definition)
			}
		})
		if more {
			return first | place>>s.bits, true
		}
	}
	return 0, false
}

// old returns the keys of overrides in one shard that are none any more, see Table.IsOld: at most
// some number.
func (s *Sharded) old(shard int, t *Table, version uint64, most int) (keys []string) {
	if s.tables[shard] == nil {
		return nil
	}
	for o := range s.tables[shard].All() {
		if t.IsOld(o, version) {
			if keys = append(keys, o.Key); len(keys) == most {
				break
			}
		}
	}
	return keys
}
