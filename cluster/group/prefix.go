package group

import "github.com/hashicorp/raft"

// Raft finds no entry before the first of its log, even if a snapshot ends there. A leader that has
// sent a snapshot and does not hear that the entries after it are stored sends them again, and a
// follower whose log begins there would refuse them, whatever it is sent next: another snapshot,
// and so on for ever. What a snapshot covers is agreed on, so the entries after it fit: prefixed
// tells raft that they begin the log.
type prefixed struct {
	transport
	calls chan raft.RPC
}

// Consumer implements raft.Transport.
func (p prefixed) Consumer() <-chan raft.RPC { return p.calls }

// pass passes calls on to raft until that ends.
func (p prefixed) pass(f files, ended <-chan struct{}) {
	for {
		select {
		case call := <-p.transport.Consumer():
			if a, ok := call.Command.(*raft.AppendEntriesRequest); ok && endsSnapshot(f, a) {
				a.PrevLogEntry, a.PrevLogTerm = 0, 0
			}
			select {
			case p.calls <- call:
			case <-ended:
				return
			}
		case <-ended:
			return
		}
	}
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
