package command

import "rlserver/internal/grammar"

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
