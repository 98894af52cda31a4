package grammar

import "strings"

// Split appends the words of a line without its line end: an inline command, as typed in a
// terminal, or a line of a configuration file. A blank line has no words. ok is false if the quotes
// are unbalanced. The words overwrite the line: no word is longer than its source.
//
// The rules are those of Redis' sdssplitargs:
//
//	word   ends at a space, tab, CR or LF; a quote may open inside it
//	"..."  has the escapes \n \r \t \b \a \xHH; a backslash before any other byte yields that byte
//	'...'  has the escape \' only
//	after a closing quote comes a space or the end of the line
//
// A form feed or vertical tab is space between words and after a quote, but does not end a word.
func Split(words [][]byte, line []byte) (_ [][]byte, ok bool) {
	for line = skipSpace(line); len(line) > 0; line = skipSpace(line) {
		var word []byte
		if word, line, ok = appendWord(line[:0], line); !ok {
			return words, false
		}
		words = append(words, word[:len(word):len(word)])
	}
	return words, true
}

// appendWord appends the word at the beginning of line, and returns the rest of the line.
func appendWord(dst, line []byte) (word, after []byte, ok bool) {
	for i, c := range line {
		switch c {
		case ' ', '\t', '\r', '\n':
			return dst, line[i:], true
		case '"':
			return appendDoubleQuoted(dst, line[i+1:])
		case '\'':
			return appendSingleQuoted(dst, line[i+1:])
		}
		dst = append(dst, c)
	}
	return dst, nil, true
}

// appendSingleQuoted appends the bytes before the closing quote.
func appendSingleQuoted(dst, line []byte) (word, after []byte, ok bool) {
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\'':
			after = line[i+1:]
			return dst, after, endsWord(after)
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == '\'':
			i++
		}
		dst = append(dst, line[i])
	}
	return dst, nil, false
}

// appendDoubleQuoted appends the bytes before the closing quote, with escapes resolved.
func appendDoubleQuoted(dst, line []byte) (word, after []byte, ok bool) {
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '"':
			after = line[i+1:]
			return dst, after, endsWord(after)
		case c == '\\' && i+1 < len(line):
			var n int
			c, n = unescape(line[i+1:])
			i += n
		}
		dst = append(dst, c)
	}
	return dst, nil, false
}

// unescape returns the byte of an escape, and the length of the escape without its backslash.
func unescape(s []byte) (c byte, n int) {
	if s[0] == 'x' && len(s) > 2 {
		high, ok1 := HexDigit(s[1])
		low, ok2 := HexDigit(s[2])
		if ok1 && ok2 {
			return high<<4 | low, 3
		}
	}
	if i := strings.IndexByte("nrtba", s[0]); i >= 0 {
		return "\n\r\t\b\a"[i], 1
	}
	return s[0], 1
}

func endsWord(after []byte) bool { return len(after) == 0 || isSpace(after[0]) }

func skipSpace(line []byte) []byte {
	for len(line) > 0 && isSpace(line[0]) {
		line = line[1:]
	}
	return line
}

// isSpace is C's isspace in the C locale.
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
