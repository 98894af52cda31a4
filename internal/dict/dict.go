package dict

// Dict is a set of entries found by hash, an extendible hash table. The caller decides which
// entries are equal: it passes a hash and a predicate. The zero Dict is not usable, see New. A Dict
// is not safe for concurrent use, not even by readers together with one writer.
type Dict[E any] struct {
	dir    []*bucket[E] // 2^depth slots, indexed by the top bits; nil when empty
	hashOf func(E) uint64
	len    int
	// pairs of buckets at full depth: the directory can halve only without them
	pairs   int
	longest int   // no chain has more buckets than this
	depth   uint8 // log2(len(dir))
	fetched uint8 // a sum that makes the reads of fetch count as used
}

// New returns an empty Dict. The hash of an entry is not stored, so hashOf must return it again
// when a bucket splits and when a scan resumes within one.
func New[E any](hashOf func(E) uint64) *Dict[E] {
	return &Dict[E]{hashOf: hashOf, longest: 1}
}

// Len returns the number of entries.
func (d *Dict[E]) Len() int { return d.len }

// Find returns the entry with this hash for which is returns true, and whether there is one. is is
// called only with entries whose hash has the same tag and top bits; it must not change the Dict.
func (d *Dict[E]) Find(hash uint64, is func(E) bool) (E, bool) {
	if d.len != 0 {
		if b, i := d.bucket(hash).find(tag(hash), is); b != nil {
			return b.entries[i], true
		}
	}
	var none E
	return none, false
}

// HashOf returns the hash of an entry.
func (d *Dict[E]) HashOf(e E) uint64 { return d.hashOf(e) }

// Each visits the entries with this hash. Visit must not change the Dict.
func (d *Dict[E]) Each(hash uint64, visit func(E)) {
	d.Find(hash, func(e E) bool {
		if d.hashOf(e) == hash {
			visit(e)
		}
		return false
	})
}

// Insert adds an entry, which must not be there yet.
func (d *Dict[E]) Insert(hash uint64, e E) {
	if d.dir == nil {
		d.dir = []*bucket[E]{newBucket[E](0, unset)}
	}
	for d.bucket(hash).n == slots && d.split(hash) {
	}
	d.put(d.bucket(hash), hash, e)
	d.len++
}

// Replace replaces the entry for which is returns true by e, and reports whether there was one.
// Both must have this hash.
func (d *Dict[E]) Replace(hash uint64, is func(E) bool, e E) bool {
	if d.len == 0 {
		return false
	}
	b, i := d.bucket(hash).find(tag(hash), is)
	if b == nil {
		return false
	}
	b.entries[i] = e
	return true
}

// Remove removes the entry for which is returns true and returns it, and whether there was one.
func (d *Dict[E]) Remove(hash uint64, is func(E) bool) (E, bool) {
	var e E
	if d.len == 0 {
		return e, false
	}
	head := d.bucket(hash)
	b, i := head.find(tag(hash), is)
	if b == nil {
		return e, false
	}
	e = b.entries[i]
	head.cut(b, i)
	d.len--
	d.shrink(hash)
	return e, true
}

func (d *Dict[E]) put(b *bucket[E], hash uint64, e E) {
	if b.put(tag(hash), e) {
		d.longest = max(d.longest, b.length())
	}
}
