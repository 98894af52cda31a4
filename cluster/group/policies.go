package group

import (
	"encoding/binary"
	"time"

	"rlserver/engine/policy"
)

// The engines of all groups of a node use the same policies, and no group has them in its log. The
// log only says which version its decisions have used, in the note: an entry that is proposed
// before them. A later leader that does not know that version decides nothing by policies: it would
// drop the keys of a newer algorithm.

// PolicyNotes are notes that name a version of the policies.
type PolicyNotes interface {
	// PolicyNote returns a note that names a version; nil: the group's note has the policies.
	PolicyNote(version uint64) []byte
	// PoliciesIn returns the version that a note names; 0: none.
	PoliciesIn(note []byte) uint64
}

// policiesUsed is what the log of a group says about the policies. Who has the replica's lock may
// use it.
type policiesUsed struct {
	shared *policy.Shared
	notes  PolicyNotes // nil: they are not noted
	noted  uint64      // the version that the latest note names
	note   uint64      // the version of that note
}

// policyNote returns the note that has to precede all that is decided until now; nil: none.
func (r *Replica) policyNote(u *policiesUsed) *batch {
	version := u.shared.Version()
	if u.notes == nil || version <= u.noted {
		return nil
	}
	u.noted = version
	content := u.notes.PolicyNote(version)
	if content == nil {
		return nil
	}
	u.note++
	b := r.newBatch()
	b.kind, b.entry = entryNote, append(binary.BigEndian.AppendUint64(b.entry, u.note), content...)
	return b
}

// requirePolicies has the engine refuse policies that are older than those that the group has used.
// It waits for newer ones for a short time, as other nodes have them.
func (g *Group) requirePolicies(run *running, r *Replica, still func() bool) policiesUsed {
	u := policiesUsed{shared: g.options.Engine.Policies, notes: g.options.Policies}
	if note := run.fsm.note.Load(); note != nil {
		u.note = note.Version
		if u.notes != nil {
			u.noted = u.notes.PoliciesIn(note.Data)
		}
	}
	r.Engine.RequirePolicies(u.noted)
	late := time.Now().Add(g.options.Timeout / 2)
	for u.shared.Version() < u.noted && still() && time.Now().Before(late) {
		time.Sleep(policiesInterval)
	}
	if u.shared.Version() < u.noted {
		g.log.Warn("this node does not know the latest policies yet: calls that need them get TRYAGAIN")
	}
	return u
}

// policiesInterval is the time between looks whether the policies have come.
const policiesInterval = 5 * time.Millisecond
