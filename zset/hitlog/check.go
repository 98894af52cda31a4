package hitlog

import "fmt"

// Check returns the first invariant of the log that does not hold, or nil.
func (l *plain) Check() error {
	if l.Len() == 0 {
		if l.older != nil || len(l.tail.data) > 0 || l.tail.head > 0 {
			return fmt.Errorf("an empty log has %d chunks, %d bytes", l.chunks(), len(l.tail.data))
		}
		return nil
	}
	n, size := 0, 0
	before := entry{at: -1}
	for i := range l.chunks() {
		c := l.chunk(i)
		if err := c.check(i == l.chunks()-1); err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
		if i < l.chunks()-1 {
			n, size = n+c.n, size+c.size()
		}
		all := c.entries(nil)
		if c.first < before.at || c.first == before.at && i > 0 && !precedes(l.chunk(i-1), c) {
			return fmt.Errorf("chunk %d begins at %d, the one before ends at %d", i, c.first, before.at)
		}
		before = all[len(all)-1]
	}
	if l.older != nil && (n != l.older.n || size != l.older.size || len(l.older.chunks) == 0) {
		return fmt.Errorf("%d hits of %d bytes, counted %d, %d", n, size, l.older.n, l.older.size)
	}
	if l.at != before.at || l.end != before.hi {
		return fmt.Errorf("the last entry ends at %d-%d, not %d-%d", before.at, before.hi, l.at, l.end)
	}
	return nil
}

// precedes reports whether the last hit of a chunk comes before the first of the next.
func precedes(left, right *chunk) bool {
	_, s, i := left.at(left.n-1, nil)
	c := before(right.start(nil).first())
	return c.has(s.nth(uint64(i)))
}

func (c *chunk) check(tail bool) error {
	all := c.entries(nil)
	if c.size() <= 0 || len(all) > maxSpans && c.size() > maxSize+maxEntry && !tail || c.size() > maxTail+maxEntry {
		return fmt.Errorf("%d entries of %d bytes", len(all), c.size())
	}
	n, last := 0, 0
	var before entry
	for r := c.reader(); r.more(); {
		last = r.i
		if r.next(); n == 0 && r.at != c.first {
			return fmt.Errorf("begins at %d, first %d", r.at, c.first)
		}
		switch {
		case r.lo >= r.hi || r.hi > MaxSeq+1:
			return fmt.Errorf("entry of [%d,%d)", r.lo, r.hi)
		case n > 0 && (r.at < before.at || r.at == before.at && r.lo <= before.hi):
			return fmt.Errorf("entry %v after %v", r.entry, before)
		}
		before = r.entry
		n += int(r.hi - r.lo)
	}
	if n != c.n || tail && last != int(c.last) {
		return fmt.Errorf("%d hits, n %d; last entry at %d, last %d", n, c.n, last, c.last)
	}
	return nil
}

func (l *calls) check() error {
	if l == nil {
		return nil
	}
	var n, count, text int
	var before call
	for i := range l.chunks {
		c := &l.chunks[i]
		had := count
		here := 0
		for one := range c.all() {
			switch {
			case here == 0 && one.at != c.first:
				return fmt.Errorf("calls: begin at %d, first %d", one.at, c.first)
			case count > 0 && before.compare(one.at, one.id) >= 0:
				return fmt.Errorf("calls: %d %q after %d %q", one.at, one.id, before.at, before.id)
			case len(one.spans) == 0 || one.spans[0].lo == 0 || one.spans[len(one.spans)-1].hi > MaxNumber+1:
				return fmt.Errorf("calls: %d %q has %v", one.at, one.id, one.spans)
			}
			here, count, text = here+int(one.count()), count+1, text+one.weight()
			before = call{at: one.at, id: one.id}
		}
		if here != c.n || count == had || before.at != c.last {
			return fmt.Errorf("calls: %d hits up to %d, counted %d, %d", here, before.at, c.n, c.last)
		}
		if n != l.ahead(i) {
			return fmt.Errorf("calls: %d hits before a chunk, counted %d", n, l.ahead(i))
		}
		n += here
	}
	if n != l.n || count != l.count || text != l.text || l.index != nil && l.index.Len() != count {
		return fmt.Errorf("calls: %d of %d hits, %d bytes, not %d, %d, %d", count, n, text, l.count, l.n, l.text)
	}
	return nil
}
