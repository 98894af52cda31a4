package dict

const (
	// maxDepth is the number of bits of a cursor: no bucket has a smaller range.
	maxDepth = 32
	// perSlot is how many entries there must be for each slot of the directory
	// before it doubles. So it stays within 2 bytes an entry, and hashes that
	// agree in too many bits make a chain instead of a giant directory. At
	// this load one bucket in 250 has a chain.
	perSlot = 8
	// sparse is how many entries two buddies have at most when they merge: half a bucket, so that a
	// merged bucket is far from splitting again.
	sparse = slots / 2
)

// slot is the index in the directory of a hash. A shift by 64 gives 0.
func (d *Dict[E]) slot(hash uint64) uint64 { return hash >> (64 - d.depth) }

func (d *Dict[E]) bucket(hash uint64) *bucket[E] { return d.dir[d.slot(hash)] }

// span returns the range of slots [lo,hi) of a bucket of this depth that contains hash.
func (d *Dict[E]) span(hash uint64, depth uint8) (lo, hi uint64) {
	wide := uint64(1) << (d.depth - depth)
	lo = d.slot(hash) &^ (wide - 1)
	return lo, lo + wide
}

// split splits the bucket of hash by the next bit of its entries' hashes. It returns false and does
// nothing if that would take a larger directory than perSlot allows.
func (d *Dict[E]) split(hash uint64) bool {
	left := d.bucket(hash)
	if left.depth == d.depth && !d.double() {
		return false
	}
	lo, hi := d.span(hash, left.depth)
	old := *left
	*left = *newBucket[E](old.depth+1, old.mark())
	right := newBucket[E](old.depth+1, old.mark())
	for i := (lo + hi) / 2; i < hi; i++ {
		d.dir[i] = right
	}
	if left.depth == d.depth {
		d.pairs++
	}
	for b := &old; b != nil; b = b.next {
		for _, e := range b.entries[:b.n] {
			h := d.hashOf(e)
			d.put(d.bucket(h), h, e)
		}
	}
	return true
}

// double duplicates every slot. It is the only step that takes time in proportion to the whole
// table, and it copies one pointer for eight entries.
func (d *Dict[E]) double() bool {
	if d.depth == maxDepth || d.len < perSlot*len(d.dir) {
		return false
	}
	dir := make([]*bucket[E], 2*len(d.dir))
	for i, b := range d.dir {
		dir[2*i], dir[2*i+1] = b, b
	}
	d.dir, d.depth, d.pairs = dir, d.depth+1, 0
	return true
}

// shrink is called when the bucket of hash has lost entries. It merges the bucket with its buddy,
// the other half of the same range, as long as the two are sparse, and frees everything when the
// table is empty.
func (d *Dict[E]) shrink(hash uint64) {
	if d.len == 0 {
		d.dir, d.depth, d.pairs, d.longest = nil, 0, 0, 1
		return
	}
	for d.merge(hash) {
	}
	for d.pairs == 0 && d.depth > 0 {
		d.halve()
	}
}

// merge merges the bucket of hash and its buddy if they are sparse. A bucket with a chain is full,
// so never sparse.
func (d *Dict[E]) merge(hash uint64) bool {
	b := d.bucket(hash)
	if b.depth == 0 || b.n > sparse {
		return false
	}
	buddyHash := hash ^ 1<<(64-b.depth)
	buddy := d.bucket(buddyHash)
	if buddy.depth != b.depth || b.n+buddy.n > sparse {
		return false
	}
	lo, hi := d.span(buddyHash, b.depth)
	for i := lo; i < hi; i++ {
		d.dir[i] = b
	}
	if b.depth == d.depth {
		d.pairs--
	}
	b.depth--
	b.setMark(min(b.mark(), buddy.mark()))
	for i, e := range buddy.entries[:buddy.n] {
		b.put(buddy.tags[i], e)
	}
	return true
}

// halve removes the duplicate of every slot. Both point to the same bucket then. Neighbors in the
// smaller directory that differ are its pairs at full depth.
func (d *Dict[E]) halve() {
	dir := make([]*bucket[E], len(d.dir)/2)
	for i := range dir {
		dir[i] = d.dir[2*i]
		if i%2 == 1 && dir[i] != dir[i-1] {
			d.pairs++
		}
	}
	d.dir, d.depth = dir, d.depth-1
}
