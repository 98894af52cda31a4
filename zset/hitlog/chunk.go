package hitlog

import (
	"encoding/binary"
	"math"
	"slices"
)

const (
	// From maxSize bytes on a chunk is full, but for hits of the tail's last millisecond: they are
	// appended to up to maxTail, and spread over chunks later. A lookup there decodes all of it.
	maxSize = 256
	maxTail = 1 << 10
	// A group is divided if it has more spans. Of a smaller one, both parts may have as many.
	maxSpans = 64
)

// chunk is consecutive hits, encoded. An entry is the hits of one millisecond whose numbers are
// consecutive:
//
//	uvarint: ms since the entry before × 2, + 1 unless both numbers below are 0
//	uvarint: first number × 2, + 1 unless the number below is 0
//	uvarint: count - 1
//
// The entries of one millisecond are a group. Those after its first have 0 ms, and the number is
// the distance to the smallest that would be possible. The ms of the first entry of a chunk count
// nothing: its time is in first.
type chunk struct {
	first int64  // the time of the first entry
	n     int    // hits
	data  []byte // no entries only in an empty log
	head  uint16 // where the first entry begins: those before it were removed
	last  uint16 // where the last entry begins; only the tail of a log knows
}

func (c *chunk) size() int { return len(c.data) - int(c.head) }

// entry is the hits of a millisecond with the numbers of a span.
type entry struct {
	at int64
	span
}

// reader reads entries. The current one is in the fields at and span.
type reader struct {
	data []byte
	i    int // offset of the next entry
	entry
}

// reader returns a reader before the first entry.
func (c *chunk) reader() reader {
	r := reader{data: c.data, i: int(c.head)}
	if r.more() {
		since, _ := r.uvarint(r.i)
		r.at = c.first - int64(since>>1)
	}
	return r
}

func (r *reader) uvarint(i int) (n uint64, next int) {
	if b := r.data[i]; b < 0x80 {
		return uint64(b), i + 1
	}
	n, size := binary.Uvarint(r.data[i:])
	return n, i + size
}

// more reports whether there is another entry.
func (r *reader) more() bool { return r.i < len(r.data) }

// inGroup reports whether the next entry is in the group of the current one.
func (r *reader) inGroup() bool { return r.i < len(r.data) && r.data[r.i] <= 1 }

// next reads the next entry.
func (r *reader) next() {
	since, lo, n, i := r.decode(r.i)
	if since == 0 {
		lo += r.hi + 1
	}
	r.i, r.at, r.lo, r.hi = i, r.at+since, lo, lo+n
}

// decode returns what appendEntry was given for the entry at an offset, and the offset behind it.
func (r *reader) decode(i int) (since int64, lo, n uint64, next int) {
	first, i := r.uvarint(i)
	n = 1
	if first&1 != 0 {
		if lo, i = r.uvarint(i); lo&1 != 0 {
			n, i = r.uvarint(i)
			n++
		}
		lo >>= 1
	}
	return int64(first >> 1), lo, n, i
}

// plain reads up to n entries of one hit with the number 0, up to a time, as long as they take a
// byte each: most do. It returns how many it has read.
func (r *reader) plain(n int, until int64) (read int) {
	data, at := r.data[r.i:], r.at
	data = data[:min(n, len(data))]
	for read < len(data) {
		b := data[read]
		if b&0x81 != 0 || b == 0 || at+int64(b>>1) > until {
			break
		}
		at += int64(b >> 1)
		read++
	}
	if read > 0 {
		r.i, r.at, r.lo, r.hi = r.i+read, at, 0, 1
	}
	return read
}

// group reads the next group, and appends its spans.
func (r *reader) group(s spans) spans {
	r.next()
	s = append(s, r.span)
	for r.inGroup() {
		r.next()
		s = append(s, r.span)
	}
	return s
}

// few is for how many spans of a group there is room on the stack.
const few = 16

// appendEntry appends an entry that is since ms after the one before. lo is its first number or,
// in the same group, the distance.
func appendEntry(data []byte, since int64, lo, n uint64) []byte {
	if lo == 0 && n == 1 {
		return binary.AppendUvarint(data, uint64(since)<<1)
	}
	data = binary.AppendUvarint(data, uint64(since)<<1|1)
	if n == 1 {
		return binary.AppendUvarint(data, lo<<1)
	}
	data = binary.AppendUvarint(data, lo<<1|1)
	return binary.AppendUvarint(data, n-1)
}

