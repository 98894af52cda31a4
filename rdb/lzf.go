package rdb

// maxInflation is by how much LZF can compress: 264 bytes to three.
const maxInflation = 88

// inflate decompresses LZF. Its parts are, where n is the number of bytes less one, l the length
// less two, and d the distance less one:
//
//	000nnnnn · bytes                       n+1 literal bytes
//	lllddddd · dddddddd                    3 to 8 bytes copied from d+1 bytes before
//	111ddddd · llllllll · dddddddd         9 to 264 bytes, likewise
//
// It returns nil unless the result has exactly size bytes.
func inflate(b []byte, size int) []byte {
	out := make([]byte, 0, size)
	for len(b) > 0 {
		head := int(b[0])
		b = b[1:]
		if head < 1<<5 {
			n := head + 1
			if n > len(b) || n > size-len(out) {
				return nil
			}
			out, b = append(out, b[:n]...), b[n:]
			continue
		}
		n := head>>5 + 2
		if head>>5 == 7 {
			if len(b) == 0 {
				return nil
			}
			n += int(b[0])
			b = b[1:]
		}
		if len(b) == 0 {
			return nil
		}
		from := len(out) - (head&0x1f<<8 | int(b[0])) - 1
		b = b[1:]
		if from < 0 || n > size-len(out) {
			return nil
		}
		for ; n > 0; n-- { // byte by byte: the source may overlap the destination
			out = append(out, out[from])
			from++
		}
	}
	if len(out) != size {
		return nil
	}
	return out
}
