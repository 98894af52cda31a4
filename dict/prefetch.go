package dict

import "encoding/binary"

// Prefetch has the tags of a hash's bucket fetched from memory, for a Guess or
// Find soon after. What it returns means nothing; it is to be used in some way,
// lest a compiler leave the fetching out.
//
// Who is to find several entries does Prefetch for all of them first, then Guess
// for all: the memory they wait for is then fetched side by side. That is group
// prefetching (Chen, Ailamaki, Gibbons, Mowry, Improving Hash Join Performance
// through Prefetching, 2004).
func (d *Dict[E]) Prefetch(hash uint64) int {
	if d.len == 0 {
		return 0
	}
	return int(d.bucket(hash).n)
}

// Guess returns the entry that Find most likely returns, without a look at it,
// or another, or the zero value. No branch in it hangs on what is fetched from
// memory, so a processor can be busy with several at once.
func (d *Dict[E]) Guess(hash uint64) (e E) {
	if d.len == 0 {
		return e
	}
	b := d.bucket(hash)
	i := first(matches(binary.LittleEndian.Uint64(b.tags[:8]), tag(hash)))
	j := 8 + first(matches(binary.LittleEndian.Uint64(b.tags[8:]), tag(hash)))
	if i == 8 { // a conditional move
		i = j
	}
	return b.entries[i%slots]
}
