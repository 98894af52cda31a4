package list

import "math/bits"

const (
	// RunSize is the largest run in bytes, except for one that has a single element.
	RunSize = 4096
	// leastRun is the smallest allocation of a run in bytes.
	leastRun = 32
)

// run is a part of a list. Its entries are buf[start:]; the bytes before and behind them are free.
type run struct {
	buf    []byte
	start  uint16
	count  uint16
	shared bool // a clone has the same buf, so its bytes must not change
}

func (r *run) entries() []byte { return r.buf[r.start:] }

func (r *run) size() int { return len(r.buf) - int(r.start) }

// fits reports whether n more bytes fit in the run.
func (r *run) fits(n int) bool { return r.count == 0 || r.size()+n <= RunSize }

// allocation returns the capacity of a run that holds n bytes.
func allocation(n int) int {
	if n > RunSize {
		return n
	}
	return max(leastRun, 1<<bits.Len(uint(n-1)))
}

// move copies the entries to an allocation of a capacity, with free bytes in front of them.
func (r *run) move(capacity, free int) {
	buf := make([]byte, free+r.size(), capacity)
	copy(buf[free:], r.entries())
	r.buf, r.start, r.shared = buf, uint16(free), false
}

// own makes the bytes of the run its own.
func (r *run) own() {
	if r.shared {
		buf := make([]byte, len(r.buf), cap(r.buf))
		copy(buf[r.start:], r.entries())
		r.buf, r.shared = buf, false
	}
}

// roomBehind makes room for n bytes behind the entries.
func (r *run) roomBehind(n int) {
	need := r.size() + n
	switch {
	case cap(r.buf)-len(r.buf) >= n:
		r.own()
	case need <= cap(r.buf) && !r.shared:
		r.buf, r.start = r.buf[:copy(r.buf[:cap(r.buf)], r.entries())], 0
	default:
		r.move(max(allocation(need), cap(r.buf)), 0)
	}
}

// roomBefore makes room for n bytes in front of the entries.
func (r *run) roomBefore(n int) {
	if int(r.start) >= n {
		r.own()
		return
	}
	capacity := max(allocation(r.size()+n), cap(r.buf))
	if capacity != cap(r.buf) || r.shared {
		r.move(capacity, capacity-r.size())
		return
	}
	size := r.size()
	r.buf = r.buf[:capacity]
	copy(r.buf[capacity-size:], r.buf[r.start:int(r.start)+size])
	r.start = uint16(capacity - size)
}

// append adds an element behind the others.
func (r *run) append(element []byte) {
	r.roomBehind(entrySize(len(element)))
	r.buf = appendEntry(r.buf, element)
	r.count++
}

// prepend adds an element in front of the others.
func (r *run) prepend(element []byte) {
	size := entrySize(len(element))
	if r.count == 0 && size > RunSize { // start could not say how many bytes are free
		r.append(element)
		return
	}
	r.roomBefore(size)
	r.start -= uint16(size)
	appendEntry(r.buf[r.start:r.start], element)
	r.count++
}

// insert adds an element at an offset in the entries.
func (r *run) insert(offset int, element []byte) {
	size := entrySize(len(element))
	r.roomBehind(size)
	at := int(r.start) + offset
	r.buf = r.buf[:len(r.buf)+size]
	copy(r.buf[at+size:], r.buf[at:])
	appendEntry(r.buf[at:at], element)
	r.count++
}

// remove removes n elements, which are the entries from one offset up to another.
func (r *run) remove(from, to, n int) {
	switch {
	case from == 0:
		r.start += uint16(to)
	case to == r.size():
		r.buf = r.buf[:int(r.start)+from]
	default:
		r.own()
		at := int(r.start)
		r.buf = append(r.buf[:at+from], r.buf[at+to:]...)
	}
	r.count -= uint16(n)
	if r.size()*4 <= cap(r.buf) && allocation(2*r.size()) < cap(r.buf) {
		r.move(allocation(2*r.size()), 0)
	}
}

// offset returns where the entry of rank i begins.
func (r *run) offset(i int) int {
	entries := r.entries()
	if i > int(r.count)/2 {
		at := len(entries)
		for n := int(r.count); n > i; n-- {
			at -= lastSize(entries[:at])
		}
		return at
	}
	at := 0
	for range i {
		_, size := first(entries[at:])
		at += size
	}
	return at
}
