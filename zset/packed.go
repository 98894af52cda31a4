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

// Drop keeps the memory of the hits alive no longer.
func (b *Borrowed) Drop() {
	if b.set.log != nil {
		b.set.log = nil
		b.log.Load(&Packed{})
	}
}

// Packed sets p to the set, whose memory it shares, if it has only few hits; otherwise ok is false.
func (s *Set) Packed(p *Packed) (ok bool) {
	return s.log != nil && s.rest == nil && s.log.Packed(p)
}

// Append adds hits to packed hits as AddHits does, if all of those are before at and p.Data has the
// capacity; otherwise ok is false, and p is as it was.
func Append(p *Packed, at int64, seq, n uint64) (ok bool) {
	return at > p.At && at <= maxName && seq <= hitlog.MaxSeq-n && p.Append(at, seq, seq+n)
}
