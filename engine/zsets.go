package engine

import (
	"iter"
	"math"

	"rlserver/zset"
)

// ZSet is the sorted set that a key holds, to look at: what changes one is a method of Tx. The zero
// ZSet is what a missing key holds, an empty one. It is valid until the key's next change or the
// Tx's end, and so are the members it gives.
type ZSet struct{ set *zset.Set }

// ZSet finds a key's sorted set.
func (tx *Tx) ZSet(k Key) (ZSet, error) {
	_, z, err := tx.zset(k)
	return z, err
}

// zset is ZSet for callers that apply effects to the object.
func (tx *Tx) zset(k Key) (object, ZSet, error) {
	o := tx.lookup(k)
	z, err := as[*zsetObject](o)
	if z == nil {
		return o, ZSet{}, err
	}
	return o, ZSet{&z.set}, nil
}

// zsetIn is the sorted set of an object, or of none.
func zsetIn(o object) ZSet {
	if z, ok := o.(*zsetObject); ok {
		return ZSet{&z.set}
	}
	return ZSet{}
}

// Len is how many members there are.
func (z ZSet) Len() int {
	if z.set == nil {
		return 0
	}
	return z.set.Len()
}

// Score is that of a member; ok is false if there is no such member.
func (z ZSet) Score(member []byte) (score float64, ok bool) {
	if z.set == nil {
		return 0, false
	}
	return z.set.Score(member)
}

// Rank is how many members come before this one, from the least score on or from the greatest.
func (z ZSet) Rank(member []byte, fromGreatest bool) (rank int, score float64, ok bool) {
	if z.set == nil {
		return 0, 0, false
	}
	rank, score, ok = z.set.Rank(member)
	if ok && fromGreatest {
		rank = z.set.Len() - 1 - rank
	}
	return rank, score, ok
}

// Scan visits about count members from the cursor on, and returns the cursor to go on from, 0 after
// the last. 0 begins. A member that is there throughout is visited at least once.
func (z ZSet) Scan(cursor uint64, count int, visit func(member []byte, score float64)) (next uint64) {
	if z.set == nil {
		return 0
	}
	return z.set.Scan(cursor, count, visit)
}

// ZMember is a member and its score. The bytes belong to the caller.
type ZMember struct {
	Member []byte
	Score  float64
}

// ZAddIf are conditions for ZAdd and ZIncrBy, of which all must hold.
type ZAddIf uint8

const (
	ZAddNX ZAddIf = 1 << iota // there is no such member
	ZAddXX                    // there is one
	ZAddGT                    // if there is one, its score is less than the new one
	ZAddLT                    // if there is one, its score is greater than the new one
)

// hold reports whether a member, which has the old score if it exists, may get a score.
func (c ZAddIf) hold(exists bool, old, score float64) bool {
	if !exists {
		return c&ZAddXX == 0
	}
	return !(c&ZAddNX != 0 || c&ZAddGT != 0 && score <= old || c&ZAddLT != 0 && score >= old)
}

// ZAdd gives those members their scores for which the conditions hold, and returns how many were
// added and how many others got another score. No score is NaN. A missing key is an empty sorted
// set.
func (tx *Tx) ZAdd(k Key, conditions ZAddIf, members []ZMember) (added, changed int, err error) {
	o, z, err := tx.zset(k)
	if err != nil {
		return 0, 0, err
	}
	for _, m := range members {
		old, exists := z.Score(m.Member)
		if exists && old == m.Score || !conditions.hold(exists, old, m.Score) {
			continue
		}
		o = tx.apply(o, &Effect{Kind: EffectAdd, Key: k, Field: m.Member, Score: kept(m.Score)})
		z = zsetIn(o)
		if exists {
			changed++
		} else {
			added++
		}
	}
	return added, changed, nil
}

// kept is a score as sorted sets keep it: with one zero, as Redis' small ones do.
func kept(score float64) float64 {
	if score == 0 {
		return 0 // and not -0, which is equal but reads otherwise
	}
	return score
}

// ZIncrBy adds to a member's score, which is 0 if there is no such member, and returns the new
// score; ok is false if the conditions do not hold. A sum of opposite infinities is ErrScoreNaN.
func (tx *Tx) ZIncrBy(k Key, conditions ZAddIf, member []byte, by float64) (score float64, ok bool, err error) {
	o, z, err := tx.zset(k)
	if err != nil {
		return 0, false, err
	}
	old, exists := z.Score(member)
	score = by
	if exists {
		score += old
	}
	if !conditions.hold(exists, old, score) {
		return 0, false, nil
	}
	if math.IsNaN(score) {
		return 0, false, ErrScoreNaN
	}
	if !exists || score != old {
		tx.apply(o, &Effect{Kind: EffectAdd, Key: k, Field: member, Score: kept(score)})
	}
	return score, true, nil
}

