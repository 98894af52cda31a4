package resp

import (
	"rlserver/engine"
	"rlserver/resp/clientmem"
	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/wire"
)

// execCommand and watchCommand are the declarations of EXEC and WATCH.
var execCommand, watchCommand *command.Command

func init() {
	const flags = command.NoScript | command.Loading | command.Stale | command.AllowBusy
	execCommand = &command.Command{Name: "exec", Arity: 1,
		Flags: command.NoScript | command.Loading | command.Stale | command.SkipSlowlog | command.Immediate,
		Run:   exec}
	watchCommand = &command.Command{Name: "watch", Arity: -2, Flags: flags | command.Fast | command.Immediate,
		Keys: []command.KeySpec{command.KeysToEnd("RO", 1, 1)}, Run: watchKeys}
	command.Register("transactions", execCommand, watchCommand,
		&command.Command{Name: "multi", Arity: 1, Flags: flags | command.Fast | command.Immediate, Run: multiStart},
		&command.Command{Name: "discard", Arity: 1, Flags: flags | command.Fast | command.Immediate, Run: discard},
		&command.Command{Name: "unwatch", Arity: 1, Flags: flags | command.Fast, Run: unwatchKeys},
	)
}

const (
	errNestedMulti   = engine.Error("ERR MULTI calls can not be nested")
	errExecAlone     = engine.Error("ERR EXEC without MULTI")
	errDiscardAlone  = engine.Error("ERR DISCARD without MULTI")
	errWatchInMulti  = engine.Error("ERR WATCH inside MULTI is not allowed")
	errNotInMulti    = engine.Error("ERR Command not allowed inside a transaction")
	errExecAborted   = engine.Error("EXECABORT Transaction discarded because of previous errors.")
	errExecBusy      = execAbortedBy + command.ErrBusy
	errQueueTooLarge = engine.Error("ERR the transaction is too large: its commands may take 1 GB together")
)

const execAbortedBy = "EXECABORT Transaction discarded because of: "

// The memory of a transaction, in bytes.
const (
	maxQueued = config.DefaultMaxQuery // of all its commands

	// queuedCommandCost is the memory of a command without its words: its element in a slice that
	// grows by a quarter, and rounding.
	queuedCommandCost = 160
)

// transaction is the state of a session between MULTI and EXEC. The zero value is a closed one.
type transaction struct {
	open   bool
	broken bool // a command was refused: EXEC runs none
	calls  []command.Prepared
	size   int           // bytes
	has    command.Flags // flags that any of the calls has
	lacks  command.Flags // flags that any of the calls lacks

	slot    int   // of the keys, in a cluster; -1: unknown yet
	passes  bool  // clients cannot know the slot, see session.passes
	aborted bool  // watched keys have moved to another node, see enterTransaction
	refusal error // why it cannot run, likewise
}

// profileCount returns the number of queued commands plus 1, or 0 outside MULTI.
func (t *transaction) profileCount() int32 {
	if !t.open {
		return 0
	}
	return int32(len(t.calls)) + 1
}

// queues reports whether a command is queued instead of run.
func (t *transaction) queues(c *command.Command) bool {
	return t.open && c.Flags&command.Immediate == 0
}

// flags returns the flags that decide whether a command may run now: those it has and those it
// lacks. For EXEC those of the queued commands are included. A command that is queued takes memory,
// whatever it does.
func (t *transaction) flags(c *command.Command) (has, lacks command.Flags) {
	has, lacks = c.Flags, ^c.Flags
	switch {
	case t.queues(c):
		has |= command.DenyOOM
	case t.open && c == execCommand:
		has, lacks = has|t.has&(command.Changing|command.DenyOOM|command.AnyKeys), lacks|t.lacks
	}
	return has, lacks
}

// queue keeps a command for EXEC. It copies the words, whose memory belongs to the connection.
func (s *session) queue(p command.Prepared) {
	t := &s.transaction
	err := s.sameSlot(&p)
	size := queuedCommandCost
	for _, w := range p.Words {
		size += len(w) + 24
	}
	if err == nil && t.size+size > maxQueued {
		err = errQueueTooLarge
	}
	if err != nil {
		t.broken = true
		s.Refuse(err)
		return
	}
	if t.size+size-int(s.guard.Memory.Part(clientmem.Transaction)) > wire.FlushSize {
		s.guard.Memory.Set(clientmem.Transaction, t.size+size)
		s.evictClientsIfNeeded()
	}
	p.Words = command.CloneWords(p.Words)
	t.calls, t.size = append(t.calls, p), t.size+size
	t.has, t.lacks = t.has|p.Flags(s.Env), t.lacks|^p.Command.Flags
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
	s.transaction = transaction{open: true, slot: -1}

	return c.ReplyOK(nil)
}

