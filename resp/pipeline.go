package resp

import (
	"slices"
	"time"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/executor"
	"rlserver/resp/waitqueue"
	"rlserver/resp/wire"
)

// The calls of a pipeline run as a group: each by its own handler, with its own reply and effects,
// in order, but under the same locks on the shards of all their keys. As all keys are known before
// the first lookup, the objects are prefetched together: a decision on one of a hundred thousand
// limiters costs several cache misses and little else. And the journal gets one record for all.
//
// Clients only notice the time. Only the first call waits for locks: a later one whose shard is
// locked begins the next group. And the group ends before it passes a waiter for a key that one of
// its calls has changed.

// A group is bounded so that it does not lock others out for long: more would gain little.
const (
	maxGroupCalls = 16
	maxGroupBytes = 4 << 10 // of the first call, and of all others together
)

// isSmall reports whether a call is short.
func isSmall(words [][]byte) bool {
	size := 0
	for _, w := range words {
		size += len("$1\r\n\r\n") + len(w)
	}
	return size <= maxGroupBytes
}

// begin locks the shards that a call needs and, if possible, those of the calls behind it in the
// pipeline. now is Unix ms.
func (s *session) begin(p *command.Prepared, now int64) error {
	s.Hasher.Reset()
	s.addToGroup(p)
	if err := s.enter(p, s.Hasher.Keys); err != nil {
		return err
	}
	if len(s.group) == 0 { // it had to wait, and the replies before it were sent
		s.addToGroup(p)
	}
	if p.Command.Prepare != nil {
		p.Command.Prepare(&s.Call, p.Words)
	}
	if s.at != s.server.home { // a group has a clock of its own
		now = s.Env.Clock()
	}
	switch {
	case p.WantsAll():
		if !s.Tx.BeginUnlessHeld(now, s.DB, nil, true, p.Command.Flags&command.Write != 0) {
			return command.ErrBusy
		}
	case p.Command.Flags&command.Stepwise != 0 && s.Env.Engine.Holds.Late() > 0,
		p.Command.Flags&command.OwnLocks != 0 && s.server.Scripts.Busy() > 0:
		return command.ErrBusy // it would wait, and keep what it holds
	case len(p.Command.Keys) > 0:
		// CLIENT REPLY drops the reply of one call: in a group there are several
		if p.Command.JoinsOthers() && isSmall(p.Words) && s.replyMode == replyOn &&
			!s.messages.Subscribed() && s.Tracked == nil { // messages may come between the replies
			s.extendGroup()
		}
		if len(p.Words) > command.LongWork {
			s.TakesLong()
		}
		if !s.lock(now) {
			return command.ErrBusy
		}
		if s.GivenUp() {
			s.Tx.End()
			s.away.node.refused = true
			return errNotHere
		}
	}
	return nil
}

func (s *session) addToGroup(p *command.Prepared) {
	s.Hasher.Add(p)
	s.group = append(s.group, *p)
}

// extendGroup adds the calls that follow in the pipeline, up to the first that has not arrived in
// full, may not join, or would be refused. While the disk fails each call runs alone, see
// session.See.
func (s *session) extendGroup() {
	for offset := 0; len(s.group) < maxGroupCalls && len(s.Hasher.Keys) < engine.MaxPrefetched; {
		words, size, repeats := s.guard.Ahead(offset)
		if size == 0 || offset+size > maxGroupBytes ||
			offset == 0 && (!s.server.executor.Unhindered() || s.server.paused.Load() != nil) {
			return
		}
		calls, keys := len(s.group), len(s.Hasher.Keys)
		s.group = slices.Grow(s.group, 1)[:calls+1]
		p := &s.group[calls]
		if repeats = repeats && p.Repeat(s.Env, words, &s.group[calls-1]); !s.joins(p, words, repeats) {
			s.group, s.Hasher.Keys = s.group[:calls], s.Hasher.Keys[:keys]
			return
		}
		p.Size = size
		offset += size
	}
}

// joins prepares a call, unless it is prepared as it repeats one of the group, and reports whether
// it may run under the locks of the group's first call.
func (s *session) joins(p *command.Prepared, words [][]byte, repeats bool) bool {
	if !repeats && (p.Resolve(s.Env, words, s.Command) != nil || !p.Command.JoinsOthers()) {
		return false
	}
	if s.Check(p) != nil {
		return false
	}
	before := len(s.Hasher.Keys)
	s.Hasher.Add(p)
	return s.sameGroup(s.Hasher.Keys[before:])
}

// lock locks the keys of the first call, and of as many others as possible without waiting. It
// drops the rest from the group. It reports false if a script that takes too long uses these keys.
func (s *session) lock(now int64) (ok bool) {
	first := &s.group[0]
	if !s.Tx.BeginUnlessHeld(now, s.DB, s.Hasher.Keys[:first.Keys], false, first.Command.Flags&command.Write != 0) {
		return false
	}
	calls, keys := 1, first.Keys
	for calls < len(s.group) && s.Tx.Join(s.Hasher.Keys[keys:keys+s.group[calls].Keys]) {
		keys += s.group[calls].Keys
		calls++
	}
	s.group = s.group[:calls]
	s.Tx.Prefetch(s.Hasher.Keys[:keys])
	return true
}

// runGroup runs the calls whose locks are held, up to the first that has to wait. It returns the
// waiter of that call, or nil. The reply of the last call is not marked yet: often it depends on
// nothing. If a call panics, session.recovered ends the group behind it.
func (s *session) runGroup(elapsed time.Duration) *waitqueue.Waiter {
	keys := s.Hasher.Keys
	for i := range s.group {
		p := &s.group[i]
		if i > 0 {
			if s.Tx.Due() || len(s.Reply.B) >= wire.FlushSize || s.Reply.Truncated && s.isForNode() {
				s.group = s.group[:i]
				return nil
			}
			s.markRun(&s.group[i-1])
			s.guard.Take(p.Size)
			s.ran = i
			s.beginReply()
			if p.Command != s.Command {
				s.updateProfile(p.Command, elapsed)
			}
			s.calls++
			s.Tx.Next(s.DB, p.Command.Flags&command.Write != 0)
		}
		if executor.Handle(&s.Call, p, keys[:p.Keys:p.Keys]) {
			s.group = s.group[:i+1]
			return s.enqueue(*p)
		}
		if len(s.Postponed) > 0 { // they are written before other replies follow
			s.group = s.group[:i+1]
			return nil
		}
		keys = keys[p.Keys:]
	}
	return nil
}
