package scripting

import (
	"fmt"
	"strings"
	"sync"
	"time"

	glua "github.com/yuin/gopher-lua"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/executor"
	"rlserver/resp/lua"
	"rlserver/resp/wire"
)

const (
	errKeysNegative = engine.Error("ERR Number of keys can't be negative")
	errKeysMany     = engine.Error("ERR Number of keys can't be greater than number of args")
	errNoClusterRun = engine.Error("ERR Can not run script on cluster, 'no-cluster' flag is set.")

	errWritesInReadonly = engine.Error("ERR Can not execute a script with write flag using *_ro command.")
)

// lookup finds the script of a call by its text or its name.
type lookup func(c *command.Call, word []byte) (*lua.Entry, error)

// prepare returns what runs before the locks are taken: it finds the script, and compiles it.
func prepare(script lookup) func(*command.Call, [][]byte) {
	return func(c *command.Call, words [][]byte) {
		if e, err := script(c, words[1]); err == nil {
			c.Ready = e
		} else {
			c.Ready = err
		}
	}
}

// ready returns what prepare has found; within EXEC it finds the script now.
func ready(c *command.Call, script lookup, word []byte) (*lua.Entry, error) {
	found := c.Ready
	c.Ready = nil
	switch found := found.(type) {
	case *lua.Entry:
		return found, nil
	case error:
		return nil, found
	}
	return script(c, word)
}

func run(c *command.Call, script lookup) error {
	name := c.Args.Next()
	n := c.Args.Integer()
	switch {
	case c.Args.Err != nil:
		return c.Args.Err
	case n > int64(c.Args.Left()):
		return errKeysMany
	case n < 0:
		return errKeysNegative
	}
	e, err := ready(c, script, name)
	if err != nil {
		return err
	}
	readonly := e.Flags&lua.NoWrites != 0 || c.Command.Flags&command.Readonly != 0
	switch {
	case c.Command.Flags&command.Readonly != 0 && e.Flags&lua.Declared != 0 && e.Flags&lua.NoWrites == 0:
		return errWritesInReadonly
	case e.Flags&lua.NoCluster != 0 && c.Env.InCluster():
		return errNoClusterRun
	case e.Flags&lua.Declared != 0 && e.Flags&(lua.AllowOOM|lua.NoWrites) == 0 && c.NoRoom:
		return engine.ErrOutOfMemory
	}
	words := c.Args.List
	p := programs.Get().(*program)
	defer p.end()
	return p.run(c, e, words[:n], words[n:], readonly)
}

// program is a script that runs. It is the origin of its calls.
type program struct {
	executor.Runner
	caller   *command.Call
	entry    *lua.Entry
	state    *lua.State
	readonly bool
	wrote    bool          // keys were changed
	held     bool          // the keys are held without their locks
	overdue  bool          // it has run for longer than its limit
	since    time.Duration // elapsed time of its first call
	failed   bool          // the result is an error
	most     int64         // how many bytes its changes may take
	fail     func(text string)
	prepared command.Prepared    // the call that runs
	moment   int64               // of Call.Moment, unless it is that of an EXEC
	calls    int                 // so far
	before   [8]*command.Command // the first calls of the last script, which was probably the same
	busy     lua.Busy
	shown    []byte // lines for monitors
}

var programs = sync.Pool{New: func() any {
	p := new(program)
	p.fail = p.replyError
	return p
}}

