package hitlog

import "fmt"

// Check returns the first invariant of the log that does not hold, or nil.
func (l *Log) Check() error {
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
