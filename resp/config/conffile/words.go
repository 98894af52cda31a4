package conffile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrQuotes is the error of a line that cannot be split into words.
var ErrQuotes = errors.New("the quotes are not balanced, or something follows a closing quote")

// splitLine returns the words of a line; none for a comment or an empty line.
func splitLine(line string) ([]string, error) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return nil, nil
	}
	return Split(line)
}

// Split splits a line into words as Redis does. It resolves \n \r \t \b \a \\ \" and \xHH within
// "…", and \' within '…'. A closing quote ends the word.
func Split(line string) (words []string, err error) {
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return words, nil
		}
		word, next, err := splitWord(line, i)
		if err != nil {
			return nil, err
		}
		words, i = append(words, word), next
	}
}

// splitWord returns the word that begins at i, and the index of its end.
func splitWord(line string, i int) (word string, end int, err error) {
	var b []byte
	for quote := byte(0); i < len(line); i++ {
		switch c := line[i]; {
		case quote == 0 && isSpace(c):
			return string(b), i, nil
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			if i+1 < len(line) && !isSpace(line[i+1]) {
				return "", i, ErrQuotes
			}
			return string(b), i + 1, nil
		case quote == '"' && c == '\\' && i+1 < len(line):
			raw, used := unescape(line[i+1:])
			b = append(b, raw)
			i += used
		case quote == '\'' && c == '\\' && i+1 < len(line) && line[i+1] == '\'':
			b = append(b, '\'')
			i++
		default:
			b = append(b, c)
		}
		if i+1 >= len(line) && quote != 0 {
			return "", i, ErrQuotes
		}
	}
	return string(b), i, nil
}

// unescape returns the byte of an escape, and its length without the backslash.
func unescape(rest string) (raw byte, used int) {
	if rest[0] == 'x' && len(rest) >= 3 {
		if n, err := strconv.ParseUint(rest[1:3], 16, 8); err == nil {
			return byte(n), 3
		}
	}
	if i := strings.IndexByte("nrtba", rest[0]); i >= 0 {
		return "\n\r\t\b\a"[i], 1
	}
	return rest[0], 1
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// Quote returns a word in the form that Split reads back.
func Quote(word string) string {
	if word != "" && word[0] != '#' && !strings.ContainsFunc(word, needsQuotes) {
		return word
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(word) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func needsQuotes(r rune) bool { return r <= ' ' || r == '"' || r == '\'' || r == '\\' || r >= 0x7f }