func (p *program) run(c *command.Call, e *lua.Entry, keys, args [][]byte, readonly bool) (err error) {
	p.caller, p.entry, p.readonly, p.wrote, p.held, p.failed, p.calls = c, e, readonly, false, false, false, 0
	p.overdue, p.since = false, 0
	p.Env, p.Tx, p.DB, p.Account, p.Conn, p.Client = c.Env, c.Tx, c.DB, c.Account, c.Conn, c.Client
	p.NoTouch, p.Random, p.Executing, p.InScript = c.NoTouch, c.Random, true, true
	p.Tracked = c.Tracked
	if p.Moment = c.Moment; p.Moment == nil {
		p.moment = 0
		p.Moment = &p.moment
	}
	p.Hasher.Engine = c.Env.Engine
	p.Init(c.Env, p)
	p.state = lua.Take()
	defer func() {
		p.state.Release()
		p.state = nil
	}()
	defer p.resume() // also if the interpreter panics
	settings := c.Env.Settings
	p.most = settings.ScriptMemory.Load()
	mark := len(c.Reply.B)
	limit := time.Duration(settings.ScriptTime.Load()) * time.Millisecond
	if limit <= 0 {
		limit = 1 << 62
	}
	err = p.state.Run(&lua.Run{
		Script: e.Script, Keys: keys, Args: args, Host: p, Among: c.Env.Scripts,
		Limits: lua.Limits{Memory: p.most, All: settings.ScriptsMemory.Load(), Time: limit},
	}, p.reply)
	if p.resume() {
		err = &lua.Error{Text: "ERR " + lua.KillWords, Chunk: lua.MainName, Line: 1}
	}
	p.Meter.Flush()
	c.Errors, p.Errors = c.Errors+p.Errors, 0
	if failed, ok := err.(*lua.Error); ok {
		c.Reply.B = c.Reply.B[:mark]
		text := fmt.Sprintf("%s script: %s, on %s:%d.", failed.Text, e.SHA, failed.Chunk, failed.Line)
		if failed.Counted {
			return command.CountedError(text)
		}
		return engine.Error(text)
	}
	return err
}

// reply writes the result of the script.
func (p *program) reply(st *lua.State, v glua.LValue) error {
	c := p.caller
	mark := len(c.Reply.B)
	if !st.Write(&c.Reply, v, p.fail) {
		c.Reply.B = c.Reply.B[:mark]
		return engine.Error(lua.ErrTooDeep)
	}
	if p.failed {
		c.Env.Stats.Failed(c.Command.Index, int(c.Client))
	}
	return nil
}

// replyError writes an error that is a part of the result, or all of it.
func (p *program) replyError(text string) {
	p.failed = true
	if text = strings.TrimPrefix(text, "-"); p.state.Counted {
		p.caller.Reply.Error(text)
	} else {
		p.caller.ReplyError(text)
	}
}

// end drops what belongs to the call.
func (p *program) end() {
	if len(p.shown) > 0 {
		shown := p.shown
		p.caller.Inside = &shown
		p.caller.ShownInside += len(shown)
	}
	p.caller, p.entry, p.shown, p.prepared = nil, nil, nil, command.Prepared{}
	p.Release()
	p.Call = command.Call{Reply: wire.Reply{B: p.Reply.B}}
	programs.Put(p)
}

// MustEnd implements lua.Host. What a script has changed that has to end because another node leads
// now, is lost with all that was changed since. One that has changed something is not ended when
// the server stops: half of its changes would be logged.
func (p *program) MustEnd() (why string) {
	select {
	case <-p.Env.Ended:
		return "another node begins to lead this slot"
	default:
	}
	switch {
	case !p.wrote && p.Env.Scripts.Stopping():
		return "the server stops"
	case p.full():
		return fullWords
	}
	return ""
}

// full reports whether the script has changed or published as much as it may. The journal gets all
// its changes when it ends, and subscribers its messages, with those of the transaction that it is
// in: until then they take memory.
func (p *program) full() bool {
	bytes := p.Tx.Pending()
	if p.Conn != nil {
		bytes += int64(p.Conn.Messages().Size())
	}
	return bytes > p.most
}

const fullWords = "the script changes too much: its changes and messages, with those before it in its transaction, " +
	"may take lua-memory-limit. Those before this error stay"

// Long implements lua.Host: from now on others wait for the keys of the script only, and are served
// by another processor.
func (p *program) Long() {
	p.caller.TakesLong()
	p.held = p.held || p.Tx.Hold(false)
}

