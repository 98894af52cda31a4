package dict

// Mark records that an entry with this hash is due at the time at. It lowers the mark of the hash's
// bucket, so that no entry of a bucket is due before its mark: Sweep skips buckets whose mark is in
// the future. Marks have 48 signed bits (in milliseconds, 4,000 years either side of the epoch).
// Times beyond are rounded to the last one; MaxInt64 means never.
func (d *Dict[E]) Mark(hash uint64, at int64) {
	if d.len == 0 {
		return
	}
	if b := d.bucket(hash); markOf(at) < b.mark() {
		b.setMark(markOf(at))
	}
}

// AnyTime as the now of Sweep makes it visit all buckets except those without an entry that is ever
// due.
const AnyTime = latest

// Sweep checks up to maxBuckets buckets from the cursor on, and visits the entries of those whose
// mark is not after now. Visit returns when the entry is due next, MaxInt64 for never, or that the
// entry is to be removed; from that the bucket gets an exact mark. Sweep returns the cursor to
// continue from, 0 at the end, and the number of entries visited. Cursors are those of Scan; merged
// buckets may be visited again.
//
// Visit must not change the Dict.
func (d *Dict[E]) Sweep(cursor uint64, now int64, maxBuckets int,
	visit func(E) (due int64, drop bool)) (next uint64, visited int) {
	d.fetch(cursor, maxBuckets)
	for ; maxBuckets > 0 && d.len > 0 && cursor < prefixes; maxBuckets-- {
		b, begin, end := d.at(cursor)
		if b.mark() <= now {
			visited += d.sweep(b, visit)
			d.shrink(begin << 32)
		}
		cursor = end
	}
	if d.len == 0 {
		return 0, visited
	}
	return cursor % prefixes, visited
}

// fetch reads from the next buckets, which loads them side by side: Sweep learns only from one
// where the next begins. Most are referred to by one or two slots of the directory.
func (d *Dict[E]) fetch(cursor uint64, buckets int) {
	if d.len == 0 || cursor >= prefixes {
		return
	}
	first := int(d.slot(cursor << 32))
	for _, b := range d.dir[first:min(first+2*min(buckets, maxFetched), len(d.dir))] {
		d.fetched += b.n
	}
}

// maxFetched is how many buckets fetch loads at most: more would leave the cache again.
const maxFetched = 32

// sweep visits a chain from its second bucket on and the head last, each from
// its last entry to its first: an entry that fills a hole was visited before.
func (d *Dict[E]) sweep(head *bucket[E], visit func(E) (int64, bool)) (visited int) {
	mark := int64(unset)
	walk := func(b *bucket[E]) {
		for i := int(b.n) - 1; i >= 0; i-- {
			visited++
			due, drop := visit(b.entries[i])
			if drop {
				head.cut(b, i)
				d.len--
				continue
			}
			mark = min(mark, markOf(due))
		}
	}
	for b := head.next; b != nil; b = b.next {
		walk(b)
	}
	walk(head)
	head.setMark(mark)
	return visited
}