// exec handles EXEC. It runs the queued commands under the locks of all their keys and of the
// watched keys: no other client sees a part of them, and the journal gets their effects as one
// record.
func exec(c *command.Call) error {
	s := sessionOf(c)
	t := s.transaction
	if !t.open {
		return errExecAlone
	}
	s.transaction = transaction{}
	if t.broken {
		s.unwatch()
		return errExecAborted
	}

	if len(t.calls) > command.LongReply {
		s.TakesLong()
	}
	if t.aborted || t.refusal != nil {
		s.unwatch()
		c.Reply.NullArray()
		return t.refusal
	}
	release, err := ahead(c, t.calls)
	if err != nil {
		s.unwatch()
		return err
	}
	defer release()
	if !s.beginAll(&t) {
		s.unwatch()
		return errExecBusy
	}
	// a pause may have begun since the call was checked
	if t.has&command.Changing != 0 && s.ChangesPaused() && !s.profile.monitors.Load() {
		s.transaction, s.again = t, true
		return nil
	}
	if s.GivenUp() { // while it waited for the locks
		s.Tx.Unwatch(s.watching)
		s.away.node.refused = true
		return errNotHere
	}
	intact := s.Tx.Intact(s.watching)
	s.Tx.Unwatch(s.watching)
	if !intact {
		s.Reply.NullArray()
		return nil
	}
	s.Reply.Array(len(t.calls))
	s.RunAll(t.calls, s.Hasher.Keys)
	return nil
}

// ahead has the scripts compiled that calls need, see command.Command.Ahead.
func ahead(c *command.Call, calls []command.Prepared) (release func(), err error) {
	for i := range calls {
		if all := calls[i].Command.Ahead; all != nil {
			return all(c, calls)
		}
	}
	return func() {}, nil
}

// beginAll locks the keys of the queued commands and the watched keys. It reports false if a script
// that takes too long uses one of them.
func (s *session) beginAll(t *transaction) (ok bool) {
	s.Hasher.Reset()
	for i := range t.calls {
		s.Hasher.Add(&t.calls[i])
	}
	if t.has&(command.WholeKeyspace|command.Stepwise) != 0 {
		return s.Tx.BeginUnlessHeld(s.Env.Clock(), s.DB, nil, true, t.has&command.Write != 0)
	}
	own := len(s.Hasher.Keys)
	s.Hasher.Keys = s.watching.Keys(s.Hasher.Keys)
	if !s.Tx.BeginUnlessHeld(s.Env.Clock(), s.DB, s.Hasher.Keys, false, t.has&command.Write != 0) {
		return false
	}
	s.Hasher.Keys = s.Hasher.Keys[:own]
	s.Tx.Prefetch(s.Hasher.Keys)
	return true
}

func discard(c *command.Call) error {
	s := sessionOf(c)
	if !s.transaction.open {
		return errDiscardAlone
	}
	s.transaction = transaction{}
	s.unwatch()

	return c.ReplyOK(nil)
}

func watchKeys(c *command.Call) error {
	s := sessionOf(c)
	if s.transaction.open {
		return errWatchInMulti
	}
	if err := s.watchesHere(); err != nil {
		return err
	}
	for c.Args.More() {
		c.Tx.Watch(s.watching, c.Args.Key())
	}

	return c.ReplyOK(nil)
}

func unwatchKeys(c *command.Call) error {
	sessionOf(c).unwatch()

	return c.ReplyOK(nil)
}

// unwatch stops watching all keys. No lock is held.
func (s *session) unwatch() {
	s.away.calls.Unwatch()
	keys := s.watching.Keys(nil)
	if len(keys) == 0 {
		return
	}
	s.use(s.watch)
	if s.Tx.BeginUnlessHeld(s.Env.Clock(), s.DB, keys, false, false) {
		s.Tx.Unwatch(s.watching)
		s.Tx.End()
		return
	}
	// a script that takes too long uses a key: the watching ends when the script does
	old := s.watching
	s.watching = new(engine.Watch)
	s.Env.Engine.Later(s.Env.Clock(), 0, keys, false, func(tx *engine.Tx) { tx.Unwatch(old) })
}
