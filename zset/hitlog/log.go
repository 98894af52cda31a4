package hitlog

import (
	"bytes"
	"math"
	"sort"
	"strconv"

	"rlserver/internal/dict"
)

// Log is hits, with ids or without, in the order of their times and, within a millisecond, of the
// bytes of their names. The zero value is empty. A Log is not safe for concurrent use, and must not
// be copied, see Clone.
type Log struct {
	plain
	calls *calls // nil: it has had none with an id
}

// Len returns the number of hits.
func (l *Log) Len() int {
	if l.calls != nil {
		return l.plain.Len() + l.calls.n
	}
	return l.plain.Len()
}

// Clone returns a copy of the log as it is now. The two share what neither changes.
func (l *Log) Clone() *Log { return &Log{l.plain.clone(), l.calls.clone()} }

// AddCall adds the hits of a call with an id whose numbers are from lo, at least 1, up to but not
// including hi, at most MaxNumber+1. h hashes ids.
func (l *Log) AddCall(h *dict.Hasher, at int64, id []byte, lo, hi uint64) {
	if l.calls == nil {
		l.calls = new(calls)
	}
	l.calls.hash = h
	l.calls.add(at, id, lo, hi)
}

// RemoveCall removes those hits of the call of a time with an id whose numbers are from lo up to
// but not including hi.
func (l *Log) RemoveCall(at int64, id []byte, lo, hi uint64) { l.calls.without(at, id, lo, hi) }

// Remove removes a hit that is in the log.
func (l *Log) Remove(h Hit) {
	if h.ID != nil {
		l.calls.without(h.At, h.ID, h.Seq, h.Seq+1)
		return
	}
	var buf [24]byte
	rank := l.plain.Before(h.At, strconv.AppendUint(buf[:0], h.Seq, 10))
	l.plain.RemoveSpan(rank, rank+1)
}

// Named returns the hit with a name that is in the log.
func (l *Log) Named(name []byte) (found Hit, ok bool) {
	if l.calls.len() == 0 {
		return Hit{}, false
	}
	id, n, ok := Named(name)
	if !ok {
		return Hit{}, false
	}
	ok = false
	l.calls.find(id, func(c call) bool {
		if ok = c.has(n); ok {
			found = Hit{c.at, n, c.id} // not nil, as that of an empty name may be
		}
		return !ok
	})
	return found, ok
}

// Call visits the numbers of the hits with an id: those of a time from lo up to but not including
// hi.
func (l *Log) Call(id []byte, visit func(at int64, lo, hi uint64)) {
	l.calls.find(id, func(c call) bool {
		for _, s := range c.spans {
			visit(c.at, s.lo, s.hi)
		}
		return true
	})
}

// After returns how many hits are at a time or before.
func (l *Log) After(at int64) int {
	if l.calls != nil {
		return l.plain.After(at) + l.calls.after(at)
	}
	return l.plain.After(at)
}

// Before returns how many hits are before a time, or at it with a lesser name.
func (l *Log) Before(at int64, name []byte) (n int) {
	var buf [24]byte
	begin := begin(buf[:0], at)
	switch {
	case bytes.HasPrefix(name, begin):
		n = l.plain.Before(at, name[len(begin):])
	case bytes.Compare(begin, name) < 0:
		n = l.plain.After(at)
	default:
		n = l.plain.After(at - 1)
	}
	if l.calls.len() > 0 {
		n += l.calls.before(at, name)
	}
	return n
}

// moment returns the time of the hit of a rank, which exists, and how many hits are before that.
func (l *Log) moment(rank int) (at int64, before int) {
	if l.plain.Len() == 0 {
		return l.calls.moment(rank)
	}
	first, last := l.calls.chunks[0].first, l.calls.chunks[len(l.calls.chunks)-1].last
	first, last = min(first, l.plain.First()), max(last, l.plain.at)
	at = first + int64(sort.Search(int(last-first), func(i int) bool { return l.After(first+int64(i)) > rank }))
	return at, l.After(at - 1)
}

// At returns the hit of a rank, which exists.
func (l *Log) At(rank int) Hit {
	if l.calls.len() == 0 {
		at, seq := l.plain.At(rank)
		return Hit{At: at, Seq: seq}
	}
	at, before := l.moment(rank)
	return nth(at, l.group(at, l.calls.at(at)), uint64(rank-before))
}

// TimeAt returns the time of the hit of a rank, which exists.
func (l *Log) TimeAt(rank int) int64 {
	if l.calls.len() == 0 {
		return l.plain.TimeAt(rank)
	}
	at, _ := l.moment(rank)
	return at
}

