package rdb

// maxInflation is by how much LZF can compress: 264 bytes to three.
const maxInflation = 88

// maxPart is the largest number of bytes that a part of LZF makes.
const maxPart = 264

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
		made := len(out)
		if out, b = inflatePart(out, b, size-made); len(out) == made {
			return nil
		}
	}
	if len(out) != size {
		return nil
	}
	return out
}

// inflatePart appends what the first part of b makes to out, at most most bytes, and returns the
// rest of b. It appends nothing if the part is wrong.
func inflatePart(out, b []byte, most int) (made, rest []byte) {
	if len(b) == 0 {
		return out, b
	}
	head := int(b[0])
	b = b[1:]
	if head < 1<<5 {
		n := head + 1
		if n > len(b) || n > most {
			return out, b
		}
		return append(out, b[:n]...), b[n:]
	}
	n := head>>5 + 2
	if head>>5 == 7 {
		if len(b) == 0 {
			return out, b
		}
		n += int(b[0])
		b = b[1:]
	}
	if len(b) == 0 {
		return out, b
	}
	from := len(out) - (head&0x1f<<8 | int(b[0])) - 1
	b = b[1:]
	if from < 0 || n > most {
		return out, b
	}
	for ; n > 0; n-- { // byte by byte: the source may overlap the destination
		out = append(out, out[from])
		from++
	}
	return out, b
}
