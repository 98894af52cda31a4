package rdb

// mostInflated is how many bytes LZF can make of one: 264 of three.
const mostInflated = 88

// inflate undoes LZF, whose parts are, with as many bytes as n says, and l and n one and two less than what they mean,
//
//	000nnnnn · bytes                       as they are
//	lllddddd · dddddddd                    those that stand d+1 bytes before, 3 to 8
//	111ddddd · llllllll · dddddddd         9 to 264
//
// It gives nil unless these are exactly size bytes.
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
		for ; n > 0; n-- { // byte by byte: it may reach into what it makes
			out = append(out, out[from])
			from++
		}
	}
	if len(out) != size {
		return nil
	}
	return out
}