// RemoveSpan removes the hits of the ranks [lo,hi), which exist.
func (l *Log) RemoveSpan(lo, hi int) {
	if l.calls.len() == 0 || lo == hi {
		l.plain.RemoveSpan(lo, hi)
		return
	}
	from, n := l.position(lo)
	to, m := l.position(hi)
	l.plain.RemoveSpan(n, m)
	l.calls.remove(from, to)
}

// position returns the place before the hit of a rank, and how many hits without ids are before it.
func (l *Log) position(rank int) (p position, plain int) {
	switch rank {
	case 0:
		return position{at: math.MinInt64}, 0
	case l.Len():
		return position{at: math.MaxInt64}, l.plain.Len()
	}
	p.at, plain = l.moment(rank)
	if plain == rank {
		return p, l.plain.After(p.at - 1)
	}
	p.name = l.At(rank).Append(nil)
	return p, rank - l.calls.before(p.at, p.name)
}

// Ascend yields the hits of the ranks [lo,hi), which exist, in order. It returns false if yield
// has.
func (l *Log) Ascend(lo, hi int, yield func(Hit) bool) bool {
	byPlain := func(at int64, seq uint64) bool { return yield(Hit{At: at, Seq: seq}) }
	if l.calls.len() == 0 || lo == hi {
		return l.plain.Ascend(lo, hi, byPlain)
	}
	left := hi - lo
	more := true
	at, before := l.moment(lo)
	next, skip := l.plain.After(at-1), lo-before // the next hit without an id; to be skipped
	upTo := func(end int) bool {
		if end -= next; end > 0 {
			n := min(left, end-skip)
			more = l.plain.Ascend(next+skip, next+skip+n, byPlain)
			next, skip, left = next+end, 0, left-n
		}
		return more && left > 0
	}
	each := func(h Hit) bool {
		left--
		more = yield(h)
		return more && left > 0
	}
	for group := range l.calls.groups(at) {
		t := group[0].at
		if !upTo(l.plain.After(t-1)) || !ascend(t, l.group(t, group), uint64(skip), each) {
			return more
		}
		next, skip = l.plain.After(t), 0
	}
	upTo(l.plain.Len())
	return more
}

// Descend yields the hits of the ranks [lo,hi), which exist, from the last to the first. It returns
// false if yield has.
func (l *Log) Descend(lo, hi int, yield func(Hit) bool) bool {
	byPlain := func(at int64, seq uint64) bool { return yield(Hit{At: at, Seq: seq}) }
	if l.calls.len() == 0 || lo == hi {
		return l.plain.Descend(lo, hi, byPlain)
	}
	left := hi - lo
	more := true
	at, _ := l.moment(hi - 1)
	end, skip := l.plain.After(at), l.After(at)-hi // what is left without an id; to be skipped
	downTo := func(begin int) bool {
		if n := end - begin; n > 0 {
			k := min(left, n-skip)
			more = l.plain.Descend(end-skip-k, end-skip, byPlain)
			end, skip, left = begin, 0, left-k
		}
		return more && left > 0
	}
	each := func(h Hit) bool {
		left--
		more = yield(h)
		return more && left > 0
	}
	for group := range l.calls.groupsBack(at) {
		t := group[0].at
		if !downTo(l.plain.After(t)) || !descend(t, l.group(t, group), uint64(skip), each) {
			return more
		}
		end, skip = l.plain.After(t-1), 0
	}
	downTo(0)
	return more
}

// CallParts returns how many parts the calls with ids are in.
func (l *Log) CallParts() int {
	if l.calls == nil {
		return 0
	}
	return len(l.calls.chunks)
}

// VisitCalls visits the hits of a part, below CallParts: those of a call with consecutive numbers.
// The ids stay valid.
func (l *Log) VisitCalls(part int, visit func(at int64, id []byte, lo, hi uint64)) {
	for c := range l.calls.chunks[part].all() {
		for _, s := range c.spans {
			visit(c.at, c.id, s.lo, s.hi)
		}
	}
}

// Weight estimates how many bytes the log takes. It takes constant time.
func (l *Log) Weight() int { return l.plain.Weight() + l.calls.weight() }

// Text estimates how many bytes all names have together. It takes constant time.
func (l *Log) Text() int {
	const plainName = 16
	n := l.plain.Len() * plainName
	if l.calls != nil {
		n += l.calls.text
	}
	return n
}

// Packed sets p to the log, whose memory it shares; ok is false if there are several chunks, or
// hits with ids, or none.
func (l *Log) Packed(p *Packed) (ok bool) { return l.calls.len() == 0 && l.plain.Packed(p) }

// Check returns the first invariant of the log that does not hold, or nil.
func (l *Log) Check() error {
	if err := l.plain.Check(); err != nil {
		return err
	}
	return l.calls.check()
}