// entries appends the entries of the chunk.
func (c *chunk) entries(all []entry) []entry {
	for r := c.reader(); r.more(); {
		r.next()
		all = append(all, r.entry)
	}
	return all
}

// encoded returns a chunk of entries.
func encoded(entries []entry) (c chunk) {
	c.first = entries[0].at
	var before entry
	for i, e := range entries {
		c.last = uint16(len(c.data))
		c.n += int(e.hi - e.lo)
		switch {
		case i == 0:
			c.data = appendEntry(c.data, 1, e.lo, e.hi-e.lo)
		case e.at == before.at:
			c.data = appendEntry(c.data, 0, e.lo-before.hi-1, e.hi-e.lo)
		default:
			c.data = appendEntry(c.data, e.at-before.at, e.lo, e.hi-e.lo)
		}
		before = e
	}
	return c
}

// maxEntry is how many bytes an entry takes at most.
const maxEntry = 32

// put writes an encoded entry at an offset of the tail, where data ends or its last entry begins.
func (c *chunk) put(i int, e []byte) {
	c.data = c.data[:i]
	if i+len(e) > cap(c.data) {
		c.room(len(e))
	}
	c.last = uint16(len(c.data))
	c.data = append(c.data, e...)
}

// room makes room for more bytes: it moves the entries down, if that frees enough, otherwise to a
// larger array.
func (c *chunk) room(more int) {
	const little = 128 // is quickly moved
	size := c.size() + more
	array := c.data[:0]
	if size > cap(c.data) || int(c.head) < len(c.data)/8 && size > little {
		array = slices.Grow([]byte(nil), size+size/4)
	}
	c.data = append(array, c.data[c.head:]...)
	c.head = 0
}

// shrink moves the entries to a smaller array if most of it is empty.
func (c *chunk) shrink() {
	const little = 64
	if size := c.size(); cap(c.data) > little && size < cap(c.data)/4 {
		c.last -= c.head
		c.data = append(slices.Grow([]byte(nil), size+size/4), c.data[c.head:]...)
		c.head = 0
	}
}

// start returns the spans of the first group.
func (c *chunk) start(s spans) spans {
	r := c.reader()
	return r.group(s)
}

// begins reports whether the first hit of the chunk is before a place.
func (c *chunk) begins(p *place) bool {
	if c.first != p.at {
		return c.first < p.at
	}
	for r := c.reader(); ; {
		if r.next(); (spans{r.span}).before(&p.cut) > 0 {
			return true
		}
		if !r.inGroup() {
			return false
		}
	}
}

// before returns how many hits are before a place.
func (c *chunk) before(p *place) (n int) {
	for r := c.reader(); r.more(); {
		r.next()
		switch {
		case r.at < p.at:
			n += int(r.hi - r.lo)
		case r.at == p.at:
			n += int(spans{r.span}.before(&p.cut))
		default:
			return n
		}
	}
	return n
}

// until returns how many hits are at a time or before.
func (c *chunk) until(at int64) (n int) {
	for r := c.reader(); ; {
		n += r.plain(math.MaxInt, at)
		if !r.more() {
			return n
		}
		if r.next(); r.at > at {
			return n
		}
		n += int(r.hi - r.lo)
	}
}

// timeAt returns the time of the i-th hit.
func (c *chunk) timeAt(i int) int64 {
	for r := c.reader(); ; {
		if i -= r.plain(i+1, math.MaxInt64); i < 0 {
			return r.at
		}
		r.next()
		if i -= int(r.hi - r.lo); i < 0 {
			return r.at
		}
	}
}

// has reports whether a hit is in the chunk.
func (c *chunk) has(at int64, seq uint64) bool {
	for r := c.reader(); r.more(); {
		if r.next(); r.at > at {
			break
		}
		if r.at == at && r.lo <= seq && seq < r.hi {
			return true
		}
	}
	return false
}

// at returns the group of the i-th hit, and its index in it.
func (c *chunk) at(i int, buf spans) (at int64, s spans, rest int) {
	for r := c.reader(); ; {
		s = r.group(buf[:0])
		if n := int(s.count()); i < n {
			return r.at, s, i
		} else {
			i -= n
		}
	}
}

