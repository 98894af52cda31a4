package object

import (
	"fmt"
	"unsafe"

	"rlserver/engine/effect"
	"rlserver/internal/dict"
	"rlserver/internal/rdb"
	"rlserver/zset"
)

// ZSet is a sorted set of a client, or the log of a limiter.
type ZSet struct {
	Header
	Clock
	Set zset.Set   // not a pointer, which saves a cache miss for each call on a limiter
	Ext *Extension // nil: none. With one that is not Empty, the set may be empty
}

// NewZSet returns an empty sorted set. h hashes its members.
func NewZSet(h *dict.Hasher, name []byte) *ZSet {
	o, text := withName[ZSet](name)
	o.name, o.Set = text, *zset.New(h)
	return o
}

// View returns a view of the sorted set; a nil ZSet is empty.
func (o *ZSet) View() zset.View {
	if o == nil {
		return zset.View{}
	}
	return zset.ViewOf(&o.Set)
}

// ZSetIn returns a view of an object that is a sorted set, otherwise an empty one.
func ZSetIn(o Object) zset.View {
	if z, ok := o.(*ZSet); ok {
		return zset.ViewOf(&z.Set)
	}
	return zset.View{}
}

func (o *ZSet) Content(c *Content) {
	v := zset.ViewOf(o.Set.Clone())
	c.Many = !v.Writable()
	c.Append, c.Lasting = func(b []byte) []byte {
		b = rdb.AppendSortedSet(b, v.Len())
		for member, score := range v.Members().All() {
			b = rdb.AppendMember(b, member, score)
		}
		return b
	}, true
	o.Ext.content(c)
}

// change returns how many members are left; 1 for an empty set whose extension is needed.
func (o *ZSet) change(f *effect.Effect) (left int) {
	switch f.Kind {
	case effect.Add:
		o.Set.Add(f.Field, f.Score)
	case effect.Remove:
		o.Set.Remove(f.Field)
	case effect.Uncall:
		o.Set.RemoveCall(f.Hits.At, f.Field, f.Hits.Seq, uint64(f.Hits.N))
	default:
		o.Set.RemoveSpan(f.Lo, f.Hi)
	}
	if !o.Ext.Empty() {
		return max(o.Set.Len(), 1)
	}
	return o.Set.Len()
}

func (o *ZSet) digest(d *Digest) {
	d.MixNumber(digestZSet)
	o.Ext.digest(d)
	if !zset.ViewOf(&o.Set).Writable() {
		o.digestHits(d)
		for member, score := range o.Set.Others(0) {
			d.pair(member, scoreText(score))
		}
		return
	}
	for member, score := range o.Set.Ascend(0, o.Set.Len()) {
		d.pair(member, scoreText(score))
	}
}

// digestHits adds the hits of a log that has too many to be written out: of each millisecond how
// many, and twice the sum of their numbers, which do not depend on how the log divides them.
func (o *ZSet) digestHits(d *Digest) {
	last, count, twice := int64(-1), uint64(0), uint64(0)
	end := func() {
		if count > 0 {
			d.Add(fmt.Append(nil, last, count, twice))
		}
	}
	for part := range o.Set.HitParts() {
		o.Set.VisitHits(part, func(at int64, seq, n uint64) {
			if at != last {
				end()
				last, count, twice = at, 0, 0
			}
			count, twice = count+n, twice+effect.Hits{Seq: seq, N: int64(n)}.Numbers()
		})
	}
	end()
	for part := range o.Set.CallParts() {
		o.Set.VisitCalls(part, func(at int64, id []byte, lo, n uint64) {
			d.pair(id, fmt.Append(nil, at, lo, n))
		})
	}
}

func (o *ZSet) Encoding(p Packing) string {
	if int64(o.Set.Len()) > p.ZSetEntries {
		return "skiplist"
	}
	for member := range o.Set.Ascend(0, o.Set.Len()) {
		if int64(len(member)) > p.ZSetValue {
			return "skiplist"
		}
	}
	return "listpack"
}

func (o *ZSet) Weight() int64 {
	return int64(unsafe.Sizeof(*o)) + int64(o.Set.Weight()) + o.Ext.Weight()
}

func (*ZSet) Kind() Type { return TypeZSet }

func (o *ZSet) Clone(name string) Object {
	return &ZSet{Header: Header{name, o.ExpireAt}, Clock: o.Clock, Set: *o.Set.Clone(), Ext: o.Ext.clone()}
}

func (o *ZSet) save(b *Batch) (whole bool) {
	if o.Ext.save(b, 0, o.ExpireAt); o.Set.Len() == 0 {
		return true
	}
	if b.isLarge(0, 0) || !o.Set.Small(SmallCount, SmallBytes) { // cloning is cheaper
		set, part, rank, expireAt := o.Set.Clone(), 0, 0, o.ExpireAt
		calls := 0
		b.postpone(expireAt, func(b *Batch) (more bool) {
			for ; part < set.HitParts(); part++ {
				if b.Full() {
					return true
				}
				b.putHits(set, part)
			}
			for ; calls < set.CallParts(); calls++ {
				if b.Full() {
					return true
				}
				b.putCalls(expireAt, set, calls)
			}
			for member, score := range set.Others(rank) {
				if b.Full() {
					return true
				}
				b.putMember(member, score)
				rank++
			}
			return false
		})
		return false
	}
	for part := range o.Set.HitParts() {
		b.putHits(&o.Set, part)
	}
	for part := range o.Set.CallParts() {
		b.putCalls(o.ExpireAt, &o.Set, part)
	}
	for member, score := range o.Set.Others(0) {
		b.putMember(member, score)
	}
	b.putExpire(o.ExpireAt)
	return true
}

// FreeHit returns a free name for a hit that has moved, from and to in Unix ms: with its old
// number, or the next free one.
func FreeHit(o *ZSet, name string, from, to int64) (free []byte) {
	seq, _ := effect.ParseHitName(name, from)
	for ; ; seq++ {
		free = effect.Hits{At: to}.Member(free[:0], seq)
		if _, taken := o.Set.Score(free); !taken {
			return free
		}
	}
}
