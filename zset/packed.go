package zset

import (
	"rlserver/internal/dict"
	"rlserver/zset/hitlog"
)

// Packed is a set of few hits, in one piece of memory.
type Packed = hitlog.Packed

// Borrowed is a set of few hits in memory that belongs to somebody else.
type Borrowed struct {
	set Set
	log hitlog.Log
}

// Load returns a set of packed hits, until the next Load. Changes may write to p.Data, up to its
// capacity. Clones have memory of their own. h hashes the members.
func (b *Borrowed) Load(h *dict.Hasher, p *Packed) *Set {
	b.log.Load(p)
	b.set.hash, b.set.log, b.set.rest = h, &b.log, nil
	return &b.set
}

// Loaded reports whether there is a set since the latest Drop.
func (b *Borrowed) Loaded() bool { return b.set.log != nil }

// Drop drops the set, whose memory is not kept alive then.
func (b *Borrowed) Drop() { *b = Borrowed{} }

// Packed sets p to the set, whose memory it shares, if it has only few hits; otherwise ok is false.
func (s *Set) Packed(p *Packed) (ok bool) {
	return s.log != nil && s.rest == nil && s.log.Packed(p)
}