// without returns the entries of the chunk without its hits [lo,hi).
func (c *chunk) without(lo, hi int, all []entry) []entry {
	var buf [few]span
	for r := c.reader(); r.more(); {
		s := r.group(buf[:0])
		n := int(s.count())
		from, to := min(max(lo, 0), n), min(max(hi, 0), n)
		if from < to {
			s = s.without(cutAt(s, from), cutAt(s, to))
		}
		lo, hi = lo-n, hi-n
		all = appendGroup(all, r.at, s)
	}
	return all
}

// cutAt returns the cut before the i-th number.
func cutAt(s spans, i int) *cut {
	c := every
	if i < int(s.count()) {
		c = before(s.nth(uint64(i)))
	}
	return &c
}

func appendGroup(all []entry, at int64, s spans) []entry {
	for _, x := range s {
		all = append(all, entry{at, x})
	}
	return all
}

// with returns the entries of the chunk and others of one millisecond.
func (c *chunk) with(at int64, added spans, all []entry) []entry {
	var buf [few]span
	done := false
	for r := c.reader(); r.more(); {
		s := r.group(buf[:0])
		if !done && r.at >= at {
			if done = true; r.at == at {
				s = s.union(added)
			} else {
				all = appendGroup(all, at, added)
			}
		}
		all = appendGroup(all, r.at, s)
	}
	if !done {
		all = appendGroup(all, at, added)
	}
	return all
}

// halves splits entries of a full chunk. Both parts have some.
func halves(entries []entry) (left, right []entry) {
	k := len(entries) / 2
	for k < len(entries) && k > 0 && entries[k].at == entries[k-1].at {
		k++
	}
	if k == len(entries) {
		for k = len(entries) / 2; k > 0 && entries[k].at == entries[k-1].at; k-- {
		}
	}
	if k > 0 {
		return entries[:k], entries[k:]
	}
	var s spans
	for _, e := range entries {
		s = append(s, e.span)
	}
	c, at := s.middle(), entries[0].at
	none := cut{}
	return appendGroup(nil, at, s.without(&c, &every)), appendGroup(nil, at, s.without(&none, &c))
}

// joined returns the entries of two neighbors.
func joined(left, right []entry) []entry {
	last := left[len(left)-1]
	if last.at != right[0].at {
		return slices.Concat(left, right)
	}
	i := slices.IndexFunc(left, func(e entry) bool { return e.at == last.at })
	j := 0
	var a, b spans
	for _, e := range left[i:] {
		a = append(a, e.span)
	}
	for ; j < len(right) && right[j].at == last.at; j++ {
		b = append(b, right[j].span)
	}
	return slices.Concat(appendGroup(left[:i:i], last.at, a.union(b)), right[j:])
}

// chunksOf returns chunks of entries, none of them too large.
func chunksOf(entries []entry) (all []chunk) {
	if len(entries) == 0 {
		return nil
	}
	c := encoded(entries)
	if c.size() <= maxSize || len(entries) <= maxSpans && entries[0].at == entries[len(entries)-1].at {
		return []chunk{c}
	}
	left, right := halves(entries)
	return append(chunksOf(left), chunksOf(right)...)
}

// older is the chunks before the tail. Their data never changes.
type older struct {
	n      int // hits
	size   int // bytes of data
	chunks []chunk
	shared bool // with a clone: chunks is copied before it is changed
}

// add adds a chunk at the end.
func (o *older) add(c chunk) {
	o.chunks = append(o.chunks, c)
	o.n += c.n
	o.size += c.size()
}

// replace replaces the chunks [i,j).
func (o *older) replace(i, j int, fresh []chunk) {
	for k := i; k < j; k++ {
		o.n -= o.chunks[k].n
		o.size -= o.chunks[k].size()
	}
	for k := range fresh {
		o.n += fresh[k].n
		o.size += fresh[k].size()
	}
	if i == 0 && len(fresh) == 0 {
		clear(o.chunks[:j])
		o.chunks = o.chunks[j:]
		return
	}
	o.chunks = slices.Replace(o.chunks, i, j, fresh...)
}
