package clustering

import (
	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/resp/command"
)

// ErrCrossSlot is Redis' error for keys in several slots.
const ErrCrossSlot = engine.Error("CROSSSLOT Keys in request don't hash to the same slot")

// ErrWholeKeyspace is the error of a command that needs all keys of the cluster.
const ErrWholeKeyspace = engine.Error("ERR this command is not available in a cluster: no node has all keys")

const errOtherSlots = engine.Error("CROSSSLOT the keys of one call have to be in one slot of the cluster: keys with " +
	"the same {tag} are, such as {user1}:minute and {user1}:day")

const errOtherNetworks = engine.Error("CROSSSLOT the policies count this address as networks in different " +
	"slots of the cluster: give them the same IP4 and IP6, or check them in one call each")

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

// CrossSlot returns the error for a call with keys in several slots, or in another one than those
// before it in a transaction: Redis' for commands that Redis has. For others it teaches.
func CrossSlot(p *command.Prepared, keys []engine.Key) error {
	_, together := SlotOf(keys)
	byPolicies := p.Command.HashKeys != nil && string(keys[0].Name) != string(p.NamedKey())
	switch {
	case byPolicies && !together: // they are of one id, so it is an address
		return errOtherNetworks
	case p.Command.Group == "ratelimit":
		return errOtherSlots
	}
	return ErrCrossSlot
}
