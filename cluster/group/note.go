package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"rlserver/engine/policy"
)

// Note is what a group commits beside its keys, and clients do not see: group 0 holds the map of
// the cluster so. It is part of the log and of snapshots.
type Note struct {
	Version uint64 // 1 is the first; each note that replaces another has the next number
	Data    []byte
}

// longestNote is the size of a note, in bytes, that a snapshot may have.
const longestNote = 16 << 20

// ErrStale reports that a note was not replaced: it had another version than expected.
var ErrStale = errors.New("the note has another version")

// Note returns the note as far as this replica knows; nil: there is none.
func (g *Group) Note() *Note { return g.running.Load().fsm.note.Load() }

// SetNote replaces the note by the one with the next version, on the leader. Any error but ErrStale
// leaves open whether it has.
func (g *Group) SetNote(n Note) error {
	if len(n.Data) > longestNote {
		return fmt.Errorf("it would take %d bytes, and may take %d", len(n.Data), longestNote)
	}
	if _, err := g.Leading(); err != nil {
		return err
	}
	entry := make([]byte, headerSize, headerSize+8+len(n.Data))
	header{kind: entryNote, first: 1}.put(entry)
	entry = append(binary.BigEndian.AppendUint64(entry, n.Version), n.Data...)
	run := g.running.Load()
	return run.result(run.raft.ApplyLog(raft.Log{Data: entry}, g.options.Timeout))
}

// takeNote applies an entry that replaces the note. It returns nil or an error.
func (f *fsm) takeNote(content []byte) any {
	if len(content) < 8 {
		err := errors.New("note ends within its version")
		f.broken(err)
		return err
	}
	n := &Note{binary.BigEndian.Uint64(content), append([]byte(nil), content[8:]...)}
	before := uint64(0)
	if now := f.note.Load(); now != nil {
		before = now.Version
	}
	if n.Version != before+1 {
		return ErrStale
	}
	f.note.Store(n)
	return nil
}

// append appends the note as a snapshot has it; nil is version 0.
func (n *Note) append(b []byte) []byte {
	if n == nil {
		n = &Note{}
	}
	b = binary.BigEndian.AppendUint64(b, n.Version)
	b = binary.BigEndian.AppendUint64(b, uint64(len(n.Data)))
	return append(b, n.Data...)
}

// readNote reads a note of a snapshot, whose version and length have been read.
func readNote(src io.Reader, head []byte) (*Note, error) {
	version, length := binary.BigEndian.Uint64(head), binary.BigEndian.Uint64(head[8:])
	switch {
	case version == 0:
		return nil, nil
	case length > longestNote:
		return nil, fmt.Errorf("snapshot has a note of %d bytes", length)
	}
	n := &Note{version, make([]byte, length)}
	if _, err := io.ReadFull(src, n.Data); err != nil {
		return nil, fmt.Errorf("snapshot ends within its note: %w", err)
	}
	return n, nil
}

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
