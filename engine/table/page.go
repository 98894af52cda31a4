package table

import (
	"math/bits"
	"unsafe"

	"rlserver/engine/object"
)

// ref is a reference to a slot: its page, and below slotBits the slot. 0 is none: there is no page
// 0.
type ref uint32

const (
	slotBits  = 8
	maxSlots  = 1 << slotBits
	firstPage = 8       // slots in the first page of a kind
	maxPage   = 8 << 10 // bytes
	maxRecord = object.MaxRecord
	grain     = 8 // slots have a multiple of this size
)

// kind is what a page holds: objects, or records of one form and size. Kinds are numbered by form,
// and by size in grains.
type kind uint8

const (
	perForm = maxRecord/grain + 1
	objects = kind(0)
)

// kindOf returns the kind of page for a record with n bytes of text; objects if they are too many.
func kindOf(f object.Form, n int) kind {
	grains := (f.Size(n) + grain - 1) / grain
	if f == object.FormLog && grains > fineLogs && grains < perForm {
		grains = (grains-fineLogs+coarse-1)/coarse*coarse + fineLogs
	}
	if grains < perForm {
		return kind(int(f)*perForm + grains)
	}
	return objects
}

// Logs grow: those of more than fineLogs grains are of every coarse-th size, so that they move less
// often, to fewer kinds of pages. The largest are as large as other records may be.
const (
	coarse   = 3
	fineLogs = maxRecord/grain - 3*coarse
)

func (k kind) form() object.Form { return object.Form(int(k) / perForm) }

// size returns the bytes of a slot.
func (k kind) size() int {
	if k == objects {
		return int(unsafe.Sizeof(*new(object.Object)))
	}
	return int(k) % perForm * grain
}

// page is slots of one kind.
type page struct {
	at    unsafe.Pointer // the first slot; nil: the page is dropped
	size  uint16         // bytes of a slot
	form  object.Form    // of the records; 0: the slots have objects
	kind  kind
	slots uint16
	used  uint16
	// the next and last page in the kind's list of those with a free slot; of a dropped page, next
	// is the next dropped one. 0: none
	next, last uint32
	free       [maxSlots / 64]uint64 // a bit for each free slot
}

// make allocates the slots.
func (p *page) make(k kind, slots int) {
	*p = page{size: uint16(k.size()), form: k.form(), kind: k, slots: uint16(slots)}
	if k == objects {
		list := make([]object.Object, slots)
		p.at = unsafe.Pointer(&list[0])
	} else {
		list := make([]uint64, slots*k.size()/8)
		p.at = unsafe.Pointer(&list[0])
	}
	for i := range slots {
		p.free[i/64] |= 1 << (i % 64)
	}
}

// slot returns the memory of a slot.
func (p *page) slot(i ref) unsafe.Pointer {
	return unsafe.Add(p.at, uintptr(i%maxSlots)*uintptr(p.size))
}

// object returns what is in a slot that is in use.
func (p *page) object(i ref) object.Object {
	if p.form == 0 {
		return *(*object.Object)(p.slot(i))
	}
	return p.form.At(p.slot(i))
}

// named reports whether the object in a slot that is in use has a name.
func (p *page) named(i ref, name []byte) bool {
	if p.form == 0 {
		return (*(*object.Object)(p.slot(i))).Name() == string(name)
	}
	return p.form.Name(p.slot(i)) == string(name)
}

// prefetchName loads the name of the object in a slot that is in use.
func (p *page) prefetchName(i ref) int {
	if p.form == 0 {
		return object.PrefetchName(*(*object.Object)(p.slot(i)))
	}
	return len(p.form.Name(p.slot(i))) // which is before it
}

func (p *page) full() bool { return p.used == p.slots }

// take returns a free slot, which is in use from now on.
func (p *page) take() (i ref) {
	for w := range p.free {
		if word := p.free[w]; word != 0 {
			i := bits.TrailingZeros64(word)
			p.free[w] = word &^ (1 << i)
			p.used++
			return ref(w*64 + i)
		}
	}
	panic("table: a page without a free slot is listed as open")
}

// give makes a slot free. The memory of a record is not cleared before it is used again.
func (p *page) give(i ref) {
	if i %= maxSlots; p.form == 0 {
		*(*object.Object)(p.slot(i)) = nil
	}
	p.free[i/64] |= 1 << (i % 64)
	p.used--
}

func bytesAt(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }
