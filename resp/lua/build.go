package lua

import (
	"math"
	"runtime"
	"runtime/metrics"
	"unsafe"

	"rlserver/internal/largecopy"
)

// reserve counts bytes for what a library builds, before they are taken. The script cannot reach
// them yet: until release they count beside what it holds.
func (w *watch) reserve(bytes int) {
	w.charge(bytes)
	w.reserved += int64(bytes)
}

// release makes w.reserved what it was. What was built can be reached now, or is dropped.
func (w *watch) release(reserved int64) { w.reserved = reserved }

// room returns b with space for n more bytes, which are reserved.
func (w *watch) room(b []byte, n int) []byte {
	if n <= cap(b)-len(b) {
		return b
	}
	size := max(cap(b)+cap(b)/2, len(b)+n, 64)
	w.reserve(size)
	w.reserved -= int64(cap(b))
	return largecopy.Append(make([]byte, 0, size), b)
}

// join appends a text to b.
func (w *watch) join(b []byte, text string) []byte { return appendText(w.room(b, len(text)), text) }

func appendText(b []byte, text string) []byte {
	return largecopy.Append(b, unsafe.Slice(unsafe.StringData(text), len(text)))
}

func cloneText(text string) string {
	b := largecopy.Clone(unsafe.Slice(unsafe.StringData(text), len(text)))
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// text returns b, which is not used any more, as a string: itself, if little of its space is
// unused.
func (w *watch) text(b []byte) string {
	if cap(b)-len(b) <= len(b)/8 && cap(b) != joinSize {
		return unsafe.String(unsafe.SliceData(b), len(b))
	}
	w.reserve(len(b) + perValue)
	return cloneText(unsafe.String(unsafe.SliceData(b), len(b)))
}

// part returns a part of a string: a copy, as it would keep the whole alive.
func (w *watch) part(whole, part string) string {
	if len(whole) <= maxShared || len(part) == len(whole) {
		return part
	}
	w.charge(len(part))
	return cloneText(part)
}

// built counts what a script has built, garbage included. Before all scripts together leave much
// garbage, it is collected: the memory of the process stays near what the scripts may hold. wait is
// called before that.
func (s *Scripts) built(bytes, limit int64, wait func()) {
	if s.fresh.Add(bytes) <= limit {
		return
	}
	wait()
	s.collecting.Lock()
	defer s.collecting.Unlock()
	sample := [...]metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample[:])
	cycles, live := sample[0].Value.Uint64(), sample[1].Value.Uint64()
	switch {
	case cycles > s.cycles+1: // one has begun and ended since
		s.cycles = cycles
		s.fresh.Store(bytes)
	case s.fresh.Load() > max(limit, int64(min(live, math.MaxInt64)/8)):
		runtime.GC()
		s.fresh.Store(bytes)
	}
}