// Overdue implements lua.Host: the script runs for longer than its limit. Others are refused from
// now on instead of waiting, and can end it.
func (p *program) Overdue() {
	p.busy = lua.Busy{State: p.state, Wrote: p.wrote}
	p.overdue = true
	p.Env.Scripts.SetBusy(&p.busy)
	p.held = p.held || p.Tx.Hold(true)
	p.Tx.Late()
	p.Env.Log.Warn("a script runs for longer than lua-time-limit: other calls on its keys get BUSY; SCRIPT KILL "+
		"ends it if it has changed nothing", "script", p.entry.SHA, "client", p.Client)
}

// resume takes the locks again, and reports whether SCRIPT KILL has ended the script.
func (p *program) resume() (killed bool) {
	if p.overdue {
		killed, p.overdue = p.Env.Scripts.Unset(&p.busy), false
	}
	if p.held {
		p.Tx.Resume()
		p.held = false
	}
	return killed
}

// Log implements lua.Host.
func (p *program) Log(level int, text string) {
	switch log := p.Env.Log; level {
	case 0, 1:
		log.Debug("a script logs", "script", p.entry.SHA, "text", text)
	case 2:
		log.Info("a script logs", "script", p.entry.SHA, "text", text)
	default:
		log.Warn("a script logs", "script", p.entry.SHA, "text", text)
	}
}

const evalFlags = command.NoScript | command.Stale | command.SkipMonitor | command.NoMandatoryKeys |
	command.MovableKeys | command.AnyKeys

// eval returns the declaration of EVAL or one of its relatives.
func eval(name string, flags command.Flags, access string, script lookup, head text) *command.Command {
	flags |= evalFlags
	return &command.Command{Name: name, Arity: -3, Flags: flags,
		Keys:    []command.KeySpec{command.KeysCounted(access, 2)},
		FlagsOf: func(env *command.Env, words [][]byte) command.Flags { return declared(flags, head(env, words[1])) },
		Prepare: prepare(script), Ahead: compileAhead, Run: command.With(run, script)}
}

// text returns the text of the script of a call; "": it is unknown.
type text func(env *command.Env, word []byte) string

func textItself(_ *command.Env, word []byte) string { return string(word) }

func textOf(env *command.Env, name []byte) string {
	if sha, ok := shaOf(name); ok {
		if s, _ := known(env, string(sha[:])); s != nil {
			return s.Text
		}
	}
	return ""
}

// declared returns the flags of a call. As in Redis those count that the script declares, if it
// declares any, and not whether the command may change something.
func declared(flags command.Flags, text string) command.Flags {
	switch f, err := lua.DeclaredFlags(text); {
	case err != nil || f&lua.Declared == 0:
		return flags
	case f&lua.NoWrites != 0:
		return flags &^ command.MayChange
	}
	return flags | command.MayChange
}

func init() {
	command.Register("scripting",
		eval("eval", command.MayChange, "RW access update", read, textItself),
		eval("evalsha", command.MayChange, "RW access update", find, textOf),
		eval("eval_ro", command.Readonly, "RO access", read, textItself),
		eval("evalsha_ro", command.Readonly, "RO access", find, textOf),
		&command.Command{Name: "script", Arity: -2, Subs: []*command.Command{
			{Name: "exists", Arity: -3, Flags: command.NoScript, Merge: mergeExists, Run: scriptExists},
			{Name: "flush", Arity: -2, Flags: command.NoScript | command.MayChange, Merge: mergeAll,
				Run: scriptFlush},
			command.HelpSince("5.0.0"),
			{Name: "kill", Arity: 2, Flags: command.NoScript | command.AllowBusy, Merge: mergeKill,
				Run: scriptKill},
			{Name: "load", Arity: 3, Flags: command.NoScript | command.Stale | command.MayChange, Merge: mergeAll,
				Ahead: compileAhead, Run: scriptLoad},
			{Name: "show", Arity: 3, Flags: command.NoScript, Since: "8.0.0", Complexity: "O(1)", Syntax: "sha1",
				Summary: "Show the text of a script in the script cache.", Merge: mergeShow, Run: scriptShow},
		}},
	)
}
