package list

import "fmt"

// Check returns the first invariant of the list that does not hold, or nil.
func (l *List) Check() error {
	n, bytes := 0, 0
	for i := range l.runs() {
		r := &l.runs()[i]
		if err := r.check(); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		if i > 0 && l.runs()[i-1].size()+r.size() <= RunSize/2 {
			return fmt.Errorf("runs %d and %d are not merged", i-1, i)
		}
		if l.recent.index == i && l.recent.rank != n {
			return fmt.Errorf("run %d begins at rank %d, remembered as %d", i, n, l.recent.rank)
		}
		n, bytes = n+int(r.count), bytes+cap(r.buf)
	}
	if n != l.n || bytes != l.bytes || l.recent != (place{}) && l.recent.index >= len(l.runs()) {
		return fmt.Errorf("%d elements in %d bytes, counted as %d in %d; a place at %d",
			n, bytes, l.n, l.bytes, l.recent.rank)
	}
	return nil
}

// check returns the first invariant of a run that does not hold, or nil.
func (r *run) check() error {
	n, at := 0, 0
	for entries := r.entries(); at < len(entries); n++ {
		_, size := first(entries[at:])
		if back := lastSize(entries[:at+size]); back != size {
			return fmt.Errorf("an entry has %d bytes forward and %d backward", size, back)
		}
		at += size
	}
	if n != int(r.count) || n == 0 || n > 1 && r.size() > RunSize {
		return fmt.Errorf("%d elements in %d bytes, counted as %d", n, r.size(), r.count)
	}
	return nil
}
