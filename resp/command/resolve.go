package command

import (
	"cmp"
	"fmt"
	"strings"

	"rlserver/engine"
)

// Resolve finds the command of a call and checks the number and the length of its words. name is
// the number of words in the command's name. c is nil for an unknown command or subcommand. last is
// the command of the client's last call, or nil: it is likely to be the same. maxKey is the
// maximum length of a limiter's key in bytes.
func Resolve(words [][]byte, last *Command, maxKey int64) (c *Command, name int, err error) {
	c, name = last, 1
	if !last.Called(words[0]) {
		c = Table.Find(words[0])
	}
	if c == nil {
		return nil, 0, cmp.Or(Unsupported("", words[0]), unknownCommand(words))
	}
	if len(c.Subs) > 0 && len(words) > 1 {
		parent := c
		if c, name = parent.Sub(words[1]), 2; c == nil {
			if err = Unsupported(parent.Name, words[1]); err != nil {
				return nil, 0, err
			}
			return nil, 0, engine.Error(fmt.Sprintf("ERR unknown subcommand '%.128s'. Try %s HELP.",
				words[1], strings.ToUpper(parent.Name)))
		}
	}
	if c.Rejects(len(words)) {
		return c, 0, engine.Error("ERR wrong number of arguments for '" + c.FullName() + "' command")
	}
	if c.BoundsWords() {
		err = c.TooLong(words, maxKey)
	}
	return c, name, err
}

// unknownCommand returns the error for an unknown command, which quotes the words up to the length
// that Redis has.
func unknownCommand(words [][]byte) error {
	text := fmt.Sprintf("ERR unknown command '%.128s', with args beginning with: ", words[0])
	quoted := 0
	for _, w := range words[1:] {
		if quoted >= 128 {
			break
		}
		arg := fmt.Sprintf("'%.*s' ", 128-quoted, w)
		quoted += len(arg)
		text += arg
	}
	return engine.Error(text)
}
