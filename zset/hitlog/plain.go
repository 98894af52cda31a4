package hitlog

import (
	"slices"
	"sort"
	"unsafe"
)

// plain is hits without ids, in the order of their times and, within a millisecond, of the decimal
// texts of their numbers. The zero value is empty.
type plain struct {
	tail  chunk  // the last chunk, changed in place
	at    int64  // the time of its last entry
	end   uint64 // the number after the last of that entry
	older *older // nil: none
}

// place is a position between hits: in a millisecond, at a cut.
type place struct {
	at  int64
	cut cut
}

// Len returns the number of hits.
func (l *plain) Len() int {
	if l.older == nil {
		return l.tail.n
	}
	return l.older.n + l.tail.n
}

// First returns the time of the first hit, of a log that is not empty.
func (l *plain) First() int64 {
	if l.older == nil {
		return l.tail.first
	}
	return l.older.chunks[0].first
}

// Last returns the time of the last hit, of a log that is not empty.
func (l *plain) Last() int64 { return l.at }

// chunks returns how many chunks there are.
func (l *plain) chunks() int {
	if l.older == nil {
		return 1
	}
	return len(l.older.chunks) + 1
}

func (l *plain) chunk(i int) *chunk {
	if l.older == nil || i == len(l.older.chunks) {
		return &l.tail
	}
	return &l.older.chunks[i]
}

// own returns the chunks before the tail, for changes.
func (l *plain) own() *older {
	if l.older == nil {
		l.older = new(older)
	}
	if l.older.shared {
		mine := *l.older
		mine.chunks, mine.shared = slices.Clone(mine.chunks), false
		l.older = &mine
	}
	return l.older
}

// clone returns a copy of the log as it is now. The two share what neither changes.
func (l *plain) clone() plain {
	mine := *l
	mine.tail.data = slices.Clone(l.tail.data)
	if l.older != nil && !l.older.shared {
		l.older.shared = true
	}
	return mine
}

// Add adds the hits of a millisecond with the numbers from lo up to but not including hi, of which
// there is at least one, none above MaxSeq. Those that are in the log remain.
func (l *plain) Add(at int64, lo, hi uint64) {
	switch {
	case l.tail.n == 0 || at > l.at:
		if l.tail.size() >= maxSize {
			l.seal()
		}
		l.push(at-l.at, lo, hi-lo)
		if l.tail.n == 0 {
			l.tail.first = at
		}
		l.at = at
	case at < l.at || lo < l.end || l.tail.first == at && l.older != nil || l.tail.size() >= maxTail:
		l.insert(at, spans{{lo, hi}})
		return
	case lo == l.end:
		l.extend(hi - lo)
	default:
		l.push(0, lo-l.end-1, hi-lo)
	}
	l.end = hi
	l.tail.n += int(hi - lo)
}

// push appends an entry to the tail.
func (l *plain) push(since int64, lo, n uint64) {
	if l.tail.n == 0 {
		since = 1
	}
	var buf [maxEntry]byte
	l.tail.put(len(l.tail.data), appendEntry(buf[:0], since, lo, n))
}

// extend adds n hits to the last entry.
func (l *plain) extend(n uint64) {
	r := reader{data: l.tail.data}
	since, lo, had, _ := r.decode(int(l.tail.last))
	var buf [maxEntry]byte
	l.tail.put(int(l.tail.last), appendEntry(buf[:0], since, lo, had+n))
}

// seal makes the tail the last of the older chunks, and begins another.
func (l *plain) seal() {
	c := l.tail
	if c.size() > maxSize+maxEntry {
		for _, c := range chunksOf(c.entries(nil)) {
			l.own().add(c)
		}
		l.tail = chunk{}
		return
	}
	c.data, c.head, c.last = slices.Clone(c.data[c.head:]), 0, 0
	l.own().add(c)
	l.tail = chunk{data: l.tail.data[:0]}
}

// insert adds hits of a millisecond wherever they belong.
func (l *plain) insert(at int64, s spans) {
	for len(s) > 0 {
		p := place{at, through(s.first())}
		i := max(0, l.search(func(c *chunk) bool { return c.begins(&p) })-1)
		part := s
		if s = nil; i+1 < l.chunks() && l.chunk(i+1).first == at {
			var buf [few]span
			next, none := before(l.chunk(i+1).start(buf[:0]).first()), cut{}
			part, s = part.without(&next, &every), part.without(&none, &next)
		}
		l.replace(i, i+1, l.chunk(i).with(at, part, nil))
	}
}

// search returns the index of the first chunk for which begins is false; it is true for those
// before.
func (l *plain) search(begins func(*chunk) bool) int {
	if !begins(&l.tail) {
		if l.older == nil {
			return 0
		}
		return sort.Search(len(l.older.chunks), func(i int) bool { return !begins(&l.older.chunks[i]) })
	}
	return l.chunks()
}

