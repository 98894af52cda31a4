package scripting

import (
	"bytes"

	"rlserver/engine"
	"rlserver/internal/acl"
	"rlserver/resp/command"
	"rlserver/resp/diagnostics"
	"rlserver/resp/executor"
	"rlserver/resp/lua"
	"rlserver/resp/wire"
)

const (
	errUnknown     = engine.Error("ERR Unknown Redis command called from script")
	errArity       = engine.Error("ERR Wrong number of args calling Redis command from script")
	errNotAllowed  = engine.Error("ERR This Redis command is not allowed from script")
	errReadonlyRun = engine.Error("ERR Write commands are not allowed from read-only scripts.")
	errNoCommand   = engine.Error("ERR The user executing the script can't run this command or subcommand")
	errNoKey       = engine.Error("ERR The user executing the script can't access at least one of the keys mentioned " +
		"in the command arguments")
	errNoChannel = engine.Error("ERR The user executing the script can't publish to the channel mentioned in the " +
		"command")
	errAllKeys = engine.Error("ERR this command uses all keys, and the script holds only those that its call " +
		"declares: with the setting lua-undeclared-keys yes, scripts hold all keys")
	errInvalidCommand = engine.Error("ERR Invalid command passed to redis.acl_check_cmd()")
)

// undeclared returns the error for a key that the call of the script does not declare.
func undeclared(name []byte) error {
	return engine.Errorf("ERR the script uses the key '%.128s', which its call does not declare: pass each "+
		"key as one of the KEYS, after numkeys; or set lua-undeclared-keys to yes, and scripts hold all keys", name)
}

// Do implements lua.Host.
func (p *program) Do(words [][]byte, resp3 bool) []byte {
	p.Reply = wire.Reply{B: p.Reply.B[:0], RESP3: resp3, Limiter: p.state}
	p.call(words)
	reply := p.Reply.B
	if cap(reply) > maxKeptReply { // the script may run for long
		p.Reply.B = nil
	}
	return reply
}

func (p *program) call(words [][]byte) {
	begun := p.Env.Time.Elapsed()
	prepared := &p.prepared
	err := prepared.Resolve(p.Env, words, p.likely())
	if err == nil {
		err = p.admit(prepared)
	} else {
		err = unresolved(prepared, err)
	}
	if err != nil {
		if prepared.Command != nil {
			p.Command = prepared.Command
			p.Env.Stats.Rejected(prepared.Command.Index, int(p.Client))
		}
		p.ReplyError(err.Error())
		return
	}
	c := prepared.Command
	if p.calls < len(p.before) {
		p.before[p.calls] = c
	}
	p.calls++
	p.Tx.Next(p.DB, c.Flags&command.Write != 0)
	p.Tx.Enter()
	p.Run(prepared, p.Hasher.Keys)
	p.Tx.Leave()
	p.WritePostponed()
	p.wrote = p.wrote || p.Changed
	now := p.Env.Time.Elapsed()
	p.Meter.Add(c.Index, 1, now-begun)
	if p.since == 0 {
		p.since = begun
	}
	if now-p.since > lua.TurnTime {
		p.Long()
	}
	p.monitor(prepared)
}

// likely returns the command that is called next, if the script calls what the last one did.
func (p *program) likely() *command.Command {
	if p.calls < len(p.before) {
		return p.before[p.calls]
	}
	return p.Command
}

// maxKeptReply is the size of a buffer for replies, in bytes, that is used again.
const maxKeptReply = 64 << 10

// unresolved returns the error of Redis for a call that is none.
func unresolved(p *command.Prepared, err error) error {
	switch {
	case p.Command == nil:
		return errUnknown
	case p.Command.Rejects(len(p.Words)):
		return errArity
	}
	return err
}

// admit returns why a call of the script may not run, or nil. It hashes its keys.
func (p *program) admit(call *command.Prepared) error {
	c := call.Command
	switch {
	case c.Flags&(command.NoScript|command.OwnLocks|command.Immediate) != 0:
		return errNotAllowed
	case c.Flags&command.Changing != 0 && p.full():
		return engine.Error("ERR " + fullWords)
	}
	if denial := p.Check(call); denial != nil {
		p.LogDenied(denial.Verdict, denial.Object, p.Account.Name(), executor.Script)
		switch denial.Verdict {
		case acl.DeniedCommand:
			return errNoCommand
		case acl.DeniedKey:
			return errNoKey
		}
		return errNoChannel
	}
	if p.readonly && c.Flags&command.Changing != 0 {
		return errReadonlyRun
	}
	if c.Flags&command.DenyOOM != 0 && !p.wrote && p.entry.Flags&lua.AllowOOM == 0 && p.caller.NoRoom {
		return engine.ErrOutOfMemory
	}
	if err := p.Env.Executor.Unavailable(c.Flags, ^c.Flags); err != nil {
		return err
	}
	if p.overdue && c.Flags&command.Write != 0 && !p.Env.Scripts.Writes(&p.busy) {
		return engine.Error("ERR " + lua.KillWords)
	}
	return p.hash(call)
}

// hash hashes the keys of a call, and checks that the script holds them.
func (p *program) hash(call *command.Prepared) error {
	p.Hasher.Reset()
	p.Hasher.Add(call)
	if p.caller.All {
		return nil
	}
	if call.Command.Flags&(command.WholeKeyspace|command.Stepwise) != 0 || call.WantsAll() {
		return errAllKeys
	}
	if !p.Env.InCluster() && call.Command.Flags&command.PubSub != 0 {
		return nil // a shard channel is no key, but in a cluster its slot has to be led here
	}
	for i := range p.Hasher.Keys {
		if !p.declares(&p.Hasher.Keys[i]) {
			return undeclared(p.Hasher.Keys[i].Name)
		}
	}
	return nil
}

func (p *program) declares(k *engine.Key) bool {
	for i := range p.caller.Keys {
		d := &p.caller.Keys[i]
		if d.Hash == k.Hash && bytes.Equal(d.Name, k.Name) {
			return true
		}
	}
	return false
}

// Allowed implements lua.Host.
func (p *program) Allowed(words [][]byte) (bool, error) {
	call := command.Prepare(words)
	if call.Command == nil || call.Command.Rejects(len(words)) {
		return false, errInvalidCommand
	}
	return p.Check(&call) == nil, nil
}

// maxShown bounds the lines of scripts that monitors have not seen, in bytes: those of a call, or
// of all calls of a transaction. Further calls are not shown.
const maxShown = 1 << 20

// monitor makes the line of a call for the monitors, which see it behind that of the script when
// the locks are released.
func (p *program) monitor(call *command.Prepared) {
	if p.Env.Executor.Monitors() == 0 || call.Command.Flags&command.Admin != 0 {
		return
	}
	size := p.caller.ShownInside + len(p.shown)
	for _, w := range call.Words {
		size += len(w)
	}
	if size <= maxShown {
		p.shown = diagnostics.AppendCall(p.shown, p.Env.Clock(), p.DB, p.Source(),
			diagnostics.Redacted(call.Command.FullName(), call.Words))
	}
}

// The program is the origin of its calls.

func (p *program) MakeRoom(command.Prepared) bool { return false }
func (p *program) Describe() string               { return p.client().Describe() }
func (p *program) Address() string                { return p.client().Address() }
func (p *program) Name() string                   { return p.client().Name() }
func (p *program) Source() string                 { return "lua" }
func (p *program) HoldLines(int)                  {}

func (p *program) client() executor.Origin { return p.caller.Conn.(executor.Origin) }
