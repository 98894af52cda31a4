package dict

import (
	"iter"
	"math/rand/v2"
)

// prefixes is one past the last cursor: cursors are the top 32 bits of a hash.
const prefixes = 1 << 32

// at returns the bucket that contains the cursor, and the cursors of its beginning and its end. The
// Dict must not be empty.
func (d *Dict[E]) at(cursor uint64) (b *bucket[E], begin, end uint64) {
	b = d.bucket(cursor << 32)
	wide := uint64(1) << (32 - b.depth)
	begin = cursor &^ (wide - 1)
	return b, begin, begin + wide
}

// Scan visits at least count entries, or all that are left, from the cursor on, and returns the
// cursor to continue from. The first cursor is 0, and so is the one returned at the end. All are
// below 2^32; with any other, nothing is visited.
//
// A cursor is a position in the order of hashes, which no split or merge changes. So an entry that
// exists from the first call to the last is visited exactly once, whatever is inserted and removed
// between the calls. An entry that was removed and inserted again may be visited twice. Redis only
// guarantees that such an entry is visited, not that it is visited once.
//
// Visit must not change the Dict.
func (d *Dict[E]) Scan(cursor uint64, count int, visit func(E)) (next uint64) {
	for d.len > 0 && cursor < prefixes {
		b, begin, end := d.at(cursor)
		count -= d.visit(b, cursor, cursor > begin, visit)
		if cursor = end; count <= 0 {
			return end % prefixes
		}
	}
	return 0
}

// visit visits the entries of a chain. If partly is true, the bucket was merged since the cursor
// was returned, and only the entries from the cursor on are visited.
func (d *Dict[E]) visit(b *bucket[E], cursor uint64, partly bool, visit func(E)) (n int) {
	for ; b != nil; b = b.next {
		for _, e := range b.entries[:b.n] {
			if !partly || d.hashOf(e)>>32 >= cursor {
				visit(e)
				n++
			}
		}
	}
	return n
}

// All returns the entries in the order of the directory. The Dict must not be
// changed while they are ranged over.
func (d *Dict[E]) All() iter.Seq[E] {
	return func(yield func(E) bool) {
		if d.len == 0 {
			return
		}
		for cursor := uint64(0); cursor < prefixes; {
			b, _, end := d.at(cursor)
			for ; b != nil; b = b.next {
				for _, e := range b.entries[:b.n] {
					if !yield(e) {
						return
					}
				}
			}
			cursor = end
		}
	}
}

// Random returns one of the entries, each with the same probability; false if there are none.
//
// It draws a slot of the directory and a position in its chain until there is an entry. A bucket is
// accepted only through the first of its slots, and every chain is treated as if it were as long as
// the longest, so all positions are equally likely. A draw succeeds in about one of three cases, or
// of six when there are chains.
func (d *Dict[E]) Random(r *rand.Rand) (E, bool) {
	if d.len == 0 {
		var none E
		return none, false
	}
	for {
		slot, place := r.Uint64N(uint64(len(d.dir))), r.IntN(slots*d.longest)
		b := d.dir[slot]
		if slot&(1<<(d.depth-b.depth)-1) != 0 {
			continue
		}
		for ; b != nil && place >= slots; b = b.next {
			place -= slots
		}
		if b != nil && place < int(b.n) {
			return b.entries[place], true
		}
	}
}
