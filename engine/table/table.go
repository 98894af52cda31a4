package table

import (
	"iter"
	"math/rand/v2"

	"rlserver/engine/counts"
	"rlserver/engine/object"
	"rlserver/internal/dict"
)

// Table is the keys of one database in one shard. It is not safe for concurrent use.
type Table struct {
	dict  dict.Dict[ref]
	hash  func(name string) uint64
	pages []page // the first one is not used
	kinds []pagesOf
	gone  uint32 // the first of the dropped pages
	idle  *counts.Sum

	fetched int // a sum that makes reads in advance count as used
}

// pagesOf is the pages of a kind.
type pagesOf struct {
	kind  kind
	open  uint32 // the first of those with a free slot
	slots uint32 // in all of them
}

// of returns the pages of a kind.
func (t *Table) of(k kind) *pagesOf {
	for i := range t.kinds { // there are few
		if t.kinds[i].kind == k {
			return &t.kinds[i]
		}
	}
	t.kinds = append(t.kinds, pagesOf{kind: k})
	return &t.kinds[len(t.kinds)-1]
}

// New returns an empty table. hash returns the hash of a name that the other methods are given;
// idle is the bytes of the free slots for records of all tables that share it.
func New(hash func(name string) uint64, idle *counts.Sum) *Table {
	t := &Table{hash: hash, idle: idle, pages: make([]page, 1)}
	t.dict = *dict.New(func(r ref) uint64 { return hash(t.object(r).Name()) })
	return t
}

// reset drops all pages.
func (t *Table) reset() {
	t.Drop()
	t.pages, t.kinds, t.gone = make([]page, 1), nil, 0
}

// Drop is called when the table is not used any more, except for reading: its free slots do not
// count as idle from then on.
func (t *Table) Drop() {
	for i := range t.pages {
		p := &t.pages[i]
		t.addIdle(p, -int(p.slots-p.used))
	}
}

// Len returns the number of keys.
func (t *Table) Len() int { return t.dict.Len() }

func (t *Table) page(r ref) *page { return &t.pages[r>>slotBits] }

func (t *Table) object(r ref) object.Object { return t.page(r).object(r) }

// Find returns the object under a name with this hash; nil if there is none.
func (t *Table) Find(hash uint64, name []byte) object.Object {
	r, ok := t.dict.Find(hash, func(r ref) bool { return t.page(r).named(r, name) })
	if !ok {
		return nil
	}
	return t.object(r)
}

// FindBy is Find for the first name for which is returns true.
func (t *Table) FindBy(hash uint64, is func(name string) bool) object.Object {
	r, ok := t.dict.Find(hash, func(r ref) bool { return is(t.object(r).Name()) })
	if !ok {
		return nil
	}
	return t.object(r)
}

// Create adds an unused limiter under a name that the table lacks. room is how many bytes of hits
// a Log, which is not larger than object.MaxRecord, has room for at least; 0 for other limiters.
func (t *Table) Create(hash uint64, f object.Form, name []byte, room int) object.Object {
	k := kindOf(f, len(name)+room)
	if k == objects {
		return t.Insert(hash, object.NewRecord(f, name))
	}
	r, o := t.place(k, f, name)
	t.refer(hash, r)
	return o
}

// place makes a free slot an unused limiter.
func (t *Table) place(k kind, f object.Form, name []byte) (r ref, o object.Object) {
	r = t.take(k)
	p := t.page(r)
	at := p.slot(r)
	clear(bytesAt(at, int(p.size)))
	o = f.Place(at, name)
	if l, ok := o.(*object.Log); ok {
		l.SetRoom(int(p.size))
	}
	return r, o
}

// Repack puts a Log with room for so many bytes of hits, see Create, in the place of another object
// of the same name, and returns it. It has no hits yet.
func (t *Table) Repack(hash uint64, old object.Object, room int) *object.Log {
	name := old.Name()
	r, o := t.place(kindOf(object.FormLog, len(name)+room), object.FormLog, object.BytesOf(name))
	t.exchange(hash, old, r)
	return o.(*object.Log)
}

// Replace puts an object that is no record in the place of another one of the same name.
func (t *Table) Replace(hash uint64, old, o object.Object) {
	r := t.take(objects)
	*(*object.Object)(t.page(r).slot(r)) = o
	t.exchange(hash, old, r)
}

// exchange has the reference to an object refer to another slot.
func (t *Table) exchange(hash uint64, old object.Object, r ref) {
	var before ref
	t.dict.Replace(hash, func(x ref) bool {
		before = x
		return t.object(x) == old
	}, r)
	t.give(before)
}

// refer adds a reference. If its bucket is full, a split hashes the names in it, which are in as
// many places: they are loaded together.
func (t *Table) refer(hash uint64, r ref) {
	if t.dict.Full(hash) {
		t.dict.InBucket(hash, func(r ref) { t.fetched += t.page(r).prefetchName(r) })
	}
	t.dict.Insert(hash, r)
}

// Insert adds an object whose name the table lacks, and returns the one that the table has from now
// on: a copy if the object is a record.
func (t *Table) Insert(hash uint64, o object.Object) object.Object {
	k := objects
	if f := object.FormOf(o); f != 0 {
		k = kindOf(f, object.TextSize(o))
	}
	r := t.take(k)
	p := t.page(r)
	if k == objects {
		*(*object.Object)(p.slot(r)) = o
	} else {
		copy(bytesAt(p.slot(r), int(p.size)), object.RecordOf(o))
		o = p.object(r)
	}
	t.refer(hash, r)
	return o
}

