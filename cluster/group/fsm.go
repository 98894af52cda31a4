package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"rlserver/engine"
	"rlserver/persistence"
)

// fsm is what raft applies the committed log to. Raft calls its methods from one goroutine, but for
// those of a snapshot.
type fsm struct {
	engine  engine.Options
	time    *timeline
	replica atomic.Pointer[Replica]
	fresh   chan<- struct{} // capacity 1: Restore has replaced the replica
	// follows reports whether another node leads, and the present term is this one: entries of
	// earlier terms come from a log that may end long ago.
	follows func(term uint64) bool

	longCall func() (end func()) // see Options; nil: nobody needs to know

	newer byte // by how much it knows later versions, set by tests

	applier applier
	partial partial
	// the state contains the records of this incarnation up to this number: the log repeats some
	skip      uint64
	skipTo    uint64
	latest    int64        // the latest time in the log, Unix ms
	logBytes  atomic.Int64 // applied since the last snapshot
	uncounted int64        // of them, in the parts of a record whose last part is to come
	index     atomic.Uint64
	note      atomic.Pointer[Note] // nil: there is none yet
	digested  func(Digest)         // called with the digest of the state at an entry
	broken    func(error)          // called if the log cannot be applied, which is final

	// ends that a snapshot which is about to begin keeps scripts from taking long; nil: none does
	starved atomic.Pointer[func()]
}

// allowScripts ends that scripts may not take long for the sake of a snapshot.
func (f *fsm) allowScripts() {
	if end := f.starved.Swap(nil); end != nil {
		(*end)()
	}
}

// errFenced is the result of an entry that was decided under another leadership than it was
// committed in.
var errFenced = errors.New("decided under an earlier leadership")

type barrierResult struct{ term uint64 }

// Apply implements raft.FSM. It returns nil, an error or a barrierResult.
func (f *fsm) Apply(l *raft.Log) any {
	result := f.apply(l)
	f.index.Store(l.Index)
	return result
}

func (f *fsm) apply(l *raft.Log) any {
	h, records, err := readHeader(l.Data, entryVersion+f.newer)
	if err != nil {
		f.broken(fmt.Errorf("entry %d of the log: %w", l.Index, err))
		return err
	}
	f.uncounted += int64(len(l.Data))
	if h.kind != entryPart { // between parts a snapshot fails, or takes the disk's time from them
		f.logBytes.Add(f.uncounted)
		f.uncounted = 0
	}
	r := f.replica.Load()
	own := h.proposer == r.id
	live := own || f.follows(l.Term)
	if h.term == l.Term { // the time of another one is of a leader that was deposed
		f.time.saw(l.Index, h.at, live)
		f.latest = max(f.latest, h.at)
	}
	switch {
	case h.kind == entryNote:
		return f.takeNote(records)
	case h.kind == entryBarrier:
		f.partial = partial{}
		r.digest.drop() // the entry of an earlier leadership, if it has not come, never will
		if own {
			f.skip, f.skipTo = 0, 0
		}
		return barrierResult{l.Term}
	case h.kind == entryDigest:
		return f.digest(l, h, own)
	case h.term != l.Term:
		if own && (h.last >= h.first || h.kind == entryPart) {
			r.discard(errFenced)
		}
		return errFenced
	case own:
		r.committedOwn(h.last)
		return nil
	}
	after := uint64(0)
	if h.proposer == f.skip {
		after = f.skipTo
	}
	switch {
	case h.kind != entryPart && h.kind != entryLastPart:
	case h.first <= after:
		return nil // the state contains it, and not all parts need follow
	case h.kind == entryPart:
		f.partial.add(h, records)
		return nil
	default:
		defer f.takesLong()()
		records, err = f.partial.finish(h, records)
	}
	if err == nil {
		err = f.applier.apply(r.Engine, h, records, after)
	}
	if err != nil {
		f.broken(fmt.Errorf("entry %d of the log: %w", l.Index, err))
		return err
	}
	return nil
}

// takesLong notes that what begins takes many milliseconds, until end is called.
func (f *fsm) takesLong() (end func()) {
	if f.longCall == nil {
		return func() {}
	}
	return f.longCall()
}

