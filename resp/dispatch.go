package resp

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"rlserver/engine"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
	"rlserver/resp/executor"
)

// execute runs one call: command table, arity, login, memory and disk, locks, handler, effects. It
// leaves exactly one reply, and waits for it if the call has to wait. It may also run calls that
// follow in the pipeline, see pipeline.go.
func (s *session) execute(words [][]byte) {
	s.run(words)
	if s.authenticated {
		return
	}
	if s.refused++; s.refused == maxRefused {
		s.closing = true
		s.server.loginTimeouts.Add(1)
	}
}

// maxRefused is how many calls a client may make without a login before it is closed.
const maxRefused = 100

func (s *session) run(words [][]byte) {
	s.group, s.ran = s.group[:0], 0
	s.beginReply()
	s.messages.Begin(s.replyMode != replyOn)
	if len(words) > manyWords && !s.accountArgs(len(words)) {
		s.closing = true
		return
	}
	now, elapsed := s.ReadClock()
	var p command.Prepared
	err := p.Resolve(s.Env, words, s.Command)
	c := p.Command
	s.updateProfile(c, elapsed)
	if err == nil {
		err = s.prepareFor(&p)
	}
	if err == nil && s.server.paused.Load() != nil && s.isPaused(&p) {
		s.runAfterPause(p)
		return
	}
	if c == nil && isHTTP(words[0]) {
		s.closeHTTP()
		return
	}
	if err != nil {
		s.reject(c, err)
		return
	}
	s.Command = c
	s.calls++

	defer s.recovered()
	if s.transaction.queues(c) {
		s.queue(p)
		return
	}
	if s.spreads(c) {
		s.runOnGroups(p)
		s.Measure(s.group, elapsed)
		s.runDeferred()
		return
	}
	if err := s.begin(&p, now); err != nil {
		if err == errElsewhere {
			s.passOn(&p)
		} else {
			s.reject(c, err)
		}
		return
	}
	if s.server.paused.Load() != nil && s.pausedUnderLocks(&p) {
		return
	}
	w := s.runGroup(elapsed)
	if s.again {
		s.again = false
		s.retryAfterPause(p)
		return
	}
	seen := s.Tx.End()
	if len(s.Postponed) > 0 {
		s.WritePostponed()
		last := &s.group[len(s.group)-1]
		s.Changed = s.Changed || last.Command.Flags&command.Write != 0
	}
	if w == nil && (seen > 0 || len(s.depends) > 0) {
		s.markRun(&s.group[len(s.group)-1])
	}
	s.See(seen)
	s.Measure(s.group, elapsed)
	if w != nil {
		s.await(w)
	}
	if len(s.deferred) > 0 {
		s.runDeferred()
	}
}

// prepareFor checks whether a call may run now, and returns the error if not. It logs the client in
// if the default user no longer needs a password, and evicts keys if the call may take memory. No
// lock is held.
func (s *session) prepareFor(p *command.Prepared) error {
	c := p.Command
	if !s.authenticated && c.Flags&command.NoAuth == 0 {
		if s.loginIfNotNeeded(); !s.authenticated {
			return command.ErrNoAuth
		}
	}
	if s.transaction.queues(c) && c.Flags&(command.NoMulti|command.OwnLocks) != 0 {
		return errNotInMulti
	}
	has, lacks := s.transaction.flags(c)
	if err := s.Admit(p, s.context(), has, lacks); err != nil {
		if err == engine.ErrOutOfMemory {
			s.server.oomRefusals.Add(1)
		}
		return err
	}
	switch {
	case s.messages.Client != nil && !s.Reply.RESP3 && s.messages.Subscribed() && c.Flags&command.WhileSubscribed == 0:
		return engine.Error("ERR Can't execute '" + c.FullName() + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / " +
			"PING / QUIT / RESET are allowed in this context")
	case s.profile.monitors.Load() && has&(command.Readonly|command.Write) != 0:
		return errMonitorKeys
	}
	return nil
}

// context returns what the calls of the session are part of.
func (s *session) context() executor.Context {
	if s.transaction.open {
		return executor.Multi
	}
	return executor.Toplevel
}

// DeferUntilUnlocked implements the connection of command.Call.
func (s *session) DeferUntilUnlocked(do func()) { s.deferred = append(s.deferred, do) }

func (s *session) runDeferred() {
	list := s.deferred
	s.deferred = nil
	for _, do := range list {
		do()
	}
	s.Paused()
}

// recovered handles a panic: the call gets an error, the stack is logged, and the process goes on.
// The calls behind it in its group run next.
func (s *session) recovered() {
	fault := recover()
	if fault == nil {
		return
	}
	s.dropMarks()
	s.See(s.Tx.End())
	p := new(command.Prepared)
	if s.group = s.group[:min(len(s.group), s.ran+1)]; len(s.group) > 0 {
		p = &s.group[len(s.group)-1]
	}
	executor.Panicked(&s.Call, p, fault, s.replyStart, 0)
	if p.Command != nil { // no second panic
		s.Measure(s.group, s.server.Time.Elapsed())
	}
	s.runDeferred()
}

// broken leaves nothing that others wait for when the session has panicked outside of a call.
func (s *session) broken(fault any) {
	s.server.Log.Error("a session panicked, and its connection is closed", "client", s.Client,
		"fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
	s.Tx.End()
	s.messages.Sent()
}

// isHTTP reports whether the name of a command is from an HTTP request: a web page can make a
// browser send one to this port, with commands in its body.
func isHTTP(name []byte) bool {
	return grammar.EqualFold(name, "POST") || grammar.EqualFold(name, "HOST:")
}

// closeHTTP ends the session. Unlike Redis it says why: people point a browser or a health check at
// this port.
func (s *session) closeHTTP() {
	s.closing = true
	s.ReplyError("ERR this port speaks the Redis protocol, not HTTP: metrics and health checks are at --http-port")
	if _, ok := s.server.allows(&s.server.httpLog, time.Minute); ok {
		s.server.Log.Warn("a client speaks HTTP on a port of the Redis protocol: its connection was closed, as a web "+
			"page may be trying to reach this server; metrics and health checks are at --http-port",
			"client", s.Client, "address", s.Address())
	}
}

// reject replies to a call that cannot run, and makes EXEC of an open transaction fail. c is nil if
// the command is unknown.
func (s *session) reject(c *command.Command, err error) {
	text := err.Error()
	s.transaction.broken = s.transaction.open
	if c != nil && c == execCommand {
		s.transaction = transaction{}
		s.unwatch()
		text = execAbortedBy + strings.TrimPrefix(text, "ERR ")
	}
	if c != nil {
		s.server.Stats.Rejected(c.Index, int(s.Client))
	}
	s.ReplyError(text)
}
