package resp

import (
	"bytes"
	"slices"
	"strconv"

	"rlserver/grammar"
	"rlserver/resp/command"
)

// Commands on the whole keyspace run on all groups that this node leads, one after the other.

// overGroups has the commands that do, and how their replies are joined.
var overGroups = map[string]func(s *session, p *command.Prepared, all []*partition){
	"dbsize":   addUp,
	"keys":     joinArrays,
	"flushall": lastReply,
	"flushdb":  lastReply,
	"scan":     scanGroups,
}

// ledGroups returns the partitions that this node leads, by group.
func (s *session) ledGroups() (all []*partition) {
	for group := range s.server.cluster.Groups() {
		if shared, err := s.server.cluster.Lead(group); err == nil {
			all = append(all, s.server.partitionOf(group, shared))
		}
	}
	return all
}

// runOn runs a command on one partition, and returns its reply, which is removed from the buffer.
func (s *session) runOn(p *command.Prepared, on *partition) (reply []byte, failed bool) {
	s.use(on)
	start, errs := len(s.Reply.B), s.Errors
	if p.WantsAll() {
		s.Tx.BeginAll(s.Env.Clock(), s.DB, p.Command.Flags&command.Write != 0)
	}
	s.Run(p, nil)
	if p.WantsAll() {
		s.Tx.End()
	}
	s.owe()
	reply = bytes.Clone(s.Reply.B[start:])
	s.Reply.B = s.Reply.B[:start]
	return reply, s.Errors > errs
}

// runOnGroups runs a command on all groups that this node leads.
func (s *session) runOnGroups(p command.Prepared) {
	start := len(s.Reply.B)
	overGroups[p.Command.Name](s, &p, s.ledGroups())
	c := s.clustered
	c.marks = append(c.marks, mark{
		start: start, end: len(s.Reply.B), all: true, write: p.Command.Flags&command.Write != 0,
	})
	s.use(s.server.lobby)
}

// addUp joins numbers.
func addUp(s *session, p *command.Prepared, all []*partition) {
	sum := int64(0)
	for _, on := range all {
		reply, failed := s.runOn(p, on)
		if failed {
			s.Reply.B = append(s.Reply.B, reply...)
			return
		}
		n, _ := grammar.ParseInt(bytes.TrimSuffix(reply[1:], []byte("\r\n")))
		sum += n
	}
	s.Reply.Integer(sum)
}

// joinArrays joins arrays of names.
func joinArrays(s *session, p *command.Prepared, all []*partition) {
	count, names := 0, []byte(nil)
	for _, on := range all {
		reply, failed := s.runOn(p, on)
		head, rest, _ := bytes.Cut(reply, []byte("\r\n"))
		n, err := strconv.Atoi(string(head[1:]))
		if failed || err != nil {
			s.Reply.B = append(s.Reply.B, reply...)
			return
		}
		count, names = count+n, append(names, rest...)
	}
	s.Reply.Array(count)
	s.Reply.B = append(s.Reply.B, names...)
}

// lastReply keeps one of several replies that are alike.
func lastReply(s *session, p *command.Prepared, all []*partition) {
	reply := []byte("+OK\r\n")
	for _, on := range all {
		var failed bool
		if reply, failed = s.runOn(p, on); failed {
			break
		}
	}
	s.Reply.B = append(s.Reply.B, reply...)
}

// cursorGroupBits is how many low bits of a cursor of SCAN are the number of the group that it
// walks through. The groups are walked through in order.
const cursorGroupBits = 10

// scanGroups walks through the groups that this node leads, as far as it does when their turn
// comes.
func scanGroups(s *session, p *command.Prepared, all []*partition) {
	cursor, err := strconv.ParseUint(string(p.Words[1]), 10, 64)
	if err != nil || len(all) == 0 {
		reply, _ := s.runOn(p, s.server.lobby)
		s.Reply.B = append(s.Reply.B, reply...)
		return
	}
	group, within := int(cursor&(1<<cursorGroupBits-1)), cursor>>cursorGroupBits
	at := slices.IndexFunc(all, func(on *partition) bool { return on.group >= group })
	if at < 0 {
		at, within = len(all)-1, 0 // the last one has moved away
	} else if all[at].group != group {
		within = 0
	}
	words := slices.Clone(p.Words)
	words[1] = strconv.AppendUint(nil, within, 10)
	inner := *p
	inner.Words = words
	reply, failed := s.runOn(&inner, all[at])
	if failed {
		s.Reply.B = append(s.Reply.B, reply...)
		return
	}
	// *2 $<length> <cursor> *<n> …
	parts := bytes.SplitN(reply, []byte("\r\n"), 4)
	next, _ := strconv.ParseUint(string(parts[2]), 10, 64)
	switch {
	case next != 0:
		next = next<<cursorGroupBits | uint64(all[at].group)
	case at+1 < len(all):
		next = uint64(all[at+1].group)
	}
	s.Reply.Array(2)
	s.Reply.BulkString(strconv.FormatUint(next, 10))
	s.Reply.B = append(s.Reply.B, parts[3]...)
}