// A snapshot begins with this header, in big-endian integers, and the group's note; the state
// follows as package persistence writes it.
//
//	+----------+---------+-------------+---------+---------+-----------------+--------+------+
//	| RLSERVER | version | incarnation | records | Unix ms | version of note | length | note |
//	| 8 bytes  | 1       | 8           | 8       | 8       | 8               | 8      |      |
//	+----------+---------+-------------+---------+---------+-----------------+--------+------+
//
// The state contains the records of the incarnation up to that number, of which the log after the
// snapshot may repeat some: a leader's engine is ahead of its log.
const (
	stateMagic      = "RLSERVER"
	stateVersion    = 3
	oldestState     = 2 // that can be read
	stateHeaderSize = len(stateMagic) + 1 + 5*8
)

func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	defer f.allowScripts()
	r := f.replica.Load()
	if why := r.why(); why != nil {
		return nil, why
	}
	if len(f.partial.record) > 0 {
		return nil, errors.New("a large change is only applied in part: the snapshot is tried again")
	}
	r.digest.pause()
	s := &snapshot{fsm: f, replica: r, incarnation: f.skip, records: f.skipTo, at: f.latest, note: f.note.Load()}
	// No key is left out as it has expired: the others have it until a leader deletes it. A script
	// that began before may still change it, and a leader that lacks it makes it anew without
	// deleting it first.
	s.state = r.Engine.TrySnapshot(1, func() {
		if own := r.lastAppended(); own > 0 {
			s.incarnation, s.records, s.await = r.id, own, own
		}
	})
	if s.state == nil { // all entries would wait with this one
		r.digest.resume()
		return nil, errors.New("a script runs that takes long: the snapshot is tried again")
	}
	s.covers = f.logBytes.Load()
	return s, nil
}

// snapshot is the state at one moment.
type snapshot struct {
	fsm         *fsm
	replica     *Replica
	state       *engine.Snapshot
	incarnation uint64
	records     uint64
	await       uint64 // what must be committed before the snapshot is complete
	at          int64
	note        *Note
	covers      int64 // bytes of log
}

func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	header := append([]byte(stateMagic), stateVersion+s.fsm.newer)
	header = binary.BigEndian.AppendUint64(header, s.incarnation)
	header = binary.BigEndian.AppendUint64(header, s.records)
	header = binary.BigEndian.AppendUint64(header, uint64(s.at))
	header = s.note.append(header)
	_, err := sink.Write(header)
	if err == nil {
		err = persistence.WriteState(sink, s.state, s.at, s.replica.why)
	}
	if s.state.Omitted() { // the evictions of keys that are left out must not be lost
		s.await = s.replica.lastAppended()
	}
	if err == nil {
		err = s.replica.awaitCommitted(s.await)
	}
	if err == nil {
		err = sink.Close()
	}
	if err == nil {
		s.fsm.logBytes.Add(-s.covers)
	}
	return err
}

func (s *snapshot) Release() {
	s.state.Close()
	s.replica.digest.resume()
}

// Restore implements raft.FSM. The state that was there is replaced by a new replica's.
func (f *fsm) Restore(src io.ReadCloser) error {
	header := make([]byte, stateHeaderSize)
	if _, err := io.ReadFull(src, header); err != nil {
		return fmt.Errorf("snapshot ends within its header: %w", err)
	}
	rest := header[len(stateMagic):]
	if string(header[:len(stateMagic)]) != stateMagic {
		return fmt.Errorf("not a snapshot: it begins with %q", header[:len(stateMagic)])
	}
	if err := checkVersion("snapshot", rest[0], oldestState, stateVersion+f.newer); err != nil {
		f.broken(err) // or the leader would send it again and again
		return err
	}
	note, err := readNote(src, rest[25:])
	if err != nil {
		return err
	}
	defer f.takesLong()()
	r := newReplica(f.engine)
	if err := persistence.ReadState("snapshot", src, r.Engine); err != nil {
		r.Engine.Discard() // the leader sends the snapshot again
		return err
	}
	f.skip, f.skipTo = binary.BigEndian.Uint64(rest[1:]), binary.BigEndian.Uint64(rest[9:])
	f.latest = int64(binary.BigEndian.Uint64(rest[17:]))
	f.note.Store(note)
	f.time.saw(0, f.latest, false)
	f.logBytes.Store(0)
	f.partial, f.uncounted = partial{}, 0
	before := f.replica.Swap(r)
	before.discard(errors.New("replaced by a snapshot of the group"))
	before.Engine.Discard()
	signal(f.fresh)
	return nil
}
