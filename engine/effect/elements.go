package effect

import (
	"encoding/binary"
	"iter"
)

// AppendElement appends an element as Value of an Insert has it: its length as a varint and its
// bytes.
func AppendElement[T string | []byte](dst []byte, element T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(element))), element...)
}

// Elements yields the elements in the Value of an Insert, up to the first that is damaged. They
// alias it.
func Elements(value []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(value) > 0 {
			n, size := binary.Uvarint(value)
			if size <= 0 || n > uint64(len(value)-size) {
				return
			}
			end := size + int(n)
			if !yield(value[size:end:end]) {
				return
			}
			value = value[end:]
		}
	}
}

// CountElements returns how many elements the Value of an Insert has; ok is false if it is damaged.
func CountElements(value []byte) (n int, ok bool) {
	read := 0
	for e := range Elements(value) {
		n++
		read += uvarintSize(len(e)) + len(e)
	}
	return n, read == len(value)
}

func uvarintSize(n int) (size int) {
	var b [binary.MaxVarintLen64]byte
	return binary.PutUvarint(b[:], uint64(n))
}
