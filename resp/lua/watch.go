package lua

import (
	"math"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"
	"unsafe"

	glua "github.com/yuin/gopher-lua"

	"rlserver/internal/largecopy"
	"rlserver/resp/lua/interior"
)

// Limits are the limits of a script.
type Limits struct {
	Memory int64         // bytes that the values of a script may take
	All    int64         // and those of all running scripts together
	Time   time.Duration // after which Host.Overdue is called
}

const (
	perCheck       = 1024 // instructions between two checks
	perInstruction = 32   // bytes that an instruction may take, on average, beside what is charged
	perTable       = 3 << 10
	perEntry       = 128 // bytes of an entry of a table that is not in its array part
	perValue       = 16  // bytes of a value in an array or on the stack
)

// watch counts the instructions and the memory of a script, and ends it. It is the context of its
// state: the interpreter asks for Done before each instruction.
//
// What is charged is what was allocated, also what is garbage already. When that reaches a limit,
// what the script can still reach is measured, as a garbage collector marks it.
type watch struct {
	st      *State
	left    int   // instructions until the next check
	charged int64 // bytes since memory was measured
	until   int64 // how many bytes may be charged before it is measured again
	lasting int64 // bytes that the interpreter does not free: keys that were deleted
	loaded  int64 // bytes of chunks
	granted int64 // of Scripts.memory
	held    int64 // bytes that the script could reach when memory was last measured
	// reserved are bytes that are being built, see reserve.
	reserved int64
	turn     time.Time // when it took Scripts.turn; zero: it has not
	limits   Limits
	all      *Scripts
	begun    time.Time
	overdue  bool
	dead     string      // why the script has to end; "": it may go on
	intact   bool        // it ends before it has taken more than firstBytes: see State.usable
	killed   atomic.Bool // set by others
}

// firstBytes is what a script may take before it is measured.
const firstBytes = 64 << 10

func (w *watch) reset(l Limits, all *Scripts) {
	w.left, w.charged, w.lasting, w.loaded, w.reserved, w.held = perCheck, 0, 0, 0, 0, 0
	w.limits, w.all = l, all
	w.until = firstBytes
	w.begun, w.overdue, w.dead, w.intact = time.Time{}, false, "", false
	w.killed.Store(false)
}

// Done implements context.Context. It never reports an end itself: check panics.
func (w *watch) Done() <-chan struct{} {
	if w.left--; w.left <= 0 {
		w.check()
	}
	return nil
}

func (w *watch) Deadline() (time.Time, bool) { return time.Time{}, false }
func (w *watch) Err() error                  { return nil }
func (w *watch) Value(any) any               { return nil }

// step counts work of the library as instructions.
func (w *watch) step(n int) {
	if w.left -= n; w.left <= 0 {
		w.check()
	}
}

// charge counts bytes before they are allocated.
func (w *watch) charge(bytes int) {
	if w.charged += int64(bytes); w.charged > w.until {
		w.measure(int64(bytes))
	}
}

// grant makes the script's part of the memory of all scripts so many bytes, and reports whether
// there are as many.
func (w *watch) grant(bytes int64) (ok bool) {
	if w.all.memory.Add(bytes-w.granted) > w.limits.All && bytes > w.granted {
		w.all.memory.Add(w.granted - bytes)
		return false
	}
	w.granted = bytes
	return true
}

func (w *watch) check() {
	if w.dead == "" {
		w.left = perCheck
		w.lookAtTime()
		w.charge(perCheck * perInstruction)
	}
	w.raiseIfDead()
}

func (w *watch) raiseIfDead() {
	if w.dead != "" {
		w.left = 0
		panic(&glua.ApiError{Type: glua.ApiErrorRun, Object: glua.LString(w.dead), StackTrace: "-"})
	}
}

func (w *watch) lookAtTime() {
	if w.killed.Load() {
		w.dead = w.st.killWords
		return
	}
	if w.dead = w.st.host.MustEnd(); w.dead != "" {
		return
	}
	now := time.Now()
	if w.begun.IsZero() { // the first check: a short script reads no clock
		w.begun = now
		return
	}
	if now.Sub(w.begun) > TurnTime {
		w.st.host.Long()
	}
	if !w.overdue && now.Sub(w.begun) >= w.limits.Time {
		w.overdue = true
		w.st.host.Overdue()
	}
	if now.Sub(w.begun) > TurnTime && now.Sub(w.turn) > TurnTime {
		w.endTurn()
		w.all.yield()
		w.all.turn.Lock()
		w.turn = time.Now()
	}
}

// TurnTime is how long a script runs beside others, and then how long its turns are.
const TurnTime = time.Millisecond

func (w *watch) endTurn() {
	if !w.turn.IsZero() {
		w.turn = time.Time{}
		w.all.turn.Unlock()
	}
}

const (
	errMemory    = "not enough memory: what a script holds is limited by lua-memory-limit"
	errMemoryAll = "not enough memory: what all running scripts hold is limited by lua-memory-total: run fewer at a " +
		"time, or raise it"
)

// refuse ends the script for the memory that it needs.
func (w *watch) refuse(why string) {
	w.refuseLater(why)
	w.raiseIfDead()
}

// refuseValue ends the script for one value that is too large.
func (w *watch) refuseValue() {
	w.intact = w.until == firstBytes && w.st.L.G.CurrentThread == w.st.L
	w.refuse(errMemory)
}

