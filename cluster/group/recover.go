package group

import (
	"errors"

	"github.com/hashicorp/raft"
)

// errRecovered ends the replica that Recover has used to read the log.
var errRecovered = errors.New("recovered")

// ErrEmpty reports that a replica has no state to recover.
var ErrEmpty = errors.New("the replica has no state")

// Recovered is what Recover has found.
type Recovered struct {
	Entries uint64 // index of the last entry that is kept
	Note    *Note  // nil: none
}

// truncatedFSM is for a log that may end between the parts of a record: they are dropped, as
// nothing follows them any more.
type truncatedFSM struct{ *fsm }

// Snapshot implements raft.FSM.
func (f truncatedFSM) Snapshot() (raft.FSMSnapshot, error) {
	f.partial = partial{}
	return f.fsm.Snapshot()
}

// Recover makes a replica that is not open the only member of its group, when a majority of the
// others is lost for ever. It keeps all entries that it has, also those that were not committed.
// What the lost members had committed without this one is lost.
func Recover(o Options) (r Recovered, err error) {
	g := newGroup(o)
	config := g.config(nil)
	state := &fsm{
		engine: o.Engine, time: g.time, follows: func(uint64) bool { return false },
		digested: func(Digest) {},
	}
	// no snapshot is taken of what cannot be applied, and the log stays
	state.broken = func(err error) { state.replica.Load().discard(err) }
	state.replica.Store(newReplica(o.Engine))
	err = g.withFiles(config, func(f files, trans raft.Transport) error {
		if has, err := raft.HasExistingState(f.cache, f.log, f.snapshots); err != nil || !has {
			return errors.Join(err, ErrEmpty)
		}
		alone := votersOf([]ReplicaID{o.id()})
		return raft.RecoverCluster(config, truncatedFSM{state}, f.cache, f.log, f.snapshots, trans, alone)
	})
	last := state.replica.Load()
	last.discard(errRecovered)
	last.Engine.Discard()
	return Recovered{state.index.Load(), state.note.Load()}, err
}
