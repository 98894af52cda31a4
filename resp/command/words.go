package command

import (
	"fmt"
	"strings"

	"rlserver/engine"
	"rlserver/engine/rule"
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

// BeginsRule reports whether words begin with a rule, not with an option. The second word of a rule
// is an algorithm, so its key may be COST.
func BeginsRule(words [][]byte) bool { return RuleLength(words) > 0 }

// RuleLength is Rule without the algorithm.
func RuleLength(words [][]byte) int {
	_, n := Rule(words)
	return n
}

// Rule returns the algorithm of the rule at the beginning of words, and how many words the rule
// has, or should have; nil and 0 if there is no rule.
func Rule(words [][]byte) (a *rule.Algorithm, n int) {
	if len(words) < 2 {
		return nil, 0
	}
	if a = rule.Find(words[1]); a == nil {
		return nil, 0
	}
	n = 2 + len(a.Fields)
	if a.HasID {
		n++
	}
	for range a.Options {
		if len(words) > n && OptionFollows(a, words[n:]) {
			n += 2
		}
	}
	return a, n
}

// OptionFollows reports whether words begin with an option of an algorithm, not with a key of that
// name.
func OptionFollows(a *rule.Algorithm, words [][]byte) bool {
	return len(words) > 0 && a.OptionIndex(words[0]) >= 0 && (len(words) < 2 || rule.Find(words[1]) == nil)
}

// When leadership ends while the reply of a call waits, the client is told whether it may send the
// call again. That is a fact of the call's declaration and of its arguments as its handler parses
// them, and of what the call has changed: see Call.Changed.

// OptionsAt is Command.Options of a command whose options begin at a fixed index.
func OptionsAt(index int) func([][]byte) int { return func([][]byte) int { return index } }

// Always is Command.CountsOnce of a command that counts once with any arguments.
func Always([][]byte) bool { return true }

// NotInCluster is Command.Refused of a command that is not available in a cluster.
func NotInCluster(why error) func([][]byte) error { return func([][]byte) error { return why } }

// CountsOnce reports whether the call has no further effect when it is sent again.
func (p *Prepared) CountsOnce() bool {
	return p.Command.CountsOnce != nil && p.Command.CountsOnce(p.Words)
}

// MayWait reports whether the call may wait for its keys.
func (p *Prepared) MayWait() bool {
	c := p.Command
	return c.Flags&Blocking != 0 && (c.Options == nil || HasOption(p.Words, c.Options(p.Words), "WAIT"))
}

// HasOption reports whether words have an option, in upper case. From the index first on they are
// options, each followed by its value, COST and BAN by several, and FORCE by none.
func HasOption(words [][]byte, first int, option string) bool {
	for i := first; i+1 < len(words); i += 2 {
		switch {
		case grammar.EqualFold(words[i], option):
			return true
		case grammar.EqualFold(words[i], "FORCE"):
			i--
		case grammar.EqualFold(words[i], "COST"), grammar.EqualFold(words[i], "BAN"):
			for i+2 < len(words) && BeginsNumber(words[i+2]) {
				i++
			}
		}
	}
	return false
}

// BeginsNumber reports whether an argument is another number of a list, not an option.
func BeginsNumber(b []byte) bool {
	return len(b) > 0 && (b[0] >= '0' && b[0] <= '9' || b[0] == '-' || b[0] == '+')
}
