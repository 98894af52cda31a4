package resp

import (
	"fmt"
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/grammar"
	"slices"
	"strings"
	"time"
)

// execute takes one call through the only way there is: table, arity, authentication, locks, handler, effects. It leaves exactly one answer,
// and if that has to be waited for, it does. It may take calls that follow in the pipeline along, see pipeline.go.
func (s *session) execute(words [][]byte) {
	s.begun = len(s.Reply.B)
	if len(words) > manyWords && !s.takeArgs(len(words)) {
		s.closing = true
		return
	}
	now, elapsed := s.server.Time.Read()
	c, name, err := s.server.resolve(words)
	s.show(c, elapsed)
	if err == nil && !s.authenticated && c.Flags&command.NoAuth == 0 && !s.free() {
		err = command.ErrNoAuth
	}
	if err == nil {
		err = s.denied(c)
	}
	if c == nil && ofBrowser(words[0]) {
		s.shun()
		return
	}
	if err != nil {
		s.reject(c, err)
		return
	}
	s.Command = c
	s.calls++

	p := command.Prepared{Command: c, Words: words, Name: name}
	defer s.recovered()
	if s.transaction.joins(c) {
		s.queue(p)
		return
	}
	if c.Prepare != nil {
		c.Prepare(&s.Call, words)
	}
	s.begin(p, now)
	w := s.runTogether(elapsed)
	seen := s.Tx.End()
	if len(s.Postponed) > 0 {
		s.writePostponed()
	}
	s.See(seen)
	if w != nil {
		s.await(w)
	}
	if len(s.afterwards) > 0 {
		s.finish()
	}
}

// finish does what a handler has put off until no lock is held.
func (s *session) finish() {
	list := s.afterwards
	s.afterwards = nil
	for _, do := range list {
		do()
	}
}

// denied tells why a call that is right in itself is not taken now: it cannot stand in a transaction, or it would change something that
// the disk does not take, or would take memory that there is not, or it needs data that is still being loaded. For EXEC counts what is queued.
func (s *session) denied(c *command.Command) error {
	t, has, lacks := &s.transaction, c.Flags, ^c.Flags
	if t.open {
		switch {
		case t.joins(c) && c.Flags&(command.NoMulti|command.OwnLocks) != 0:
			return errNotInMulti
		case c.Name == "exec":
			has, lacks = has|t.has&(command.Write|command.DenyOOM), lacks|t.lacks
		}
	}
	grows := has&command.DenyOOM != 0 || t.joins(c) // what is queued takes memory, whatever it does
	if grows && s.server.Engine.Crowded() && s.server.loading.Load() == 0 && !s.makeRoom() {
		return engine.ErrOutOfMemory
	}
	return s.server.unavailable(has, lacks)
}

// unavailable tells why no call is taken now that has, and lacks, these flags.
func (s *Server) unavailable(has, lacks command.Flags) error {
	if has&(command.Write|command.Health) != 0 {
		if why := s.refusal(); why != "" {
			return engine.Error("MISCONF " + why)
		}
	}
	if lacks&command.Loading != 0 && s.loading.Load() != 0 {
		return command.ErrLoading
	}
	return nil
}

// See notes that what has just been answered may tell of any change up to a position: the replies
// of the batch wait for that. While the disk fails, some positions may never be reached: a call
// that only reads gets an error if it has seen such a change, and the client stays connected.
func (s *session) See(p engine.Position) {
	if p <= s.position {
		return
	}
	if why := s.server.refusal(); why != "" && len(s.together) == 1 && s.together[0].Command.Flags&command.Write == 0 {
		if s.server.journal.Wait(p) != nil {
			s.Reply.B = s.Reply.B[:s.begun]
			s.Refuse(engine.Error("MISCONF what this would read is not on the disk: " + why))
			return
		}
	}
	s.position = p
}

// resolve finds the command that a call names and how many words its name has, and checks how many follow.
func (s *Server) resolve(words [][]byte) (c *command.Command, name int, err error) {
	c, name = command.Commands.Find(words[0]), 1
	if c == nil && needsScripting("", words[0]) {
		return nil, 0, errNoScripts
	}
	if c == nil {
		return nil, 0, unknownCommand(words)
	}
	if len(c.Subs) > 0 && len(words) > 1 {
		parent := c
		if c, name = parent.Sub(words[1]), 2; c == nil {
			if needsScripting(parent.Name, words[1]) {
				return nil, 0, errNoScripts
			}
			return nil, 0, engine.Error(fmt.Sprintf("ERR unknown subcommand '%.128s'. Try %s HELP.", words[1], strings.ToUpper(parent.Name)))
		}
	}
	if c.Rejects(len(words)) {
		return c, 0, engine.Error("ERR wrong number of arguments for '" + c.FullName() + "' command")
	}
	if c.BoundsWords() {
		err = c.TooLong(words, s.Settings.MaxKey.Load())
	}
	return c, name, err
}

// ofBrowser tells whether what should be a command is from an HTTP request: a web page can make a browser send one here, and have
// commands in its body.
func ofBrowser(name []byte) bool {
	return grammar.EqualFold(name, "POST") || grammar.EqualFold(name, "HOST:")
}

// shun ends the session without a word. The log tells of it once a minute at most, lest whoever does it fills the disk.
func (s *session) shun() {
	s.closing = true
	if s.server.seldom(&s.server.shunned, time.Minute) {
		s.server.Log.Warn("a client sent POST or Host: as a command: its connection was closed, as a web page may be trying to reach this server",
			"client", s.Client, "address", s.peer())
	}
}

// unknownCommand quotes what was sent, within the bounds that Redis sets.
func unknownCommand(words [][]byte) error {
	text := fmt.Sprintf("ERR unknown command '%.128s', with args beginning with: ", words[0])
	quoted := 0
	for _, w := range words[1:] {
		if quoted >= 128 {
			break
		}
		arg := fmt.Sprintf("'%.*s' ", 128-quoted, w)
		quoted += len(arg)
		text += arg
	}
	return engine.Error(text)
}

// reject answers a call that comes to no handler. Of a transaction that is being gathered nothing will run then; c is nil for no command.
func (s *session) reject(c *command.Command, err error) {
	text := err.Error()
	s.transaction.broken = s.transaction.open
	if c != nil && c.FullName() == "exec" {
		s.transaction = transaction{}
		s.unwatch()
		text = "EXECABORT Transaction discarded because of: " + strings.TrimPrefix(text, "ERR ")
	}
	s.Errors++
	s.Reply.Error(text)
}

// recovered answers a panic of a handler: the client gets an error, the log the stack, and the process goes on.
func (s *session) recovered() {
	fault := recover()
	if fault == nil {
		return
	}
	s.Postponed, s.Ready = nil, nil
	s.See(s.Tx.End())
	s.Fault(fault, s.begun)
}

// writePostponed puts what was postponed into the replies.
func (s *session) writePostponed() {
	list := s.Postponed
	s.Postponed = nil
	first := list[0].At
	rest := slices.Clone(s.Reply.B[first:])
	s.Reply.B = s.Reply.B[:first]
	for i, p := range list {
		end := first + len(rest)
		if i+1 < len(list) {
			end = list[i+1].At
		}
		mark := len(s.Reply.B)
		if err := p.Write(&s.Call); err != nil {
			s.Reply.B = s.Reply.B[:mark]
			s.Refuse(err)
		}
		s.Reply.B = append(s.Reply.B, rest[p.At-first:end-first]...)
	}
}
