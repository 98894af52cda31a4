package object

import (
	"unsafe"

	"rlserver/engine/effect"
	"rlserver/internal/dict"
	"rlserver/zset"
)

// ZSet is a sorted set of a client, or the log of a limiter.
type ZSet struct {
	Header
	Clock
	Set zset.Set // not a pointer, which saves a cache miss for each call on a limiter
}

// NewZSet returns an empty sorted set. h hashes its members.
func NewZSet(h *dict.Hasher, name []byte) *ZSet {
	o, text := withName[ZSet](name)
	o.Name, o.Set = text, *zset.New(h)
	return o
}

// ZSetIn returns a view of an object that is a sorted set, otherwise an empty one.
func ZSetIn(o Object) zset.View {
	if z, ok := o.(*ZSet); ok {
		return zset.ViewOf(&z.Set)
	}
	return zset.View{}
}

func (o *ZSet) Content(c *Content) { c.ZSet = zset.ViewOf(o.Set.Clone()) }

func (o *ZSet) digest(d *Digest) {
	d.MixNumber(digestZSet)
	for member, score := range o.Set.Ascend(0, o.Set.Len()) {
		d.pair(member, scoreText(score))
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
	return int64(unsafe.Sizeof(*o)) + int64(o.Set.Weight())
}

func (*ZSet) Kind() Type { return TypeZSet }

func (o *ZSet) Clone(name string) Object {
	return &ZSet{Header: Header{name, o.ExpireAt}, Clock: o.Clock, Set: *o.Set.Clone()}
}

func (o *ZSet) save(b *Batch, f effect.Effect) (whole bool) {
	if !small(&o.Set) {
		b.postpone(&Large{of: f, expireAt: o.ExpireAt, set: o.Set.Clone()})
		return false
	}
	for member, score := range o.Set.Ascend(0, o.Set.Len()) {
		b.putMember(f, b.copied(member), score)
	}
	b.putExpire(f, o.ExpireAt)
	return true
}
