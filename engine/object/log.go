package object

import (
	"math"
	"unsafe"

	"rlserver/internal/dict"
	"rlserver/zset"
)

// Log is a sorted set of few hits as a record: the log of a sliding window. Behind its name are the
// hits, as package hitlog encodes them, and spare room.
//
//	+----------+---------+--------+------+------+------+
//	| deadline | numbers | length | name | hits | room |
//	+----------+---------+--------+------+------+------+
//
// Only effects that add hits make and change a Log. Package engine makes it a ZSet before anything
// else does, and for calls that read members.
type Log struct {
	record
	Clock
	n     uint32 // hits
	first int64  // the time of the first hit, Unix ms
	span  uint32 // ms from the first hit to the last
	end   uint32 // see zset.Packed.End
	size  uint8  // bytes of the hits
	last  uint8  // see zset.Packed.Last
	room  uint8  // bytes for hits
}

func (*Log) Kind() Type { return TypeZSet }

func (o *Log) Name() string { return nameAt(unsafe.Add(unsafe.Pointer(o), unsafe.Sizeof(*o))) }

func (o *Log) Clone(name string) Object { return cloneAs(o, name) }

func (o *Log) Weight() int64 { return alignedSize(FormLog.Size(len(o.Name()) + int(o.room))) }

// Suits reports whether there is room for hits, and not much more.
func (o *Log) Suits(p *zset.Packed) bool {
	const little = 32
	size := len(p.Data)
	return size <= int(o.room) && (o.room <= little || size >= int(o.room)/4) && fitsNumbers(p)
}

// fitsNumbers reports whether the struct of a Log can have the numbers of hits.
func fitsNumbers(p *zset.Packed) bool {
	return p.First >= 0 && p.At-p.First <= math.MaxUint32 && p.N <= math.MaxUint32 && p.End <= math.MaxUint32
}

// SetRoom sets how many bytes of hits the record can have, from the size of its memory.
func (o *Log) SetRoom(memory int) { o.room = uint8(memory - FormLog.Size(len(o.Name()))) }

// Len returns the number of hits.
func (o *Log) Len() int { return int(o.n) }

// First returns the time of the first hit, Unix ms.
func (o *Log) First() int64 { return o.first }

// Newest returns the time of the last hit, Unix ms.
func (o *Log) Newest() int64 { return o.first + int64(o.span) }

// area returns the memory of the hits.
func (o *Log) area() []byte {
	if o.room == 0 {
		return nil // a pointer behind the record would keep alive what is there
	}
	name := unsafe.Add(unsafe.Pointer(o), unsafe.Sizeof(*o))
	n := int(*(*byte)(name)) + 1
	if n > longName {
		n = 1 + 8 + len(o.Name())
	}
	return unsafe.Slice((*byte)(unsafe.Add(name, n)), int(o.room))
}

// Load returns the hits as a set, until the next Load or change of the record. Changes of the set
// may write to the record.
func (o *Log) Load(h *dict.Hasher, few *zset.Borrowed) *zset.Set {
	p := o.packed()
	return few.Load(h, &p)
}

func (o *Log) packed() (p zset.Packed) {
	p.Data, p.N, p.Last = o.area()[:o.size], int(o.n), int(o.last)
	p.First, p.At, p.End = o.first, o.Newest(), uint64(o.end)
	return p
}

// Append adds n hits of a time with consecutive numbers, if all others are before it, and there is
// room. Otherwise it returns false, and nothing has changed.
func (o *Log) Append(at int64, seq, n uint64) bool {
	p := o.packed()
	if !zset.Append(&p, at, seq, n) || !fitsNumbers(&p) {
		return false
	}
	o.set(&p)
	return true
}

// RoomFor returns how many bytes a record with a name needs for hits, or ok false if they do not
// fit one.
func RoomFor(p *zset.Packed, name int) (bytes int, ok bool) {
	size := FormLog.Size(name + len(p.Data))
	ok = size <= MaxRecord && fitsNumbers(p)
	return len(p.Data), ok
}

// Put sets the hits, for which there is room. They may be in the memory of the record.
func (o *Log) Put(p *zset.Packed) {
	copy(o.area(), p.Data)
	o.set(p)
}

func (o *Log) set(p *zset.Packed) {
	o.n, o.first, o.span, o.end = uint32(p.N), p.First, uint32(p.At-p.First), uint32(p.End)
	o.size, o.last = uint8(len(p.Data)), uint8(p.Last)
}

// Unpacked returns the log as a sorted set that shares no memory with it.
func (o *Log) Unpacked(h *dict.Hasher) *ZSet {
	var few zset.Borrowed
	z := NewZSet(h, BytesOf(o.Name()))
	z.ExpireAt, z.Set = o.ExpireAt, *o.Load(h, &few).Clone()
	return z
}

func (o *Log) save(b *Batch) (whole bool) {
	var few zset.Borrowed
	b.putHits(o.Load(nil, &few), 0)
	b.putExpire(o.ExpireAt)
	return true
}

func (o *Log) Content(c *Content) { o.Unpacked(nil).Content(c) }

func (o *Log) digest(d *Digest) { o.Unpacked(nil).digest(d) }

func (o *Log) Encoding(p Packing) string { return o.Unpacked(nil).Encoding(p) }