// find returns the chunk of the hit of a rank, and its rank there.
func (l *plain) find(rank int) (i, rest int) {
	if o := l.older; o != nil {
		if rank >= o.n {
			return len(o.chunks), rank - o.n
		}
		for ; rank >= o.chunks[i].n; i++ {
			rank -= o.chunks[i].n
		}
	}
	return i, rank
}

// replace replaces the chunks [i,j) by such of other entries, which have the same place in the
// order.
func (l *plain) replace(i, j int, entries []entry) {
	fresh := chunksOf(entries)
	if j < l.chunks() {
		if l.own().replace(i, j, fresh); len(l.older.chunks) == 0 {
			l.older = nil
		}
		return
	}
	if l.older != nil || len(fresh) > 1 {
		o := l.own()
		if len(fresh) == 0 && i > 0 {
			i--
			fresh = []chunk{o.chunks[i]}
		}
		o.replace(i, j-1, fresh[:max(0, len(fresh)-1)])
		if len(o.chunks) == 0 {
			l.older = nil
		}
	}
	if len(fresh) == 0 {
		*l = plain{tail: chunk{data: l.tail.data[:0]}} // its memory is kept
		return
	}
	l.setTail(fresh[len(fresh)-1])
}

// setTail sets the tail to a copy of a chunk.
func (l *plain) setTail(c chunk) {
	c.data = slices.Clone(c.data[c.head:])
	c.head = 0
	for r := c.reader(); r.more(); {
		c.last = uint16(r.i)
		r.next()
		l.at, l.end = r.at, r.hi
	}
	l.tail = c
}

// settle merges a chunk with a neighbor if both are small.
func (l *plain) settle(i int) {
	for j := max(0, i-1); j <= i && j+1 < l.chunks(); j++ {
		left, right := l.chunk(j), l.chunk(j+1)
		if left.size()+right.size() <= maxSize/2 {
			l.replace(j, j+2, joined(left.entries(nil), right.entries(nil)))
			return
		}
	}
}

// trim removes the first k hits of a chunk, which has more, if they are whole groups.
func (l *plain) trim(i, k int) bool {
	n, r := 0, l.chunk(i).reader()
	for n < k || r.inGroup() {
		r.next()
		n += int(r.hi - r.lo)
	}
	if n > k {
		return false
	}
	if l.older != nil && i < len(l.older.chunks) {
		o := l.own()
		o.n -= k
		o.size -= r.i - int(o.chunks[i].head)
	}
	c := l.chunk(i)
	c.n -= k
	c.head = uint16(r.i)
	r.next()
	c.first = r.at
	if i == l.chunks()-1 {
		c.shrink()
	}
	return true
}

// RemoveSpan removes the hits of the ranks [lo,hi), which exist.
func (l *plain) RemoveSpan(lo, hi int) {
	for lo < hi {
		i, rest := l.find(lo)
		j, k := i, 0
		for rest == 0 && j < l.chunks() && k+l.chunk(j).n <= hi-lo {
			k += l.chunk(j).n
			j++
		}
		if j > i {
			l.replace(i, j, nil)
		} else if k = min(hi-lo, l.chunk(i).n-rest); rest > 0 || !l.trim(i, k) {
			l.replace(i, i+1, l.chunk(i).without(rest, rest+k, nil))
		}
		if hi -= k; i > 0 || rest > 0 {
			l.settle(i)
		}
	}
}

// After returns how many hits are at a time or before.
func (l *plain) After(at int64) int {
	switch n := l.Len(); {
	case n == 0 || l.First() > at:
		return 0
	case l.at <= at:
		return n
	}
	i := l.search(func(c *chunk) bool { return c.first <= at }) - 1
	return l.ahead(i) + l.chunk(i).until(at)
}

// Before returns how many hits are before a time, or at it with a number whose text is less than
// the given one.
func (l *plain) Before(at int64, text []byte) int {
	p := place{at, below(text)}
	if l.Len() == 0 {
		return 0
	}
	i := l.search(func(c *chunk) bool { return c.begins(&p) }) - 1
	if i < 0 {
		return 0
	}
	return l.ahead(i) + l.chunk(i).before(&p)
}

// ahead returns how many hits are in the chunks before one.
func (l *plain) ahead(i int) (n int) {
	if o := l.older; o != nil {
		if i == len(o.chunks) {
			return o.n
		}
		for j := range i {
			n += o.chunks[j].n
		}
	}
	return n
}

// Has reports whether a hit is in the log.
func (l *plain) Has(at int64, seq uint64) bool {
	if l.Len() == 0 || at > l.at || at < l.First() || seq > MaxSeq {
		return false
	}
	p := place{at, through(seq)}
	i := l.search(func(c *chunk) bool { return c.begins(&p) }) - 1
	return i >= 0 && l.chunk(i).has(at, seq)
}

