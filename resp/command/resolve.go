package command

import (
	"cmp"
	"fmt"
	"strings"

	"rlserver/engine"
)

// Resolve makes p a call with these words: it finds the command, and checks the number and the
// length of the words. After an error, Command is nil if the command or subcommand is unknown. last
// is the command of the client's last call, or nil: it is likely to be the same. maxKey is the
// maximum length of a limiter's key in bytes.
func (p *Prepared) Resolve(words [][]byte, last *Command, maxKey int64) error {
	if !last.Called(words[0]) {
		last = Table.Find(words[0])
	}
	// not by a literal: it is built aside and copied, which costs a tenth of a short call
	p.Command, p.Words, p.Name, p.Keys, p.Size, p.DB, p.All = last, words, 1, 0, 0, 0, false
	switch {
	case last == nil:
		return cmp.Or(Unsupported("", words[0]), unknownCommand(words))
	case len(last.Subs) > 0 && len(words) > 1:
		p.Command, p.Name = last.Sub(words[1]), 2
		if p.Command == nil {
			return cmp.Or(Unsupported(last.Name, words[1]), unknownSubcommand(last, words[1]))
		}
	}
	if p.Command.Rejects(len(words)) {
		return engine.Error("ERR wrong number of arguments for '" + p.Command.FullName() + "' command")
	}
	if p.Command.BoundsWords() {
		return p.Command.TooLong(words, maxKey)
	}
	return nil
}

func unknownSubcommand(c *Command, name []byte) error {
	return engine.Error(fmt.Sprintf("ERR unknown subcommand '%.128s'. Try %s HELP.", name, strings.ToUpper(c.Name)))
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
