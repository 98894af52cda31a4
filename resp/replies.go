package resp

import (
	"slices"
	"time"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/pubsub"
	"rlserver/resp/wire"
)

// The replies of a batch wait, together, until those partitions say that they may be sent whose
// keys the calls have changed or seen. If one says no, marks have the places of its replies.

// journal answers from when on the replies of a partition may be sent, and what is sent instead if
// they may not.
type journal interface {
	// Wait returns nil when replies may be sent that depend on changes up to a position. After an
	// error these changes may be lost.
	Wait(seen engine.Position) error
	// Ask begins what wait ends, so that a client can wait for several partitions at once.
	Ask(seen engine.Position) (wait func() error)
	// Unreadable returns why a call that only reads is refused if it shows changes up to a
	// position, or nil.
	Unreadable(seen engine.Position) error
	// Instead returns the error that replaces a reply after Wait has returned err, and counts it.
	Instead(m mark, err error) engine.Error
}

// dependence is the latest change of a partition on which replies of the batch depend.
type dependence struct {
	partition *partition
	seen      engine.Position
	wait      func() error
	err       error
}

// mark is the place of replies, and what is sent instead of them if they may not be sent.
type mark struct {
	start, end int
	partition  *partition
	all        bool // it depends on all partitions of the batch
	changed    bool // the call may have changed something
	once       bool // the call has no further effect when it is sent again
	group      int  // of a forwarded call
	passed     int  // number of the call among forwarded ones, plus 1; 0: it runs here
	event      bool // not replies but events, dropped if the changes may be lost
}

// beginReply notes that the reply of a call begins.
func (s *session) beginReply() { s.replyStart, s.firstMark = len(s.Reply.B), len(s.marks) }

// markReply marks the reply of the current call. See then says on what it depends.
func (s *session) markReply(changed, once bool) {
	at := s.at
	if at.journal == nil {
		return
	}
	if n := len(s.marks); n > 0 {
		m := &s.marks[n-1]
		alike := m.changed == changed && m.once == once && !m.all && m.passed == 0 && !m.event
		if alike && m.end == s.replyStart && m.partition == at {
			m.end = len(s.Reply.B)
			return
		}
	}
	s.marks = append(s.marks, mark{
		start: s.replyStart, end: len(s.Reply.B), partition: at, changed: changed, once: once,
	})
}

// extendMark makes the last mark include the reply of the current call, if it begins where that one
// ends and the errors of the partition make no difference between calls.
func (s *session) extendMark() bool {
	last := len(s.marks) - 1
	if last < 0 || s.at.advises || s.marks[last].partition != s.at || s.marks[last].end != s.replyStart ||
		s.marks[last].event {
		return false
	}
	s.marks[last].end = len(s.Reply.B)
	return true
}

// markRun is markReply for a call that has just run.
func (s *session) markRun(p *command.Prepared) {
	if s.at.journal == nil || s.extendMark() {
		return
	}
	if p.Command.Flags&command.WhileSubscribed != 0 && p.Command.Flags&command.PubSub != 0 {
		return // these may have several replies, or none
	}
	// calls without keys change things in other ways: EXEC, RL.POLICY
	changed := s.Changed || len(p.Command.Keys) == 0 && p.Command.Flags&command.Readonly == 0
	s.markReply(changed, changed && (s.CountsOnce || p.CountsOnce()))
}

// insertMessages inserts messages before the reply of the current call. events are those that are
// events of changes.
func (s *session) insertMessages(list []byte, events []pubsub.Span) {
	if s.Reply.Truncated {
		return
	}
	at, size := s.replyStart, len(list)
	s.Reply.B = slices.Insert(s.Reply.B, at, list...)
	for i := len(s.marks) - 1; i >= 0 && s.marks[i].end > at; i-- {
		m := &s.marks[i]
		behind := *m
		m.start, m.end = m.start+size, m.end+size
		if behind.start < at {
			behind.end, m.start = at, at+size
			s.marks = slices.Insert(s.marks, i, behind)
		}
	}
	i := min(s.firstMark, len(s.marks))
	for n, e := range events {
		s.marks = slices.Insert(s.marks, i+n, mark{start: at + e.Start, end: at + e.End, event: true})
	}
}

// appendEvents appends events behind the reply of the current call.
func (s *session) appendEvents(list []byte) {
	if start := len(s.Reply.B); !s.Reply.Truncated && len(list) > 0 {
		s.Reply.B = append(s.Reply.B, list...)
		s.marks = append(s.marks, mark{start: start, end: len(s.Reply.B), event: true})
	}
}

// dropMarks removes the marks of the current call. Those of forwarded calls before it may begin
// where its reply does.
func (s *session) dropMarks() {
	n := min(s.firstMark, len(s.marks))
	if s.marks = s.marks[:n]; n > 0 {
		s.marks[n-1].end = min(s.marks[n-1].end, s.replyStart)
	}
}

// dropReply drops the reply of the current call.
func (s *session) dropReply() {
	s.dropMarks()
	s.Reply.B = s.Reply.B[:s.replyStart]
}

