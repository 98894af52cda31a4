package list

import (
	"iter"
	"slices"
	"unsafe"
)

// List is a list of byte strings. The zero value is an empty list. Elements are passed and kept as
// copies. A method that takes ranks panics if they are out of range.
type List struct {
	room   []run // the runs are room[head:]; none is empty
	head   int
	n      int   // elements
	bytes  int   // capacity of all runs
	recent place // the run of the latest change
}

// place is a run by its index, and the rank of its first element.
type place struct{ index, rank int }

// Len returns the number of elements.
func (l *List) Len() int { return l.n }

// Weight returns how many bytes the list takes in memory besides its struct.
func (l *List) Weight() int { return l.bytes + cap(l.room)*int(unsafe.Sizeof(run{})) }

// Bytes returns how many bytes all runs have allocated. It takes no time.
func (l *List) Bytes() int { return l.bytes }

func (l *List) runs() []run { return l.room[l.head:] }

// Clone returns a copy, which shares the bytes with the list until either changes them. It takes
// time in proportion to the number of runs.
func (l *List) Clone() *List {
	for i := range l.runs() {
		l.runs()[i].shared = true
	}
	return &List{room: slices.Clone(l.runs()), n: l.n, bytes: l.bytes}
}

// part returns a copy of the elements from rank lo up to but not including hi, which shares the
// bytes with the list.
func (l *List) part(lo, hi int) *List {
	from, to := l.locate(lo), l.locate(hi-1)
	runs := l.runs()[from.index : to.index+1]
	p := &List{room: make([]run, len(runs))}
	for i := range runs {
		runs[i].shared = true
		p.room[i] = runs[i]
		p.n += int(runs[i].count)
		p.bytes += cap(runs[i].buf)
	}
	p.Remove(lo-from.rank+hi-lo, p.n)
	p.Remove(0, lo-from.rank)
	return p
}

// locate returns the run that has the element of rank i, which is less than Len.
func (l *List) locate(i int) place {
	runs := l.runs()
	at := place{}
	if d := i - l.recent.rank; max(d, -d) < i {
		at = l.recent
	}
	if l.n-i < max(i-at.rank, at.rank-i) {
		at = place{len(runs), l.n}
	}
	for at.rank > i {
		at.index--
		at.rank -= int(runs[at.index].count)
	}
	for i >= at.rank+int(runs[at.index].count) {
		at.rank += int(runs[at.index].count)
		at.index++
	}
	return at
}

// Insert inserts an element, which then has rank i.
func (l *List) Insert(i int, element []byte) {
	switch {
	case i == l.n:
		l.pushBack(element)
	case i == 0:
		l.pushFront(element)
	default:
		l.insertBetween(i, element)
	}
	l.n++
}

func (l *List) pushBack(element []byte) {
	size := entrySize(len(element))
	if last := len(l.room) - 1; last < l.head || !l.room[last].fits(size) {
		if len(l.room) == cap(l.room) && l.head > len(l.room)/2 {
			l.room, l.head = slices.Delete(l.room, 0, l.head), 0
		}
		l.room = append(l.room, run{})
	}
	r := &l.room[len(l.room)-1]
	l.bytes -= cap(r.buf)
	r.append(element)
	l.bytes += cap(r.buf)
}

func (l *List) pushFront(element []byte) {
	size := entrySize(len(element))
	if len(l.runs()) == 0 || !l.runs()[0].fits(size) {
		if l.head == 0 {
			more := len(l.room)/2 + 1
			l.room = append(make([]run, more, more+len(l.room)), l.room...)
			l.head = more
		}
		l.head--
	}
	r := &l.runs()[0]
	l.bytes -= cap(r.buf)
	r.prepend(element)
	l.bytes += cap(r.buf)
	l.recent = place{}
}

// insertBetween inserts an element that is neither first nor last: in the run of its successor, in
// the run before it, or in one of its own.
func (l *List) insertBetween(i int, element []byte) {
	size, at := entrySize(len(element)), l.locate(i)
	r := &l.runs()[at.index]
	if offset := r.offset(i - at.rank); offset > 0 && !r.fits(size) {
		l.split(at.index, i-at.rank, offset)
		at.index++
		at.rank = i
	}
	l.recent = at
	if r = &l.runs()[at.index]; r.fits(size) {
		l.bytes -= cap(r.buf)
		r.insert(r.offset(i-at.rank), element)
		l.bytes += cap(r.buf)
		return
	}
	if r = &l.runs()[at.index-1]; r.fits(size) {
		l.bytes -= cap(r.buf)
		r.append(element)
		l.bytes += cap(r.buf)
		l.recent = place{}
		return
	}
	l.room = slices.Insert(l.room, l.head+at.index, run{})
	r = &l.runs()[at.index]
	r.append(element)
	l.bytes += cap(r.buf)
}

