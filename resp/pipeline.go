package resp

import (
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/waitqueue"
	"rlserver/resp/wire"
	"time"
)

// Calls that arrive together in a pipeline are run together: each by its own handler, with its own answer and effects, in their order, but under
// one hold of the shards of all their keys. So what they need can be fetched from memory side by side, as all keys are known before the first is
// looked up; a cache is missed several times in each of a hundred thousand limiters, and that is what a decision on one of them costs. And the
// effects of all go to the journal as one record.
//
// Nobody can see it but by the clock. Only the first call waits for locks: one further on whose shard is held by somebody else begins the next
// hold. And before anybody who waits for a key that a call has changed is passed by, the hold ends.

// What is run under one hold is bounded, lest it shut others out for long: more would gain little.
const (
	mostTogether      = 16      // calls
	mostBytesTogether = 4 << 10 // of the first call, and of all others together
)

// small tells whether a call is so short that it cannot ask for much, but by its numbers.
func small(words [][]byte) bool {
	size := 0
	for _, w := range words {
		size += len("$1\r\n\r\n") + len(w)
	}
	return size <= mostBytesTogether
}

// begin locks what a call needs and, if it may, what the calls behind it need.
func (s *session) begin(p command.Prepared, now int64) {
	s.together = s.together[:0]
	s.hasher.Reset()
	s.gather(p)
	switch {
	case p.WantsAll():
		s.Tx.BeginAll(now, s.Db, p.Command.Flags&command.Write != 0)
	case len(p.Command.Keys) > 0:
		if p.Command.JoinsOthers() && small(p.Words) && s.silence == speak { // effects may have their values in the reply: it is taken back after the hold
			s.gatherMore()
		}
		s.lock(now)
	}
}

// gather adds a call to those that are run together.
func (s *session) gather(p command.Prepared) {
	s.hasher.Add(&p)
	s.together = append(s.together, p)
}

// gatherMore adds what follows in the pipeline, as far as it is there and nothing speaks against it. What is to be refused is left to come first.
// While the disk fails, each call is run by itself, see session.See.
func (s *session) gatherMore() {
	for offset := 0; len(s.together) < mostTogether && len(s.hasher.Keys) < engine.MostPrefetched; {
		words, size := s.guard.Ahead(offset)
		if size == 0 || offset+size > mostBytesTogether || offset == 0 && s.server.refusal() != "" {
			return
		}
		c, name, err := s.server.resolve(words)
		if err != nil || !c.JoinsOthers() || s.server.Engine.Crowded() || s.denied(c) != nil {
			return
		}
		s.gather(command.Prepared{Command: c, Words: words, Name: name, Size: size})
		offset += size
	}
}

// lock takes the locks of the first call, and of as many of the others as need no waiting. Those that are left over are gathered again.
func (s *session) lock(now int64) {
	first := &s.together[0]
	s.Tx.Begin(now, s.Db, s.hasher.Keys[:first.Keys], first.Command.Flags&command.Write != 0)
	calls, keys := 1, first.Keys
	for calls < len(s.together) && s.Tx.Join(s.hasher.Keys[keys:keys+s.together[calls].Keys]) {
		keys += s.together[calls].Keys
		calls++
	}
	s.together = s.together[:calls]
	s.Tx.Prefetch(s.hasher.Keys[:keys])
}

// runTogether runs the calls whose locks are held, until one is to wait, which is returned.
func (s *session) runTogether(elapsed time.Duration) *waitqueue.Waiter {
	keys := s.hasher.Keys
	for i := range s.together {
		p := &s.together[i]
		if i > 0 {
			if s.Tx.Due() || len(s.Reply.B) >= wire.FlushSize {
				return nil
			}
			s.guard.Take(p.Size)
			s.begun = len(s.Reply.B)
			s.show(p.Command, elapsed)
			s.calls++
			s.Tx.Next(s.Db, p.Command.Flags&command.Write != 0)
		}
		if s.Run(p, keys[:p.Keys:p.Keys]) {
			return s.hold(*p)
		}
		keys = keys[p.Keys:]
	}
	return nil
}