// See records that replies depend on changes of the current partition up to a position. While the
// disk fails, some positions are never reached: a call that has only read then gets an error, and
// the client stays connected.
func (s *session) See(seen engine.Position) {
	if n := len(s.depends); n > 0 && s.depends[n-1].partition == s.at && seen <= s.depends[n-1].seen {
		return
	}
	if seen == 0 || s.at.journal == nil {
		for n := len(s.marks); len(s.depends) == 0 && n > 0 && s.marks[n-1].passed == 0 && !s.marks[n-1].all; n-- {
			s.marks = s.marks[:n-1] // so far no reply depends on anything
		}
		return
	}
	if len(s.group) == 1 && s.group[0].Command != nil && s.group[0].Command.Flags&command.Write == 0 && !s.Changed {
		if err := s.at.journal.Unreadable(seen); err != nil {
			s.dropReply()
			s.Refuse(err)
			return
		}
	}
	for i := range s.depends {
		if d := &s.depends[i]; d.partition == s.at {
			d.seen = max(d.seen, seen)
			return
		}
	}
	s.depends = append(s.depends, dependence{partition: s.at, seen: seen})
}

// awaitDurable waits until the replies of the batch may be sent, and for those of other nodes.
// Replies that may not be sent are replaced by errors.
func (s *session) awaitDurable() {
	passed := s.away.calls.Pending() > 0
	failed := s.awaitPartitions(passed)
	if failed || passed {
		s.replaceReplies(failed)
	}
	if failed {
		s.messages.DropEvents()
	}
	if passed {
		s.away.calls.Done()
	}
	clear(s.depends)
	s.depends = s.depends[:0]
	clear(s.marks)
	if s.marks = s.marks[:0]; cap(s.marks) > maxKeptMarks {
		s.marks = nil
	}
}

// maxKeptMarks is the number of marks for which a session keeps memory between batches.
const maxKeptMarks = 128

// awaitPartitions waits for all partitions on which the batch depends, and reports whether one of
// them has failed. It sends the calls that other nodes have to run.
func (s *session) awaitPartitions(passed bool) (failed bool) {
	if len(s.depends) == 1 && !passed {
		d := &s.depends[0]
		d.err = d.partition.journal.Wait(d.seen)
		return d.err != nil
	}
	for i := range s.depends {
		d := &s.depends[i]
		d.wait = d.partition.journal.Ask(d.seen)
	}
	if passed {
		s.away.calls.Send(s.away.as)
	}
	for i := range s.depends {
		s.depends[i].err = s.depends[i].wait()
		failed = failed || s.depends[i].err != nil
	}
	return failed
}

// failed returns the dependence that forbids to send a reply, or nil.
func (s *session) failed(m *mark) *dependence {
	for i := range s.depends {
		if d := &s.depends[i]; d.err != nil && (m.all || d.partition == m.partition) {
			return d
		}
	}
	return nil
}

// replaceReplies inserts the replies of other nodes, and replaces those that may not be sent.
func (s *session) replaceReplies(failed bool) {
	if s.Reply.Truncated {
		return // the client is closed without replies
	}
	from := s.Reply.B
	s.Reply.B, s.Reply.NextCheck = make([]byte, 0, len(from)), 0
	done := 0
	for i := range s.marks {
		m := &s.marks[i]
		if m.event {
			if failed {
				s.Reply.B = append(s.Reply.B, from[done:m.start]...)
				done = m.end
			}
			continue
		}
		var why *dependence
		if m.passed == 0 && failed {
			why = s.failed(m)
		}
		if m.passed == 0 && why == nil {
			continue
		}
		s.Reply.B = append(s.Reply.B, from[done:m.start]...)
		done = m.end
		if m.passed > 0 {
			s.collect(*m)
		} else {
			for range wire.CountReplies(from[m.start:m.end]) {
				s.ReplyError(string(why.partition.journal.Instead(*m, why.err)))
			}
		}
		if s.closing || s.Reply.Truncated {
			return
		}
	}
	s.Reply.B = append(s.Reply.B, from[done:]...)
}

// uncertain returns the error for a call on a group whose outcome is unknown, and counts it.
func (s *Server) uncertain(group int, m mark) engine.Error {
	counts := s.Stats.Group(group)
	switch {
	case !m.changed:
		counts.Repeat()
		return errLeaderChanged
	case m.once:
		counts.Repeat()
		return errOutcomeWithID
	}
	counts.Uncertain()
	return errUncertain
}

// synced is the journal of a server alone, whose replies wait until its log has their changes.
type synced struct {
	engine.Journal
	server *Server
}

// Wait implements journal.
func (j synced) Wait(seen engine.Position) error {
	err := j.Journal.Wait(seen)
	if err != nil {
		if _, ok := j.server.allows(&j.server.journalLog, time.Second); ok {
			j.server.Log.Error("changes could not be written: the calls that made or show them get errors",
				"error", err)
		}
	}
	return err
}

func (j synced) Ask(seen engine.Position) func() error { return func() error { return j.Wait(seen) } }

func (j synced) Unreadable(seen engine.Position) error {
	if why := j.server.Refusal(); why != "" && j.Journal.Wait(seen) != nil {
		return engine.Error("MISCONF what this would read is not on the disk: " + why)
	}
	return nil
}

func (synced) Instead(_ mark, err error) engine.Error {
	return engine.Error("MISCONF the changes of this call, or those that it shows, may be lost: " + err.Error())
}
