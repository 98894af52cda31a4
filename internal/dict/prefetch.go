package dict

import "encoding/binary"

// Prefetch loads the tags of a hash's bucket from memory, for a Guess or Find soon after. The
// result has no meaning, but the caller must use it so that the compiler does not remove the load.
//
// To find several entries, call Prefetch for all of them first, then Guess for all: the loads then
// overlap. This is group prefetching (Chen, Ailamaki, Gibbons, Mowry, Improving Hash Join
// Performance through Prefetching, 2004).
func (d *Dict[E]) Prefetch(hash uint64) int {
	if d.len == 0 {
		return 0
	}
	return int(d.bucket(hash).n)
}

// Guess returns the entry that Find probably returns, without comparing it; it may be another one,
// and is mostly the zero value if Find finds none. No branch in it depends on memory that is being
// loaded, so a processor can run several calls at once.
func (d *Dict[E]) Guess(hash uint64) (e E) {
	if d.len == 0 {
		return e
	}
	b := d.bucket(hash)
	i := first(matches(binary.LittleEndian.Uint64(b.tags[:8]), tag(hash)))
	j := first(matches(binary.LittleEndian.Uint64(b.tags[8:]), tag(hash)))
	i += j & -(i / 8) // j counts if i is 8
	var none E
	if e = b.entries[i%slots]; i == slots { // another one
		e = none
	}
	return e
}

// Full reports whether the bucket of a hash is full, so that Insert may split it.
func (d *Dict[E]) Full(hash uint64) bool { return d.len != 0 && d.bucket(hash).n == slots }

// InBucket visits the entries of the bucket of a hash, the first 16 of them.
func (d *Dict[E]) InBucket(hash uint64, visit func(E)) {
	if d.len == 0 {
		return
	}
	b := d.bucket(hash)
	for _, e := range b.entries[:b.n] {
		visit(e)
	}
}