// ZRem removes members and returns how many there were. A sorted set without members is no key.
func (tx *Tx) ZRem(k Key, members [][]byte) (removed int, err error) {
	o, z, err := tx.zset(k)
	if err != nil {
		return 0, err
	}
	for _, m := range members {
		if _, exists := z.Score(m); exists {
			o = tx.apply(o, &Effect{Kind: EffectRemove, Key: k, Field: m})
			z = zsetIn(o)
			removed++
		}
	}
	return removed, nil
}

// ZPop removes up to n members from one end of the first of the keys that holds any, and shows them
// before they go; found is false if none of the keys holds any. Keys after that one are not looked
// at. A sorted set without members is no key.
func (tx *Tx) ZPop(
	keys []Key,
	n int64,
	fromGreatest bool,
	see func(from Key, popped ZMembers),
) (found bool, err error) {
	for _, k := range keys {
		o, z, err := tx.zset(k)
		if err != nil {
			return false, err
		}
		if z.Len() == 0 {
			continue
		}
		lo, hi := 0, int(min(n, int64(z.Len())))
		if fromGreatest {
			lo, hi = z.Len()-hi, z.Len()
		}
		see(k, z.between(lo, hi, fromGreatest))
		if lo < hi {
			tx.apply(o, &Effect{Kind: EffectRemoveSpan, Key: k, Lo: lo, Hi: hi})
		}
		return true, nil
	}
	return false, nil
}

// ZStore stores these members under a key, in place of what it held, and returns how many there
// are. A sorted set without members is no key. The members may be those of the sorted set that the
// key holds.
func (tx *Tx) ZStore(dst Key, members ZMembers) (stored int) {
	if members.Len() == 0 {
		tx.Delete(dst)
		return 0
	}
	members = tx.Prepare(members)
	tx.apply(tx.find(tx.db, dst), &Effect{Kind: EffectZSet, Key: dst, Value: members.packed, set: members.set})
	return members.Len()
}

// hasNegativeZero reports whether a set has a score that is equal to 0 but is read otherwise.
func hasNegativeZero(set *zset.Set) bool {
	lo, hi := set.ScoreSpan(zset.ScoreRange{})
	for _, score := range set.Ascend(lo, hi) {
		if math.Signbit(score) {
			return true
		}
	}
	return false
}

// RoomToStore reports whether there is memory for members under a key.
func (tx *Tx) RoomToStore(dst Key, members ZMembers) error {
	if !tx.roomToStore(tx.db, dst, members.weight()) {
		return ErrOutOfMemory
	}
	return nil
}

// ZMembers are members with their scores, in some order. The zero value is none.
type ZMembers struct {
	set     *zset.Set
	lo, hi  int // the ranks from lo up to but not hi
	reverse bool
	ranks   []int // if not nil: these
	fresh   bool  // all of a set that is nobody else's

	prepared bool   // by Tx.Prepare
	packed   []byte // as zset.Set.Pack does it, if there is a journal
}

// weight is about what a set of the members takes.
func (m ZMembers) weight() int64 {
	if m.set == nil || m.set.Len() == 0 {
		return 0
	}
	text, _ := m.set.Size()
	return int64(m.Len()) * int64(memberWeight+text/m.set.Len())
}

// Len is how many there are.
func (m ZMembers) Len() int {
	if m.ranks != nil {
		return len(m.ranks)
	}
	return m.hi - m.lo
}

// All yields them.
func (m ZMembers) All() iter.Seq2[[]byte, float64] {
	return func(yield func([]byte, float64) bool) {
		switch {
		case m.ranks != nil:
			for _, rank := range m.ranks {
				if !yield(m.set.At(rank)) {
					return
				}
			}
		case m.lo == m.hi:
		case m.reverse:
			m.set.Descend(m.lo, m.hi)(yield)
		default:
			m.set.Ascend(m.lo, m.hi)(yield)
		}
	}
}

// What takes long is worked out of sorted sets as they were at one moment, when the locks are let
// go: reading needs no more than that, and to store the result the sources must still be as they
// were, see Watch.

// Keep gives the sorted set as it is now, to be looked at by one goroutine for as long as it likes:
// what changes later does not show. It costs next to nothing, but makes the next changes copy what
// they change.
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
