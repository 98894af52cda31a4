package command

import (
	"fmt"
	"strings"

	"rlserver/engine"
	"rlserver/internal/grammar"
)

// MaxWordLen is the maximum length of arguments of limiters that are not keys, and of client names,
// in bytes.
const MaxWordLen = 64 << 10

// BoundsWords reports whether the arguments of a command are limited in length. Those of limiters
// are, because the users of an application may choose them, and they are compared and copied under
// locks, and stored.
func (c *Command) BoundsWords() bool { return c.Group == "ratelimit" }

// TooLong returns an error if a word of a limiter's call is too long, before the call runs.
// maxKeyLen is the limit for keys, in bytes.
func (c *Command) TooLong(words [][]byte, maxKeyLen int64) error {
	most := int(min(MaxWordLen, maxKeyLen))
	for _, word := range words {
		if len(word) > most {
			return c.findTooLong(words, maxKeyLen)
		}
	}
	return nil
}

// findTooLong returns the error that names the word, or nil. A key may be longer than other words.
func (c *Command) findTooLong(words [][]byte, maxKeyLen int64) error {
	keys := make(map[int]bool)
	for _, spec := range c.Keys {
		spec.positions(words, func(i int) { keys[i] = true })
	}
	for i, word := range words {
		size := int64(len(word))
		switch {
		case keys[i] && size > maxKeyLen:
			return engine.Errorf("ERR %s is too long: it has %d bytes, and proto-max-key-len allows %d",
				c.wordName(words, i), size, maxKeyLen)
		case !keys[i] && size > MaxWordLen:
			return engine.Errorf("ERR %s is too long: it has %d bytes, and %d are allowed",
				c.wordName(words, i), size, MaxWordLen)
		}
	}
	return nil
}

// wordName returns the name of a word in the syntax (id), or its option (ID), or its index.
func (c *Command) wordName(words [][]byte, i int) string {
	before := strings.Fields(c.Quoted().Syntax)
	for n, name := range before { // the arguments with a fixed index
		if strings.ContainsAny(name, "[<") {
			before = before[:n]
			break
		}
	}
	first := 1
	if c.parent != nil {
		first = 2
	}
	if n := i - first; n >= 0 && n < len(before) {
		return before[n]
	}
	for _, option := range []string{"COST", "ID", "TZ", "WAIT", "QUEUE", "TOKENS"} {
		if grammar.EqualFold(words[i-1], option) {
			return option
		}
	}
	return fmt.Sprintf("argument %d of %s", i, c.Title())
}
