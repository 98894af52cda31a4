package list

import "encoding/binary"

// entrySize returns how many bytes an element of n bytes takes in a run.
func entrySize(n int) int {
	front := varintSize(n) + n
	return front + varintSize(front)
}

func varintSize(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// appendEntry appends an element as runs have it.
func appendEntry(dst, element []byte) []byte {
	start := len(dst)
	dst = append(binary.AppendUvarint(dst, uint64(len(element))), element...)
	front := len(dst) - start
	for groups := varintSize(front); groups > 0; groups-- {
		group := byte(front >> (7 * (groups - 1)) & 0x7f)
		if groups < varintSize(front) { // all but the first, which ends the number
			group |= 0x80
		}
		dst = append(dst, group)
	}
	return dst
}

// first returns the first element of entries, and the size of its entry.
func first(entries []byte) (element []byte, size int) {
	n, head := int(entries[0]), 1
	if n >= 0x80 {
		long, width := binary.Uvarint(entries)
		n, head = int(long), width
	}
	end := head + n
	return entries[head:end:end], end + varintSize(end)
}

// lastSize returns the size of the last of the entries.
func lastSize(entries []byte) int {
	front, width := 0, 0
	for {
		group := entries[len(entries)-1-width]
		front |= int(group&0x7f) << (7 * width)
		width++
		if group < 0x80 {
			return front + width
		}
	}
}
