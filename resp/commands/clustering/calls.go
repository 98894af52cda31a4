package clustering

import (
	"slices"

	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/grammar"
	"rlserver/resp/command"
)

// ErrCrossSlot is Redis' error for keys in several slots.
const ErrCrossSlot = engine.Error("CROSSSLOT Keys in request don't hash to the same slot")

const errOtherSlots = engine.Error("CROSSSLOT the keys of one call have to be in one slot of the cluster: keys with " +
	"the same {tag} are, such as {user1}:minute and {user1}:day")

// SlotOf returns the slot of keys. ok is false if they are in several.
func SlotOf(keys []engine.Key) (at int, ok bool) {
	at = slot.Of(keys[0].Name)
	for i := range keys[1:] {
		if slot.Of(keys[1+i].Name) != at {
			return at, false
		}
	}
	return at, true
}

// CrossSlot returns the error for a call with keys in several slots: Redis' for commands that Redis
// has. For others it teaches.
func CrossSlot(c *command.Command) error {
	if len(c.Name) > 3 && c.Name[:3] == "rl." {
		return errOtherSlots
	}
	return ErrCrossSlot
}

// CountsOnce reports whether a call of a limiter that is sent again has no further effect: the same
// lease, or an id in a log of hits. RL.REFUND with an id would give back more hits of that id.
func CountsOnce(p *command.Prepared) bool {
	switch p.Command.Name {
	case "rl.lease", "rl.release":
		return true
	case "rl.slide", "rl.multi", "rl.all", "rl.check":
		return hasOption(p, "ID")
	}
	return false
}

// MayWait reports whether a call may wait for its keys.
func MayWait(p *command.Prepared) bool {
	switch {
	case p.Command.Flags&command.Blocking == 0:
		return false
	case p.Command.Name[0] == 'b':
		return true
	}
	return hasOption(p, "WAIT")
}

// hasOption reports whether a word of a call behind its key is an option. It may also be an
// argument that looks like one.
func hasOption(p *command.Prepared, name string) bool {
	return slices.ContainsFunc(p.Words[2:], func(w []byte) bool { return grammar.EqualFold(w, name) })
}