// At returns the hit of a rank, which exists.
func (l *plain) At(rank int) (at int64, seq uint64) {
	i, rest := l.find(rank)
	var buf [few]span
	at, s, rest := l.chunk(i).at(rest, buf[:0])
	return at, s.nth(uint64(rest))
}

// TimeAt returns the time of the hit of a rank, which exists.
func (l *plain) TimeAt(rank int) int64 {
	switch rank { // those that decisions ask for most
	case 0:
		return l.First()
	case l.Len() - 1:
		return l.at
	}
	i, rest := l.find(rank)
	return l.chunk(i).timeAt(rest)
}

// Ascend yields the hits of the ranks [lo,hi), which exist, in order. It returns false if yield
// has.
func (l *plain) Ascend(lo, hi int, yield func(at int64, seq uint64) bool) bool {
	left := uint64(hi - lo)
	if left == 0 {
		return true
	}
	i, rest := l.find(lo)
	skip, more := uint64(rest), true
	var buf [few]span
	for ; left > 0; i++ {
		for r := l.chunk(i).reader(); left > 0 && r.more(); {
			s := r.group(buf[:0])
			n := s.count()
			if skip >= n {
				skip -= n
				continue
			}
			s.ascend(skip, func(seq uint64) bool {
				left--
				more = yield(r.at, seq)
				return more && left > 0
			})
			if skip = 0; !more {
				return false
			}
		}
	}
	return true
}

// Descend yields the hits of the ranks [lo,hi), which exist, from the last to the first. It returns
// false if yield has.
func (l *plain) Descend(lo, hi int, yield func(at int64, seq uint64) bool) bool {
	left := uint64(hi - lo)
	if left == 0 {
		return true
	}
	i, rest := l.find(hi - 1)
	skip, more := uint64(l.chunk(i).n-1-rest), true
	for ; left > 0; i-- {
		all := l.chunk(i).entries(nil)
		for left > 0 && len(all) > 0 {
			j := len(all) - 1
			for j > 0 && all[j-1].at == all[j].at {
				j--
			}
			var s spans
			for _, e := range all[j:] {
				s = append(s, e.span)
			}
			at := all[j].at
			all = all[:j]
			if n := s.count(); skip >= n {
				skip -= n
				continue
			}
			s.descend(skip, func(seq uint64) bool {
				left--
				more = yield(at, seq)
				return more && left > 0
			})
			if skip = 0; !more {
				return false
			}
		}
	}
	return true
}

// Parts returns how many parts the log has.
func (l *plain) Parts() int {
	if l.tail.n == 0 {
		return 0
	}
	return l.chunks()
}

// Visit visits the hits of a part, below Parts: those of a time with the numbers from lo up to but
// not including hi, in the order of times.
func (l *plain) Visit(part int, visit func(at int64, lo, hi uint64)) {
	for r := l.chunk(part).reader(); r.more(); {
		r.next()
		visit(r.at, r.lo, r.hi)
	}
}

// Weight estimates how many bytes the log takes. It takes constant time.
func (l *plain) Weight() int {
	n := int(unsafe.Sizeof(*l)) + l.tail.size()*5/4
	if o := l.older; o != nil {
		n += int(unsafe.Sizeof(*o)) + o.size + len(o.chunks)*int(unsafe.Sizeof(chunk{}))
	}
	return n
}

// EndIn returns the number after the last of the hits of a time that are in a row with one in
// [lo,hi); 0: there is none.
func (l *plain) EndIn(at int64, lo, hi uint64) (end uint64) {
	if l.Len() == 0 || at > l.at || at == l.at && lo >= l.end && (l.tail.first < at || l.older == nil) {
		return 0
	}
	i := l.search(func(c *chunk) bool { return c.first < at })
	for i = max(0, i-1); i < l.chunks() && l.chunk(i).first <= at; i++ {
		for r := l.chunk(i).reader(); r.more() && r.at <= at; {
			if r.next(); r.at == at && r.lo < hi && lo < r.hi {
				end = max(end, r.hi)
			}
		}
	}
	return end
}

// NumberAfter returns the number after that of the last hit, if that is of a time; otherwise 0.
func (l *plain) NumberAfter(at int64) uint64 {
	if l.tail.n == 0 || at != l.at {
		return 0
	}
	return l.end
}

// Prefetch loads the log itself into the CPU's caches, for a PrefetchLast soon after. The results
// of both have no meaning.
func (l *plain) Prefetch() int { return l.tail.n + len(l.tail.data) }

// PrefetchLast loads the last hit.
func (l *plain) PrefetchLast() (n int) {
	if size := len(l.tail.data); size > 0 {
		n = int(l.tail.data[size-1])
	}
	if l.older != nil {
		n += l.older.n
	}
	return n
}
