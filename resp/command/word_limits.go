package command

import (
	"fmt"
	"rlserver/engine"
	"rlserver/resp/grammar"
	"strings"
)

const (
	LongestWord = 64 << 10 // bytes of a word of a limiter's call that is no key, and of a client's name
)

// BoundsWords tells whether the words of a command's calls have a longest length. They are compared and copied under
// locks, and kept: those of limiters, which strangers may choose.
func (c *Command) BoundsWords() bool { return c.Group == "ratelimit" }

// TooLong finds a word that a limiter's call may not have, before anything is done with it.
func (c *Command) TooLong(words [][]byte, mostKey int64) error {
	most := int(min(LongestWord, mostKey))
	for _, word := range words {
		if len(word) > most {
			return c.findTooLong(words, mostKey)
		}
	}
	return nil
}

// findTooLong names the word, if it is not a key that is longer than others may be.
func (c *Command) findTooLong(words [][]byte, mostKey int64) error {
	keys := make(map[int]bool)
	for _, spec := range c.Keys {
		spec.positions(words, func(i int) { keys[i] = true })
	}
	for i, word := range words {
		size := int64(len(word))
		switch {
		case keys[i] && size > mostKey:
			return engine.Error(fmt.Sprintf("ERR %s is too long: it has %d bytes, and proto-max-key-len allows %d", c.wordName(words, i), size, mostKey))
		case !keys[i] && size > LongestWord:
			return engine.Error(fmt.Sprintf("ERR %s is too long: it has %d bytes, and %d are allowed", c.wordName(words, i), size, LongestWord))
		}
	}
	return nil
}

// wordName is what the syntax calls a word of a call: "id", the value of an option "ID", or else its place.
func (c *Command) wordName(words [][]byte, i int) string {
	before := strings.Fields(c.Syntax)
	for n, name := range before { // the arguments that stand in one place always
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
	return fmt.Sprintf("argument %d of %s", i, c.title())
}
