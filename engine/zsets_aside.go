package engine

import "rlserver/zset"

// What takes long is worked out of sorted sets as they were at one moment, when the locks are let go: reading needs no more than that, and to
// store the result the sources must still be as they were, see Watch.

// Keep gives the sorted set as it is now, to be looked at by one goroutine for as long as it likes: what changes later does not show. It costs next to
// nothing, but makes the next changes copy what they change.
func (z ZSet) Keep() ZSet {
	if z.set == nil {
		return z
	}
	return ZSet{z.set.Clone()}
}

// Keep is ZSet.Keep for members of one.
func (m ZMembers) Keep() ZMembers {
	if m.set != nil && !m.fresh {
		m.set = m.set.Clone()
	}
	return m
}

// Prepare does what takes long in ZStore, and needs no lock. The members are to be stored once.
func (tx *Tx) Prepare(m ZMembers) ZMembers {
	if m.prepared || m.Len() == 0 {
		return m
	}
	if !m.fresh || hasNegativeZero(m.set) {
		m = whole(zset.Collect(&tx.e.hasher, m.All(), m.Len()))
	}
	if tx.e.journal != nil {
		m.packed = m.set.Pack(nil)
	}
	m.prepared = true
	return m
}
