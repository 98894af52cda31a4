package diagnostics

import (
	"strconv"
	"strings"
)

// AppendCall appends a call as MONITOR shows it. now is Unix ms; address is that of the client.
func AppendCall(b []byte, now int64, db int, address string, words [][]byte) []byte {
	b = append(b, '+')
	b = strconv.AppendInt(b, now/1000, 10)
	b = append(b, '.')
	for unit := int64(100_000); unit > 0; unit /= 10 {
		b = append(b, byte('0'+now%1000*1000/unit%10))
	}
	b = append(b, " ["...)
	b = strconv.AppendInt(b, int64(db), 10)
	b = append(b, ' ')
	b = append(b, address...)
	b = append(b, ']')
	for _, word := range words {
		b = append(b, ' ')
		b = appendQuoted(b, word)
	}
	return append(b, "\r\n"...)
}

// appendQuoted appends a word in quotes, with the escapes of Redis.
func appendQuoted(b, word []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range word {
		switch {
		case c == '\\' || c == '"':
			b = append(b, '\\', c)
		case ' ' <= c && c <= '~':
			b = append(b, c)
		default:
			if i := strings.IndexByte("\n\r\t\a\b", c); i >= 0 {
				b = append(b, '\\', "nrtab"[i])
			} else {
				b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
			}
		}
	}
	return append(b, '"')
}
