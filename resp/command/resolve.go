package command

import (
	"cmp"
	"fmt"
	"strings"

	"rlserver/engine"
)

// Resolve makes p a call with these words: it finds the command, and checks the number and the
// length of the words. After an error, Command is nil if the command or subcommand is unknown. last
// is the command of the client's last call, or nil: it is likely to be the same.
func (p *Prepared) Resolve(env *Env, words [][]byte, last *Command) error {
	if !last.Called(words[0]) {
		last = Table.Find(words[0])
	}
	// not by a literal: it is built aside and copied, which costs a tenth of a short call
	p.Command, p.Words, p.Name, p.Keys, p.Size, p.DB, p.Inside = last, words, 1, 0, 0, 0, nil
	p.All, p.Repeats = false, false
	if last != nil && last.plain && !last.Rejects(len(words)) {
		return nil
	}
	return p.resolve(env)
}

// Repeat makes p a call like another, whose words differ only in the second, which is the key. It
// reports false if that is not all that differs: then p must be resolved.
func (p *Prepared) Repeat(env *Env, words [][]byte, like *Prepared) bool {
	if like.Command.onlyKey != 1 || int64(len(words[1])) > env.Settings.MaxKey.Load() {
		return false
	}
	p.Command, p.Words, p.Name, p.Keys, p.Size, p.DB, p.Inside = like.Command, words, 1, 0, 0, 0, nil
	p.All, p.Repeats = like.All, true
	return true
}

// resolve is the rest of Resolve, for a call of a command that is not plain, or is an error.
func (p *Prepared) resolve(env *Env) error {
	c, words := p.Command, p.Words
	switch {
	case c == nil:
		return cmp.Or(Unsupported("", words[0]), unknownCommand(words))
	case len(c.Subs) > 0 && len(words) > 1:
		p.Command, p.Name = c.Sub(words[1]), 2
		if p.Command == nil {
			return cmp.Or(Unsupported(c.Name, words[1]), unknownSubcommand(c, words[1]))
		}
	}
	c = p.Command
	if c.Rejects(len(words)) {
		return engine.Error("ERR wrong number of arguments for '" + c.FullName() + "' command")
	}
	if c.BoundsWords() {
		return c.TooLong(words, env.Settings.MaxKey.Load())
	}
	if c.Flags&AnyKeys != 0 {
		p.All = !env.InCluster() && env.Settings.ScriptsTakeAll.Load() != 0
	}
	return nil
}

func unknownSubcommand(c *Command, name []byte) error {
	return engine.Errorf("ERR unknown subcommand '%.128s'. Try %s HELP.", name, strings.ToUpper(c.Name))
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
