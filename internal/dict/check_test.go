package dict

import (
	"fmt"
	"math/bits"
)

// check returns the first invariant that does not hold.
func (d *Dict[E]) check() error {
	if d.len == 0 {
		if d.dir != nil || d.depth != 0 || d.pairs != 0 {
			return fmt.Errorf("empty, yet the directory has %d slots, depth %d, %d pairs", len(d.dir), d.depth, d.pairs)
		}
		return nil
	}
	if bits.Len(uint(len(d.dir))) != int(d.depth)+1 || bits.OnesCount(uint(len(d.dir))) != 1 {
		return fmt.Errorf("directory of %d slots, depth %d", len(d.dir), d.depth)
	}
	total, atFullDepth, longest := 0, 0, 0
	for lo := 0; lo < len(d.dir); {
		b := d.dir[lo]
		if b.depth > d.depth {
			return fmt.Errorf("slot %d: bucket of depth %d in a directory of depth %d", lo, b.depth, d.depth)
		}
		wide := 1 << (d.depth - b.depth)
		if lo%wide != 0 {
			return fmt.Errorf("slot %d: bucket of %d slots is not aligned", lo, wide)
		}
		for i := lo; i < lo+wide; i++ {
			if d.dir[i] != b {
				return fmt.Errorf("slot %d: not the bucket of slot %d", i, lo)
			}
		}
		n, err := d.checkChain(b, uint64(lo))
		if err != nil {
			return fmt.Errorf("slot %d: %w", lo, err)
		}
		if buddy := d.dir[lo^wide&(len(d.dir)-1)]; buddy != b && buddy.depth == b.depth && n+int(buddy.n) <= sparse {
			return fmt.Errorf("slot %d: sparse buddies of %d and %d entries", lo, n, buddy.n)
		}
		if b.depth == d.depth && d.depth > 0 {
			atFullDepth++
		}
		total += n
		longest = max(longest, b.length())
		lo += wide
	}
	switch {
	case total != d.len:
		return fmt.Errorf("%d entries, len %d", total, d.len)
	case atFullDepth != 2*d.pairs:
		return fmt.Errorf("%d buckets at full depth, %d pairs", atFullDepth, d.pairs)
	case d.pairs == 0 && d.depth > 0:
		return fmt.Errorf("no bucket at the full depth %d", d.depth)
	case longest > d.longest:
		return fmt.Errorf("a chain of %d, longest %d", longest, d.longest)
	}
	return nil
}

// checkChain checks the buckets of one slot and counts their entries.
func (d *Dict[E]) checkChain(head *bucket[E], slot uint64) (total int, err error) {
	place := 0
	for b := head; b != nil; b = b.next {
		if b.n == 0 && b != head || b.n < slots && place != 1 && head.next != nil {
			return 0, fmt.Errorf("bucket %d of a chain holds %d entries", place, b.n)
		}
		for i, e := range b.entries[:b.n] {
			h := d.hashOf(e)
			if d.bucket(h) != head {
				return 0, fmt.Errorf("hash %x belongs to slot %d, is in %d", h, d.slot(h), slot)
			}
			if b.tags[i] != tag(h) {
				return 0, fmt.Errorf("hash %x has tag %x", h, b.tags[i])
			}
		}
		total += int(b.n)
		place++
	}
	return total, nil
}
