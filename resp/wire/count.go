package wire

import (
	"bytes"
	"strconv"
)

// CountReplies returns how many replies there are in b, which must be whole.
func CountReplies(b []byte) (n int) {
	for ; len(b) > 0; n++ {
		b = afterReply(b)
	}
	return n
}

// afterReply returns what follows the first reply in b, with all that the reply contains.
func afterReply(b []byte) []byte {
	for left := 1; left > 0 && len(b) > 0; left-- {
		end := bytes.IndexByte(b, '\n') + 1
		if end < 3 {
			return nil
		}
		kind, line := b[0], b[1:end-2]
		b = b[end:]
		length, _ := strconv.Atoi(string(line))
		switch length = max(length, 0); kind {
		case '*', '~', '>':
			left += length
		case '%':
			left += 2 * length
		case '$', '=', '!':
			if string(line) != "-1" {
				b = b[min(length+2, len(b)):]
			}
		}
	}
	return b
}
