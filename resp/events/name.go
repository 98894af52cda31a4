package events

import (
	"slices"
	"strings"

	"rlserver/engine/change"
	"rlserver/engine/effect"
)

// Name gives the changes of a call their events, and returns what takes their place. command is the
// name of the command; empty: no call has made them.
func Name(command string, words [][]byte, list []change.Change) (named []change.Change) {
	n := namer{quiet: strings.HasPrefix(command, "object|") || command == "memory|usage"}
	if command != "" {
		n.rule = ruleOf(command, words)
		if command == "bitop" {
			n.target = string(word(words, 2))
		}
	}
	if n.rule.how&reversed != 0 {
		list = slices.Clone(list)
		slices.Reverse(list)
	}
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && n.joins(&list[i], &list[j]) {
			j++
		}
		n.group(list[i:j])
		i = j
	}
	return n.named
}

// namer names the changes of one call.
type namer struct {
	rule   rule
	target string // the key that is stored
	quiet  bool   // it is no event that the call has not found a key
	named  []change.Change
}

// joins reports whether two changes of a call, one after the other, have one event.
func (n *namer) joins(a, b *change.Change) bool {
	if a.Reason == change.Missed && b.Reason == change.Missed { // the call has looked it up twice
		return n.rule.how&each == 0 && a.DB == b.DB && a.Key == b.Key
	}
	return a.Reason == change.Called && b.Reason == change.Called && n.rule.how&each == 0 &&
		a.DB == b.DB && a.Key == b.Key && b.Kind.ChangesKey() && a.Kind != effect.Rename && a.Kind != effect.Move &&
		!b.Kind.HasTo() && !a.Kind.HasTo() && b.Kind != effect.Move &&
		(n.rule.take == "" || takes(a.Kind) == takes(b.Kind))
}

func takes(k effect.Kind) bool { return k == effect.RemoveSpan || k == effect.Remove }

// add adds an event of a change. It follows the reply if the rule says so of one of these cases.
func (n *namer) add(c *change.Change, class change.Class, event string, cases how) {
	named := *c
	named.Class, named.Event, named.Late = class, event, n.rule.how&cases != 0
	n.named = append(n.named, named)
}

// group adds the events of changes to one key.
func (n *namer) group(list []change.Change) {
	first, last := &list[0], &list[len(list)-1]
	switch {
	case first.Reason == change.Expired:
		n.add(first, change.Expiry, "expired", 0)
	case first.Reason == change.Evicted:
		n.add(first, change.Eviction, "evicted", 0)
	case first.Reason == change.Missed:
		if !n.quiet && (!first.Writing || n.rule.how&reads != 0 && first.Key != n.target) {
			n.add(first, change.Miss, "keymiss", 0)
		}
	case !first.Kind.ChangesKey():
		n.add(first, 0, "", 0)
	case first.Kind.HasTo() || first.Kind == effect.Move:
		n.moved(*first)
	default:
		n.changed(first, last, kindsOf(list))
	}
}

// moved adds the events of RENAME, COPY and MOVE.
func (n *namer) moved(from change.Change) {
	to := from
	if from.Kind == effect.Rename {
		to.Key = from.To
		n.add(&to, change.New, "new", 0)
		n.add(&from, change.Generic, "rename_from", 0)
		n.add(&to, change.Generic, "rename_to", 0)
		return
	}
	to.DB = from.ToDB
	if from.Kind == effect.Copy {
		to.Key = from.To
		n.add(&to, change.New, "new", 0)
		n.add(&to, change.Generic, "copy_to", 0)
		return
	}
	n.add(&to, change.New, "new", 0)
	n.add(&from, change.Generic, "move_from", 0)
	n.add(&to, change.Generic, "move_to", 0)
}

// kinds are which kinds of effects changes have.
type kinds struct{ value, deadline, deleted bool }

func kindsOf(list []change.Change) (k kinds) {
	for i := range list {
		switch list[i].Kind {
		case effect.Delete:
			k.deleted = true
		case effect.Expire:
			k.deadline = true
		default:
			k.value = true
		}
	}
	return k
}

// changed adds the events of a key that a call has changed.
func (n *namer) changed(first, last *change.Change, k kinds) {
	r := &n.rule
	if k.deleted && !k.value && !k.deadline && r.how&always == 0 {
		n.add(last, change.Generic, "del", lateDel)
		return
	}
	if k.value && (first.Created || r.how&replaces != 0) {
		n.add(last, change.New, "new", lateNew)
	}
	ends := late | lateDel
	switch {
	case r.take != "" && takes(first.Kind):
		n.add(last, r.class, r.take, lateTake)
		ends |= lateTake
	case r.name != "" && (k.value || k.deleted || r.how&only != 0):
		n.add(last, r.class, r.name, late)
		if r.how&expires != 0 && last.ExpireAt != 0 {
			n.add(last, change.Generic, "expire", late)
		}
	case k.deadline && last.ExpireAt == 0:
		n.add(last, change.Generic, "persist", lateDeadline)
	case k.deadline:
		n.add(last, change.Generic, "expire", lateDeadline)
	default: // a change that no command has an event for
		n.add(last, 0, "", 0)
	}
	if last.Gone {
		n.add(last, change.Generic, "del", ends)
	}
}