// Remove removes an object. Its memory stays as it is until the next Create or Insert.
func (t *Table) Remove(hash uint64, o object.Object) {
	r, ok := t.dict.Remove(hash, func(r ref) bool { return t.object(r) == o })
	if ok {
		t.give(r)
	}
}

// take returns a free slot for a kind.
func (t *Table) take(k kind) ref {
	of := t.of(k)
	if of.open == 0 {
		t.addPage(of)
	}
	i := of.open
	p := &t.pages[i]
	r := ref(i)<<slotBits | p.take()
	t.addIdle(p, -1)
	if p.full() {
		t.unlist(i)
	}
	return r
}

// give makes a slot free, and drops its page if that is not needed any more.
func (t *Table) give(r ref) {
	i := uint32(r >> slotBits)
	p := &t.pages[i]
	if p.full() {
		t.list(i)
	}
	p.give(r)
	t.addIdle(p, 1)
	switch {
	case p.used > 0:
	case t.Len() == 0 && len(t.pages) > 2: // the next key may be of another kind
		t.reset()
	case p.next != 0 || p.last != 0 || p.form == object.FormLog: // it has moved on
		t.dropPage(i)
	}
}

// addIdle counts free slots of a page. Those of objects are few bytes, and are not counted.
func (t *Table) addIdle(p *page, slots int) {
	if p.form != 0 {
		t.idle.Add(int64(slots * int(p.size)))
	}
}

// addPage adds an open page of a kind, with a quarter as many slots as the others together.
func (t *Table) addPage(of *pagesOf) {
	i := t.gone
	if i != 0 {
		t.gone = t.pages[i].next
	} else {
		i = uint32(len(t.pages))
		t.pages = append(t.pages, page{})
	}
	slots := min(max(int(of.slots/4), firstPage), maxPage/of.kind.size(), maxSlots)
	p := &t.pages[i]
	p.make(of.kind, slots)
	of.slots += uint32(slots)
	t.addIdle(p, slots)
	t.list(i)
}

// dropPage drops an empty page.
func (t *Table) dropPage(i uint32) {
	t.unlist(i)
	p := &t.pages[i]
	t.addIdle(p, -int(p.slots))
	t.of(p.kind).slots -= uint32(p.slots)
	*p = page{next: t.gone}
	t.gone = i
}

// list adds a page to those of its kind with a free slot.
func (t *Table) list(i uint32) {
	p := &t.pages[i]
	of := t.of(p.kind)
	if p.next = of.open; p.next != 0 {
		t.pages[p.next].last = i
	}
	of.open = i
}

// unlist is the reverse of list.
func (t *Table) unlist(i uint32) {
	p := &t.pages[i]
	if p.next != 0 {
		t.pages[p.next].last = p.last
	}
	if p.last != 0 {
		t.pages[p.last].next = p.next
	} else {
		t.of(p.kind).open = p.next
	}
	p.next, p.last = 0, 0
}

// Mark is dict.Dict.Mark.
func (t *Table) Mark(hash uint64, at int64) { t.dict.Mark(hash, at) }

// Sweep is dict.Dict.Sweep for a visit that removes nothing.
func (t *Table) Sweep(cursor uint64, now int64, maxBuckets int, visit func(object.Object) (due int64)) uint64 {
	next, _ := t.dict.Sweep(cursor, now, maxBuckets, func(r ref) (int64, bool) { return visit(t.object(r)), false })
	return next
}

// PrefetchAt loads the objects that the next step of a Scan or Sweep visits, side by side.
func (t *Table) PrefetchAt(cursor uint64) {
	t.dict.InBucket(cursor<<32, func(r ref) { t.fetched += object.Prefetch(t.object(r)) })
}

// HashOf returns the hash of an object's name.
func (t *Table) HashOf(o object.Object) uint64 { return t.hash(o.Name()) }

// Each is dict.Dict.Each.
func (t *Table) Each(hash uint64, visit func(object.Object)) {
	t.dict.Each(hash, func(r ref) { visit(t.object(r)) })
}

// Scan is dict.Dict.Scan.
func (t *Table) Scan(cursor uint64, count int, visit func(object.Object)) (next uint64) {
	return t.dict.Scan(cursor, count, func(r ref) { visit(t.object(r)) })
}

// All is dict.Dict.All.
func (t *Table) All() iter.Seq[object.Object] {
	return func(yield func(object.Object) bool) {
		for r := range t.dict.All() {
			if !yield(t.object(r)) {
				return
			}
		}
	}
}

// Random returns one of the objects, each with the same probability; nil if there are none.
func (t *Table) Random(r *rand.Rand) object.Object {
	at, ok := t.dict.Random(r)
	if !ok {
		return nil
	}
	return t.object(at)
}

// Place is where a key may be: a table, and the hash of the key in it.
type Place struct {
	Table *Table
	Hash  uint64
	guess object.Object // the object that Find probably returns, nil or another one
}

// Prefetch loads the objects at all places into the CPU's caches, see dict.Dict.Prefetch. A single
// one is left to who uses it. The result has no meaning, but the caller must use it.
func Prefetch(list []Place) (sum int) {
	if len(list) == 1 {
		return 0
	}
	for i := range list {
		sum += list[i].Table.dict.Prefetch(list[i].Hash)
	}
	for i := range list {
		p := &list[i]
		if r := p.Table.dict.Guess(p.Hash); r != 0 {
			p.guess = p.Table.object(r)
		}
	}
	for i := range list {
		if o := list[i].guess; o != nil {
			sum += object.Prefetch(o)
		}
	}
	for i := range list {
		if o := list[i].guess; o != nil {
			sum += object.PrefetchNext(o)
		}
	}
	return sum
}
