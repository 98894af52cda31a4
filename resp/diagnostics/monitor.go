package diagnostics

import (
	"slices"
	"strconv"
	"strings"

	"rlserver/internal/grammar"
	"rlserver/resp/config"
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

var redacted = []byte("(redacted)")

// Redacted returns the words of a call, with "(redacted)" in place of passwords. command is the
// name as COMMAND reports it: acl|setuser. Calls without passwords are returned unchanged.
func Redacted(command string, words [][]byte) [][]byte {
	switch command {
	case "auth":
		return hide(words, func(i int) bool { return i > 0 })
	case "hello":
		isAuth := func(i int) bool { return i > 0 && grammar.EqualFold(words[i], "AUTH") }
		return hide(words, func(i int) bool { return isAuth(i-1) || isAuth(i-2) })
	case "acl|setuser":
		return hide(words, func(i int) bool { return i > 1 })
	case "acl|dryrun": // the arguments of another call, which may be AUTH
		return hide(words, func(i int) bool { return i > 3 })
	case "command|getkeys", "command|getkeysandflags":
		return hide(words, func(i int) bool { return i > 2 })
	case "config|set":
		return hide(words, func(i int) bool { return i > 2 && i%2 == 1 && isSecret(words[i-1]) })
	}
	return words
}

func hide(words [][]byte, secret func(i int) bool) [][]byte {
	shown := slices.Clone(words)
	for i := range shown {
		if secret(i) {
			shown[i] = redacted
		}
	}
	return shown
}

// isSecret reports whether a parameter is a password. An unknown one may be: its name is misspelt,
// or of a feature that the server does not have.
func isSecret(name []byte) bool {
	p := config.Lookup(string(name))
	return p == nil || p.Secret
}
