package diagnostics

import (
	"slices"

	"rlserver/internal/grammar"
	"rlserver/resp/config"
)

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
