package group

import (
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// Raft finds no entry before the first of its log, even if a snapshot ends there. A leader that has
// sent a snapshot and does not hear that the entries after it are stored sends them again, and a
// follower whose log begins there would refuse them, whatever it is sent next: another snapshot,
// and so on for ever. What a snapshot covers is committed, so the entries after it fit: prefixed
// tells raft that they begin the log.
type prefixed struct {
	transport
	calls chan raft.RPC
}

// Consumer implements raft.Transport.
func (p prefixed) Consumer() <-chan raft.RPC { return p.calls }

// waiting is a call that raft has not taken yet.
type waiting struct {
	call  raft.RPC
	since time.Time
}

// errLate answers entries that nobody waits for any more.
var errLate = errors.New("the replica is busy: its disk may hang")

// pass passes calls on to raft until that ends. If the disk hangs, raft takes none, and the leader
// sends its entries again and again: all but the latest would stay in memory.
func (p prefixed) pass(f files, ended <-chan struct{}) {
	var queue []waiting
	for {
		var to chan<- raft.RPC // nil: no call waits
		var first raft.RPC
		if len(queue) > 0 {
			to, first = p.calls, queue[0].call
			if a, ok := first.Command.(*raft.AppendEntriesRequest); ok && endsSnapshot(f, a) {
				a.PrevLogEntry, a.PrevLogTerm = 0, 0
			}
		}
		select {
		case call := <-p.transport.Consumer():
			if !p.admits(call) {
				go refuse(call)
				continue
			}
			queue = append(p.dropLate(queue), waiting{call, time.Now()})
		case to <- first:
			queue = slices.Delete(queue, 0, 1)
		case <-ended:
			return
		}
	}
}

// dropLate drops entries that have waited for longer than an answer may take.
func (p prefixed) dropLate(queue []waiting) []waiting {
	return slices.DeleteFunc(queue, func(w waiting) bool {
		_, entries := w.call.Command.(*raft.AppendEntriesRequest)
		late := entries && time.Since(w.since) > p.patience
		if late {
			w.call.Respond(nil, errLate)
		}
		return late
	})
}

// endsSnapshot reports whether entries follow the last snapshot, and the log begins there.
func endsSnapshot(f files, a *raft.AppendEntriesRequest) bool {
	first, err := f.log.FirstIndex()
	if err != nil || first == 0 || a.PrevLogEntry != first-1 {
		return false
	}
	list, err := f.snapshots.List()
	return err == nil && len(list) > 0 && list[0].Index == a.PrevLogEntry && list[0].Term == a.PrevLogTerm
}