// split moves the entries of a run from a rank and offset on to a new run behind it.
func (l *List) split(index, rank, offset int) {
	l.room = slices.Insert(l.room, l.head+index+1, run{})
	r, behind := &l.runs()[index], &l.runs()[index+1]
	l.bytes -= cap(r.buf)
	tail := r.entries()[offset:]
	behind.buf = append(make([]byte, 0, allocation(len(tail))), tail...)
	behind.count = r.count - uint16(rank)
	r.remove(offset, r.size(), int(behind.count))
	l.bytes += cap(r.buf) + cap(behind.buf)
}

// Remove removes the elements from rank lo up to but not including hi.
func (l *List) Remove(lo, hi int) {
	if lo == hi {
		return
	}
	at := l.locate(lo)
	left, begin := hi-lo, at.index
	l.n -= left
	if from := lo - at.rank; from > 0 {
		n := min(left, int(l.runs()[begin].count)-from)
		l.cut(begin, from, from+n)
		left -= n
		begin++
	}
	end := begin // the runs from begin up to end are gone
	for ; left > 0 && left >= int(l.runs()[end].count); end++ {
		left -= int(l.runs()[end].count)
		l.bytes -= cap(l.runs()[end].buf)
	}
	if left > 0 {
		l.cut(end, 0, left)
	}
	l.drop(begin, end)
	if l.recent = at; at.index == len(l.runs()) {
		l.recent = place{}
	}
	l.merge(begin)
	l.merge(begin - 1)
	l.tighten()
}

// cut removes the elements of a run from rank lo up to hi, but not all of them.
func (l *List) cut(index, lo, hi int) {
	r := &l.runs()[index]
	from, to := r.offset(lo), r.size()
	if hi < int(r.count) {
		to = r.offset(hi)
	}
	l.bytes -= cap(r.buf)
	r.remove(from, to, hi-lo)
	l.bytes += cap(r.buf)
}

// drop removes runs from the row.
func (l *List) drop(begin, end int) {
	if begin == 0 {
		clear(l.runs()[:end])
		l.head += end
	} else {
		l.room = slices.Delete(l.room, l.head+begin, l.head+end)
	}
}

// leastRow is the smallest row, in runs, that is made shorter.
const leastRow = 8

// tighten shortens the row if most of it is free.
func (l *List) tighten() {
	if left := len(l.runs()); cap(l.room) > leastRow && left*4 <= cap(l.room) {
		l.room, l.head = append(make([]run, 0, left+left/2+1), l.runs()...), 0
	}
}

// merge merges a run with the next one, if they have at most half a run together.
func (l *List) merge(index int) {
	if index < 0 || index+1 >= len(l.runs()) {
		return
	}
	r, next := &l.runs()[index], &l.runs()[index+1]
	if r.size()+next.size() > RunSize/2 {
		return
	}
	l.bytes -= cap(r.buf) + cap(next.buf)
	if l.recent.index > index {
		l.recent = place{index, l.recent.rank - int(r.count)}
	}
	r.roomBehind(next.size())
	r.buf = append(r.buf, next.entries()...)
	r.count += next.count
	l.bytes += cap(r.buf)
	l.room = slices.Delete(l.room, l.head+index+1, l.head+index+2)
}

// At returns the element of rank i. It is valid until the list changes.
func (l *List) At(i int) []byte {
	at := l.locate(i)
	r := &l.runs()[at.index]
	element, _ := first(r.entries()[r.offset(i-at.rank):])
	return element
}

// Range yields the elements from rank lo up to but not including hi. They are valid until the list
// changes.
func (l *List) Range(lo, hi int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if lo >= hi {
			return
		}
		at := l.locate(lo)
		skip, left := lo-at.rank, hi-lo
		for i := at.index; left > 0; i++ {
			r := &l.runs()[i]
			entries := r.entries()[r.offset(skip):]
			for skip = 0; left > 0 && len(entries) > 0; left-- {
				element, size := first(entries)
				if !yield(element) {
					return
				}
				entries = entries[size:]
			}
		}
	}
}

// Backward yields the elements from rank hi-1 down to lo. They are valid until the list changes.
func (l *List) Backward(lo, hi int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if lo >= hi {
			return
		}
		at := l.locate(hi - 1)
		r := &l.runs()[at.index]
		entries := r.entries()
		if end := hi - at.rank; end < int(r.count) {
			entries = entries[:r.offset(end)]
		}
		for i, left := at.index, hi-lo; ; entries = l.runs()[i].entries() {
			for ; left > 0 && len(entries) > 0; left-- {
				begin := len(entries) - lastSize(entries)
				element, _ := first(entries[begin:])
				if !yield(element) {
					return
				}
				entries = entries[:begin]
			}
			if i--; left == 0 {
				return
			}
		}
	}
}

// All yields all elements.
func (l *List) All() iter.Seq[[]byte] { return l.Range(0, l.n) }
