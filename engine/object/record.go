package object

import (
	"encoding/binary"
	"unsafe"

	"rlserver/engine/effect"
)

// A record is a limiter without a log, or with a short one, see Log, in one piece of memory without
// pointers: its struct, and behind it the key's name. The collector has nothing to walk in it, and
// package table keeps many in a page.
//
//	0          8                   Sizeof(struct)
//	+----------+-------------------+--------+------+
//	| deadline | numbers and clock | length | name |
//	+----------+-------------------+--------+------+
//
// The length is one byte, or longName and 8 bytes. The struct of a limiter that is not at the
// beginning of a record has no name: NewRecord, Form.Place and Form.At return all there are.
type record struct {
	ExpireAt int64 // Unix ms; 0: never
}

func (r *record) Deadline() int64      { return r.ExpireAt }
func (r *record) SetDeadline(at int64) { r.ExpireAt = at }

func (r *record) Expired(now int64) bool { return r.ExpireAt != 0 && now > r.ExpireAt }

// overhead is what Weigh adds: the weight of a record has its name.
func (*record) overhead() int64 { return recordWeight }

// Form is which limiter a record holds. The zero Form is none. The numbers are file format, see
// effect.Reserve: never renumber.
type Form uint8

const (
	FormToken   Form = 1
	FormFixed   Form = 2
	FormCounter Form = 3
	FormLog     Form = 4

	Forms = FormLog + 1 // one more than the last
)

// structSize is the size in bytes of the struct of each form.
var structSize = [Forms]uintptr{
	FormToken:   unsafe.Sizeof(Token{}),
	FormFixed:   unsafe.Sizeof(Fixed{}),
	FormCounter: unsafe.Sizeof(Counter{}),
	FormLog:     unsafe.Sizeof(Log{}),
}

// MaxRecord is how many bytes a record takes at most that package table keeps in a page.
const MaxRecord = 128

// longName as the length of a name says that 8 bytes with the length follow.
const longName = 0xff

// FormOf returns the form of an object; 0 if it is no record.
func FormOf(o Object) Form {
	switch o.(type) {
	case *Token:
		return FormToken
	case *Fixed:
		return FormFixed
	case *Counter:
		return FormCounter
	case *Log:
		return FormLog
	}
	return 0
}

// FormNamed returns the form of the limiters of a type; 0 if they are no records.
func FormNamed(t Type) Form {
	switch t {
	case TypeToken:
		return FormToken
	case TypeFixed:
		return FormFixed
	case TypeCounter:
		return FormCounter
	}
	return 0
}

// FormSetBy returns the form of the limiter whose state a kind of effect sets; 0 for other kinds.
func FormSetBy(k effect.Kind) Form {
	switch k {
	case effect.Tokens, effect.Bucket:
		return FormToken
	case effect.Count, effect.Window:
		return FormFixed
	case effect.Counter:
		return FormCounter
	}
	return 0
}

// SetState sets the state of a limiter to that of an effect, which fits. It is no method of State:
// the effect would escape to the heap.
func SetState(o Object, f *effect.Effect) {
	switch o := o.(type) {
	case *Token:
		o.SetTokens(f.Tokens)
	case *Fixed:
		o.SetCount(f.Count)
	case *Counter:
		o.SetCounts(f.Counts)
	case *Extended:
		SetState(o.State, f)
	}
}

// Size returns how many bytes a record takes with a name of n bytes, or a shorter one and its hits.
func (f Form) Size(n int) int {
	size := int(structSize[f]) + 1 + n
	if n >= longName {
		size += 8
	}
	return size
}

// Place makes the memory at p, Size bytes of zeros aligned to 8, an unused limiter with a name.
func (f Form) Place(p unsafe.Pointer, name []byte) Object {
	putName(unsafe.Add(p, structSize[f]), name)
	return f.At(p)
}

// At returns the limiter whose record is at p.
func (f Form) At(p unsafe.Pointer) Object {
	switch f {
	case FormToken:
		return (*Token)(p)
	case FormFixed:
		return (*Fixed)(p)
	case FormLog:
		return (*Log)(p)
	}
	return (*Counter)(p)
}

// Name returns the name in the record at p. It is valid as long as the record is not overwritten.
func (f Form) Name(p unsafe.Pointer) string { return nameAt(unsafe.Add(p, structSize[f])) }

// RecordOf returns the memory of a limiter's record; nil for other objects.
func RecordOf(o Object) []byte {
	var p unsafe.Pointer
	switch o := o.(type) {
	case *Token:
		p = unsafe.Pointer(o)
	case *Fixed:
		p = unsafe.Pointer(o)
	case *Counter:
		p = unsafe.Pointer(o)
	case *Log:
		p = unsafe.Pointer(o)
	default:
		return nil
	}
	return unsafe.Slice((*byte)(p), FormOf(o).Size(TextSize(o)))
}

// TextSize returns how many bytes are behind the struct of a record: its name, and the room for
// hits.
func TextSize(o Object) int {
	if l, ok := o.(*Log); ok {
		return len(o.Name()) + int(l.room)
	}
	return len(o.Name())
}

// NewRecord returns an unused limiter whose record is allocated by itself.
func NewRecord(f Form, name []byte) Object {
	memory := make([]uint64, (f.Size(len(name))+7)/8)
	return f.Place(unsafe.Pointer(&memory[0]), name)
}

// cloneAs returns a copy of a limiter under another name.
func cloneAs(o Object, name string) Object {
	f := FormOf(o)
	memory := make([]uint64, (f.Size(len(name)+TextSize(o)-len(o.Name()))+7)/8)
	c := f.Place(unsafe.Pointer(&memory[0]), BytesOf(name))
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&memory[0])), structSize[f]), RecordOf(o))
	if l, ok := o.(*Log); ok {
		copy(c.(*Log).area(), l.area())
	}
	return c
}

// recordSize is the weight of a record with a name, in bytes: records are aligned.
func recordSize(f Form, name string) int64 { return alignedSize(f.Size(len(name))) }

func alignedSize(n int) int64 { return int64(n+7) &^ 7 }

func putName(p unsafe.Pointer, name []byte) {
	if len(name) < longName {
		*(*byte)(p) = byte(len(name))
		copy(unsafe.Slice((*byte)(unsafe.Add(p, 1)), len(name)), name)
		return
	}
	*(*byte)(p) = longName
	b := unsafe.Slice((*byte)(unsafe.Add(p, 1)), 8+len(name))
	binary.LittleEndian.PutUint64(b, uint64(len(name)))
	copy(b[8:], name)
}

func nameAt(p unsafe.Pointer) string {
	if n := *(*byte)(p); n < longName {
		return unsafe.String((*byte)(unsafe.Add(p, 1)), int(n))
	}
	n := binary.LittleEndian.Uint64(unsafe.Slice((*byte)(unsafe.Add(p, 1)), 8))
	return unsafe.String((*byte)(unsafe.Add(p, 1+8)), int(n))
}
