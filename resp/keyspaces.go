package resp

import (
	"bytes"
	"time"

	"rlserver/cluster/slot"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

// Keyspaces implements command.Server.
func (s *Server) Keyspaces() (list []command.Keyspace) {
	for _, p := range s.partitions() {
		if p.group >= 0 {
			list = append(list, command.Keyspace{Group: p.group, Engine: p.env.Engine, Time: p.env.Time})
		}
	}
	return list
}

// runOn runs a command on one partition, and returns its reply after removing it from the buffer.
func (s *session) runOn(p *command.Prepared, on *partition) (reply []byte) {
	s.use(on)
	start := len(s.Reply.B)
	if p.Command.Flags&command.Stepwise != 0 && s.Env.Engine.Holds.Late() > 0 {
		return []byte("-" + command.ErrBusy + "\r\n")
	}
	for p.WantsAll() {
		if !s.Tx.BeginUnlessHeld(s.Env.Clock(), s.DB, nil, true, p.Command.Flags&command.Write != 0) {
			return []byte("-" + command.ErrBusy + "\r\n")
		}
		if !s.isPaused(p) {
			break
		}
		s.Tx.End() // a pause has begun since the call was checked, or ran on another group
		if !s.awaitPause(p) || s.GivenUp() {
			s.closing = true
			return nil // the client has disconnected
		}
	}
	if s.GivenUp() { // while it waited for the locks
		s.away.node.refused = true
		s.ReplyError(string(errNotHere))
	} else {
		s.Run(p, nil)
	}
	s.See(max(1, s.Tx.End())) // FLUSHALL of an empty group needs a leader as well
	reply = bytes.Clone(s.Reply.B[start:])
	s.Reply.B = s.Reply.B[:start]
	return reply
}

// retryBusy is the time between two attempts of a call that has run on other groups.
const retryBusy = 20 * time.Millisecond

// runOnGroups runs a command on all groups that this node leads and, for a client of the proxy
// port, on all others. It waits for elections: a group without a leader would be left out silently.
func (s *session) runOnGroups(p command.Prepared) {
	// CLIENT PAUSE may begin in between, and its wait reads input
	p.Words = command.CloneWords(p.Words)
	everywhere, find := s.role == proxied, s.awaitLeader
	if everywhere {
		s.flushBefore()
		find = s.server.cluster.Lead
	}
	led := map[int]*partition{-1: s.server.home}
	j := command.Merger{Words: p.Words, Reply: &s.Reply, Random: s.Random}
	for group := range s.server.cluster.Groups() {
		shared, err := find(group)
		s.group = append(s.group[:0], p)
		if err == nil {
			led[group] = s.server.partitionOf(group, shared)
		} else if err == slot.ErrNoLeader && !everywhere {
			s.reject(p.Command, errUnbound)
			return
		}
		if err == nil || everywhere {
			j.Groups = append(j.Groups, group)
		}
	}
	m := mark{start: len(s.Reply.B), all: true, changed: p.Command.Flags&command.Changing != 0}
	j.On = func(group int, words [][]byte) wire.Value {
		if led[group] == nil {
			return wire.ParseValue(s.passOnGroup(group, words, m))
		}
		one := p
		one.Words = words
		return wire.ParseValue(s.runOn(&one, led[group]))
	}
	j.Keys = func(group int) wire.Value {
		switch {
		case led[group] == nil:
			return wire.ParseValue(s.passOnGroup(group, [][]byte{[]byte("DBSIZE")}, m))
		case led[group].env.Engine.Holds.Late() > 0:
			return wire.ParseValue([]byte("-" + command.ErrBusy + "\r\n"))
		}
		keys, _ := led[group].env.Engine.Size(s.DB)
		return wire.Value{Kind: ':', Integer: int64(keys)}
	}
	j.Pause = func() bool {
		s.closing = s.guard.PauseFor(retryBusy) != nil
		return !s.closing
	}
	p.Command.Merge(&j)
	m.end = len(s.Reply.B)
	s.marks = append(s.marks, m)
	s.use(s.server.home)
	s.group = append(s.group[:0], p) // a flush has cleared it
}