// refuseLater is refuse within a command that the script has called, which runs to its end.
func (w *watch) refuseLater(why string) {
	w.dead = why
	w.all.refused.Add(1)
}

// MayReply is the wire.Limiter of the commands that the script calls: their replies take memory
// before the script has their values. If one is too large, the script ends when the command has
// ended.
func (st *State) MayReply(size, capacity int) (next int) {
	w := &st.watch
	switch bytes := int64(max(size, capacity)); {
	case w.dead != "":
		return 0
	case size <= firstBytes:
		return firstBytes + 1
	case int64(size) > w.limits.Memory:
		w.refuseLater(errMemory)
		return 0
	case w.held+bytes > w.granted && !w.grant(w.held+bytes):
		w.refuseLater(errMemoryAll)
		return 0
	}
	return size + min(size/4, int(w.limits.Memory)-size) + 1
}

// measure measures what the script holds with the next bytes, and ends it if that is too much.
func (w *watch) measure(next int64) {
	w.raiseIfDead()
	w.lookAtTime() // few instructions may take much memory, and time
	w.raiseIfDead()
	pending := w.charged
	w.charged = 0
	if pending > w.limits.Memory && pending > 2*w.until { // one value that is too large
		w.refuseValue()
	}
	m := meter{seen: make(map[unsafe.Pointer]struct{}), most: w.limits.Memory}
	m.thread(w.st.L)
	for th := w.st.L.G.CurrentThread; th != nil; th = th.Parent {
		if frames := m.thread(th); th != w.st.L { // whose calls are bounded
			m.bytes += frames * stackBytes
		}
	}
	m.value(w.st.result)
	w.held = m.run() + w.lasting + w.loaded
	held := w.held + w.reserved + max(next, pending/64)
	if held > w.limits.Memory {
		w.refuse(errMemory)
	}
	w.all.built(pending, w.limits.Memory, w.st.host.Long)
	w.until = min(max(held, 1<<20), max(w.limits.Memory/4, firstBytes))
	if w.grant(held + w.until) {
		return
	}
	w.until = max(firstBytes, held/8) // to measure takes time in proportion to held
	if !w.grant(held + w.until) {
		w.refuse(errMemoryAll)
	}
}

// meter adds up what can be reached.
type meter struct {
	seen  map[unsafe.Pointer]struct{}
	queue []glua.LValue
	bytes int64
	most  int64
}

func (m *meter) first(p unsafe.Pointer) bool {
	if _, found := m.seen[p]; found {
		return false
	}
	m.seen[p] = struct{}{}
	return true
}

const smallString = 64 // bytes; longer ones are counted once

func (m *meter) value(v glua.LValue) {
	switch v := v.(type) {
	case glua.LString:
		if len(v) <= smallString || m.first(unsafe.Pointer(unsafe.StringData(string(v)))) {
			m.bytes += int64(len(v)) + perValue
		}
	case *glua.LTable:
		if m.first(unsafe.Pointer(v)) {
			m.queue = append(m.queue, v)
		}
	case *glua.LFunction:
		if m.first(unsafe.Pointer(v)) {
			m.queue = append(m.queue, v)
		}
	case *glua.LState:
		if m.first(unsafe.Pointer(v)) {
			m.queue = append(m.queue, v)
		}
	}
}

func (m *meter) run() int64 {
	for len(m.queue) > 0 && m.bytes <= m.most {
		v := m.queue[len(m.queue)-1]
		m.queue = m.queue[:len(m.queue)-1]
		switch v := v.(type) {
		case *glua.LTable:
			m.bytes += 256
			m.value(v.Metatable)
			v.ForEach(func(key, value glua.LValue) {
				if _, ok := key.(glua.LNumber); ok {
					m.bytes += perValue
				} else {
					m.bytes += perEntry
				}
				m.value(key)
				m.value(value)
			})
			m.bytes += int64(cap(*interior.ArrayOf(v))) * perValue // nils as well
		case *glua.LFunction:
			m.bytes += 128
			for _, up := range v.Upvalues {
				if up != nil {
					m.bytes += 64
					m.value(up.Value())
				}
			}
		case *glua.LState:
			m.bytes += int64(interior.Registers(v)) * perValue
			m.bytes += m.thread(v) * frameBytes
		}
	}
	return m.bytes
}

// denseFrames is how many frames of a thread are visited one by one. To find a deep one takes time:
// of those, one of every level/denseFrames is visited, and its strings count for all.
const denseFrames = 128

// thread adds what the frames of a thread hold, and returns how many there are.
func (m *meter) thread(th *glua.LState) (frames int64) {
	m.bytes += threadBytes
	for level, next := 0, 0; ; level = next {
		next = level + max(1, level/denseFrames)
		dbg, ok := th.GetStack(level)
		if !ok {
			return int64(level)
		}
		if fn, err := th.GetInfo("f", dbg, glua.LNil); err == nil {
			m.value(fn)
		}
		for n := 1; ; n++ {
			name, v := th.GetLocal(dbg, n)
			if name == "" {
				break
			}
			m.value(v)
			if text, ok := v.(glua.LString); ok {
				m.bytes += int64(next-level-1) * int64(len(text))
			}
		}
	}
}

const (
	threadBytes = 16 << 10
	frameBytes  = 80   // of a call in a thread
	stackBytes  = 1200 // of Go's stack, which a call that runs may take, as in a function for gsub
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
