package resp

import (
	"rlserver/engine"
)

func init() {
	const alike = noScript | loading | stale | allowBusy
	register(
		&command{name: "multi", arity: 1, flags: alike | fast | immediate, group: "transactions", since: "1.2.0", complexity: "O(1)",
			summary: "Mark the start of a transaction block", run: multiStart},
		&command{name: "exec", arity: 1, flags: noScript | loading | stale | skipSlowlog | immediate, group: "transactions", since: "1.2.0",
			complexity: "Depends on commands in the transaction",
			summary:    "Execute all commands issued after MULTI", run: exec},
		&command{name: "discard", arity: 1, flags: alike | fast | immediate, group: "transactions", since: "2.0.0",
			complexity: "O(N), when N is the number of queued commands",
			summary:    "Discard all commands issued after MULTI", run: discard},
		&command{name: "watch", arity: -2, flags: alike | fast | immediate, group: "transactions", since: "2.2.0", complexity: "O(1) for every key.",
			keys: []keySpec{keysToEnd("RO", 1, 1)}, syntax: "key [key ...]",
			summary: "Watch the given keys to determine execution of the MULTI/EXEC block", run: watch},
		&command{name: "unwatch", arity: 1, flags: alike | fast, group: "transactions", since: "2.2.0", complexity: "O(1)",
			summary: "Forget about all watched keys", run: unwatch},
	)
}

const (
	errNestedMulti    = engine.Error("ERR MULTI calls can not be nested")
	errExecAlone      = engine.Error("ERR EXEC without MULTI")
	errDiscardAlone   = engine.Error("ERR DISCARD without MULTI")
	errWatchInMulti   = engine.Error("ERR WATCH inside MULTI is not allowed")
	errNotInMulti     = engine.Error("ERR Command not allowed inside a transaction")
	errExecAborted    = engine.Error("EXECABORT Transaction discarded because of previous errors.")
	errQueueTooLarge  = engine.Error("ERR the transaction is too large: its commands may take 1 GB together")
	maxQueued         = defaultMaxQuery // bytes that the commands of a transaction may take
	queuedCommandCost = 160             // bytes that one takes beside its words: its place in the list, which grows by a quarter, and rounding
)

// transaction is what a session gathers between MULTI and EXEC. The zero value is none.
type transaction struct {
	open   bool
	broken bool // a command was refused: EXEC will run none
	calls  []prepared
	size   int   // bytes
	has    flags // those that any of the calls has
	lacks  flags // those that any of the calls lacks
}

// shown is how many commands are queued, and one more; 0 for no transaction.
func (t *transaction) shown() int32 {
	if !t.open {
		return 0
	}
	return int32(len(t.calls)) + 1
}

// joins tells whether a command is queued rather than run.
func (t *transaction) joins(c *command) bool {
	return t.open && c.flags&immediate == 0
}

// queue keeps a command for EXEC. What was sent is copied: its memory belongs to the connection.
func (s *session) queue(p prepared) {
	t := &s.transaction
	size := queuedCommandCost
	for _, w := range p.words {
		size += len(w) + 24
	}
	if t.size+size > maxQueued {
		t.broken = true
		s.refuse(errQueueTooLarge)
		return
	}
	if t.size+size-int(s.guard.held.parts[heldMulti].Load()) > fullReply {
		s.guard.held.note(heldMulti, t.size+size)
		s.relieve()
	}
	p.words = cloneWords(p.words)
	t.calls, t.size = append(t.calls, p), t.size+size
	t.has, t.lacks = t.has|p.command.flags, t.lacks|^p.command.flags
	if p.wantsAll() {
		t.has |= wholeKeyspace
	}
	s.reply.status("QUEUED")
}

func multiStart(c *call) error {
	s := sessionOf(c)
	if s.transaction.open {
		return errNestedMulti
	}
	s.transaction.open = true

	c.reply.ok()
	return nil
}

// exec runs what was queued, under the locks of all its keys and of those that are watched: nobody sees a part of it, and all its
// effects go to the journal as one.
func exec(c *call) error {
	t := sessionOf(c).transaction
	if !t.open {
		return errExecAlone
	}
	sessionOf(c).transaction = transaction{}
	if t.broken {
		sessionOf(c).unwatch()
		return errExecAborted
	}

	s := sessionOf(c)
	s.beginAll(&t)
	intact := s.tx.Intact(&s.watching)
	s.tx.Unwatch(&s.watching)
	if !intact {
		s.reply.nullArray()
		return nil
	}
	s.executing = true
	defer func() { s.executing = false }()
	s.reply.array(len(t.calls))
	keys := s.hasher.keys
	for i := range t.calls {
		p := &t.calls[i]
		s.tx.Next(s.db, p.command.flags&write != 0)
		s.run(p, keys[:p.keys])
		keys = keys[p.keys:]
	}
	return nil
}

// beginAll locks what the queued commands and those who watch need.
func (s *session) beginAll(t *transaction) {
	s.hasher.reset()
	for i := range t.calls {
		s.hasher.add(&t.calls[i])
	}
	if t.has&(wholeKeyspace|stepwise) != 0 {
		s.tx.BeginAll(s.server.clock(), s.db, t.has&write != 0)
		return
	}
	own := len(s.hasher.keys)
	s.hasher.keys = s.watching.Keys(s.hasher.keys)
	s.tx.Begin(s.server.clock(), s.db, s.hasher.keys, t.has&write != 0)
	s.hasher.keys = s.hasher.keys[:own]
	s.tx.Prefetch(s.hasher.keys)
}

func discard(c *call) error {
	s := sessionOf(c)
	if !s.transaction.open {
		return errDiscardAlone
	}
	s.transaction = transaction{}
	s.unwatch()

	c.reply.ok()
	return nil
}

func watch(c *call) error {
	s := sessionOf(c)
	if s.transaction.open {
		return errWatchInMulti
	}
	for c.args.more() {
		c.tx.Watch(&s.watching, c.args.key())
	}

	c.reply.ok()
	return nil
}

func unwatch(c *call) error {
	sessionOf(c).unwatch()

	c.reply.ok()
	return nil
}

// unwatch ends what WATCH began. No lock is held.
func (s *session) unwatch() {
	keys := s.watching.Keys(nil)
	if len(keys) == 0 {
		return
	}
	s.tx.Begin(s.server.clock(), s.db, keys, false)
	s.tx.Unwatch(&s.watching)
	s.tx.End()
}
