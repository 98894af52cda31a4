package resp

import (
	"rlserver/engine"
	"rlserver/resp/clientmem"
	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/waitqueue"
	"rlserver/resp/wire"
)

func init() {
	const alike = command.NoScript | command.Loading | command.Stale | command.AllowBusy
	command.Register(
		&command.Command{Name: "multi", Arity: 1, Flags: alike | command.Fast | command.Immediate, Group: "transactions", Since: "1.2.0", Complexity: "O(1)",
			Summary: "Mark the start of a transaction block", Run: multiStart},
		&command.Command{Name: "exec", Arity: 1, Flags: command.NoScript | command.Loading | command.Stale | command.SkipSlowlog | command.Immediate, Group: "transactions", Since: "1.2.0",
			Complexity: "Depends on commands in the transaction",
			Summary:    "Execute all commands issued after MULTI", Run: exec},
		&command.Command{Name: "discard", Arity: 1, Flags: alike | command.Fast | command.Immediate, Group: "transactions", Since: "2.0.0",
			Complexity: "O(N), when N is the number of queued commands",
			Summary:    "Discard all commands issued after MULTI", Run: discard},
		&command.Command{Name: "watch", Arity: -2, Flags: alike | command.Fast | command.Immediate, Group: "transactions", Since: "2.2.0", Complexity: "O(1) for every key.",
			Keys: []command.KeySpec{command.KeysToEnd("RO", 1, 1)}, Syntax: "key [key ...]",
			Summary: "Watch the given keys to determine execution of the MULTI/EXEC block", Run: watch},
		&command.Command{Name: "unwatch", Arity: 1, Flags: alike | command.Fast, Group: "transactions", Since: "2.2.0", Complexity: "O(1)",
			Summary: "Forget about all watched keys", Run: unwatch},
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
	maxQueued         = config.DefaultMaxQuery // bytes that the commands of a transaction may take
	queuedCommandCost = 160                    // bytes that one takes beside its words: its place in the list, which grows by a quarter, and rounding
)

// transaction is what a session gathers between MULTI and EXEC. The zero value is none.
type transaction struct {
	open   bool
	broken bool // a command was refused: EXEC will run none
	calls  []command.Prepared
	size   int           // bytes
	has    command.Flags // those that any of the calls has
	lacks  command.Flags // those that any of the calls lacks
}

// shown is how many commands are queued, and one more; 0 for no transaction.
func (t *transaction) shown() int32 {
	if !t.open {
		return 0
	}
	return int32(len(t.calls)) + 1
}

// joins tells whether a command is queued rather than run.
func (t *transaction) joins(c *command.Command) bool {
	return t.open && c.Flags&command.Immediate == 0
}

// queue keeps a command for EXEC. What was sent is copied: its memory belongs to the connection.
func (s *session) queue(p command.Prepared) {
	t := &s.transaction
	size := queuedCommandCost
	for _, w := range p.Words {
		size += len(w) + 24
	}
	if t.size+size > maxQueued {
		t.broken = true
		s.Refuse(errQueueTooLarge)
		return
	}
	if t.size+size-int(s.guard.Memory.Part(clientmem.Transaction)) > wire.FlushSize {
		s.guard.Memory.Set(clientmem.Transaction, t.size+size)
		s.relieve()
	}
	p.Words = waitqueue.CloneWords(p.Words)
	t.calls, t.size = append(t.calls, p), t.size+size
	t.has, t.lacks = t.has|p.Command.Flags, t.lacks|^p.Command.Flags
	if p.WantsAll() {
		t.has |= command.WholeKeyspace
	}
	s.Reply.Status("QUEUED")
}

func multiStart(c *command.Call) error {
	s := sessionOf(c)
	if s.transaction.open {
		return errNestedMulti
	}
	s.transaction.open = true

	c.Reply.OK()
	return nil
}

// exec runs what was queued, under the locks of all its keys and of those that are watched: nobody sees a part of it, and all its
// effects go to the journal as one.
func exec(c *command.Call) error {
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
	intact := s.Tx.Intact(&s.watching)
	s.Tx.Unwatch(&s.watching)
	if !intact {
		s.Reply.NullArray()
		return nil
	}
	s.Executing = true
	defer func() { s.Executing = false }()
	s.Reply.Array(len(t.calls))
	keys := s.hasher.Keys
	for i := range t.calls {
		p := &t.calls[i]
		s.Tx.Next(s.Db, p.Command.Flags&command.Write != 0)
		s.Run(p, keys[:p.Keys])
		keys = keys[p.Keys:]
	}
	return nil
}

// beginAll locks what the queued commands and those who watch need.
func (s *session) beginAll(t *transaction) {
	s.hasher.Reset()
	for i := range t.calls {
		s.hasher.Add(&t.calls[i])
	}
	if t.has&(command.WholeKeyspace|command.Stepwise) != 0 {
		s.Tx.BeginAll(s.server.Clock(), s.Db, t.has&command.Write != 0)
		return
	}
	own := len(s.hasher.Keys)
	s.hasher.Keys = s.watching.Keys(s.hasher.Keys)
	s.Tx.Begin(s.server.Clock(), s.Db, s.hasher.Keys, t.has&command.Write != 0)
	s.hasher.Keys = s.hasher.Keys[:own]
	s.Tx.Prefetch(s.hasher.Keys)
}

func discard(c *command.Call) error {
	s := sessionOf(c)
	if !s.transaction.open {
		return errDiscardAlone
	}
	s.transaction = transaction{}
	s.unwatch()

	c.Reply.OK()
	return nil
}

func watch(c *command.Call) error {
	s := sessionOf(c)
	if s.transaction.open {
		return errWatchInMulti
	}
	for c.Args.More() {
		c.Tx.Watch(&s.watching, c.Args.Key())
	}

	c.Reply.OK()
	return nil
}

func unwatch(c *command.Call) error {
	sessionOf(c).unwatch()

	c.Reply.OK()
	return nil
}

// unwatch ends what WATCH began. No lock is held.
func (s *session) unwatch() {
	keys := s.watching.Keys(nil)
	if len(keys) == 0 {
		return
	}
	s.Tx.Begin(s.server.Clock(), s.Db, keys, false)
	s.Tx.Unwatch(&s.watching)
	s.Tx.End()
}
