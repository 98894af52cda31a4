package scripting

import (
	"strings"

	"rlserver/engine"
	"rlserver/engine/script"
	"rlserver/resp/command"
	"rlserver/resp/lua"
	"rlserver/resp/wire"
)

const (
	errScriptFlush = engine.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	errNotBusy     = engine.Error("NOTBUSY No scripts in execution right now.")
	errUnkillable  = engine.Error("UNKILLABLE Sorry the script already executed write commands against the dataset. " +
		"You can either wait the script termination or kill the server in a hard way using the SHUTDOWN " +
		"NOSAVE command.")
	errNoMatch   = engine.Error("NOSCRIPT No matching script. Please use EVAL.")
	errTextLong  = engine.Error("ERR the script is too long: 4 MB are allowed")
	errAheadLong = engine.Error("ERR the new scripts of a transaction are too long: 4 MB are allowed together")
)

const (
	shaLen = 40

	// maxText is the length of a script in bytes, at most. Redis has no limit; the compiler takes
	// many times its length.
	maxText = 4 << 20
)

// scriptFlush handles SCRIPT FLUSH [ASYNC | SYNC]. On a node of a cluster it also drops the scripts
// that ran without keys.
func scriptFlush(c *command.Call) error {
	if c.Args.More() && (c.Args.Left() > 1 || !c.Args.Word("ASYNC") && !c.Args.Word("SYNC")) {
		return errScriptFlush
	}
	if err := changeable(c); err != nil {
		return err
	}
	c.Tx.See(engine.Position(c.Env.Engine.Scripts.Flush(c.Env.Clock())))
	if home := c.Env.Home; home != c.Env.Engine {
		home.Scripts.Flush(c.Env.Clock())
	}
	return c.ReplyOK(nil)
}

// changeable returns why scripts cannot be added or dropped now, or nil.
func changeable(c *command.Call) error {
	return c.Env.Executor.Unavailable(command.Write, 0)
}

// mergeAll runs a call on the keys of no group, and then on each group. The reply is the first one.
func mergeAll(m *command.Merger) {
	first := m.On(-1, m.Words)
	if first.Failed() || m.Each(func(wire.Value) {}) {
		m.Reply.Value(first)
	}
}

// mergeExists reports whether each script is known to all groups. Without groups it is asked here.
func mergeExists(m *command.Merger) {
	if len(m.Groups) == 0 {
		m.Reply.Value(m.On(-1, m.Words))
		return
	}
	known := make([]int64, len(m.Words)-2)
	if !m.Each(func(v wire.Value) {
		for i, e := range v.Elements() {
			known[i] += e.Integer
		}
	}) {
		return
	}
	m.Reply.Array(len(known))
	for _, n := range known {
		m.Reply.Flag(n == int64(len(m.Groups)))
	}
}

// mergeKill ends the scripts of all nodes. A node ends all of its own at once, so that the others
// of its groups have none.
func mergeKill(m *command.Merger) {
	best := m.On(-1, m.Words)
	for _, group := range m.Groups {
		if v := m.On(group, m.Words); rank(v) > rank(best) {
			best = v
		}
	}
	m.Reply.Value(best)
}

// rank orders the replies of SCRIPT KILL: what was done counts more than what was not.
func rank(v wire.Value) int {
	switch {
	case !v.Failed():
		return 3
	case strings.HasPrefix(string(v.Text), "UNKILLABLE"):
		return 2
	case strings.HasPrefix(string(v.Text), "NOTBUSY"):
		return 0
	}
	return 1 // a node that cannot be asked
}

// mergeShow replies with the text that any group has.
func mergeShow(m *command.Merger) {
	v := m.On(-1, m.Words)
	for i := 0; i < len(m.Groups) && v.Failed(); i++ {
		v = m.On(m.Groups[i], m.Words)
	}
	m.Reply.Value(v)
}

// scriptShow handles SCRIPT SHOW sha1, of Valkey.
func scriptShow(c *command.Call) error {
	s, seen := known(c.Env, strings.ToLower(string(c.Args.Next())))
	c.Tx.See(seen)
	if s == nil {
		return errNoMatch
	}
	c.Reply.BulkString(s.Text)
	return nil
}

func scriptExists(c *command.Call) error {
	c.Reply.Array(c.Args.Left())
	for c.Args.More() {
		s, seen := known(c.Env, strings.ToLower(string(c.Args.Next())))
		c.Tx.See(seen)
		c.Reply.Flag(s != nil)
	}
	return nil
}

func scriptKill(c *command.Call) error {
	killed, others := c.Env.Scripts.Kill()
	switch {
	case killed > 0:
		return c.ReplyOK(nil)
	case others > 0:
		return errUnkillable
	}
	return errNotBusy
}

func scriptLoad(c *command.Call) error {
	held := false
	paused := func() bool { // EXEC has locks, for which CLIENT PAUSE waits
		held = !c.Executing && c.Conn.ChangesPaused()
		return held
	}
	for text := string(c.Args.Next()); ; held = false {
		err := changeable(c)
		if err != nil {
			return err
		}
		e, err := add(c, text, true, paused)
		if err != nil {
			return err
		}
		if !held {
			c.Reply.BulkString(e.SHA)
			return nil
		}
		if !c.Conn.AwaitChanges() { // a pause has begun since the call was checked
			return nil
		}
	}
}

// maxEvaled is how many scripts that came with EVAL are kept, as in Redis 7.4. Those of SCRIPT
// LOAD are bounded by their memory only.
const maxEvaled = 500

// read returns the script with a text, which it compiles if it is new.
func read(c *command.Call, text []byte) (*lua.Entry, error) {
	if s := c.Env.Engine.Scripts.FindText(text); s != nil {
		return compiled(c, s)
	}
	return add(c, string(text), false, c.Conn.ChangesPaused)
}

// find returns the script of a name.
func find(c *command.Call, name []byte) (*lua.Entry, error) {
	buf, ok := shaOf(name)
	if !ok {
		return nil, errNoMatch
	}
	if s := c.Env.Engine.Scripts.Find(buf[:]); s != nil {
		return compiled(c, s)
	}
	if s, _ := known(c.Env, string(buf[:])); s != nil {
		return add(c, s.Text, s.Loaded, c.Conn.ChangesPaused)
	}
	return nil, errNoMatch
}

// shaOf returns the name of a script in lower case; ok: it may be one.
func shaOf(word []byte) (sha [shaLen]byte, ok bool) {
	if len(word) != shaLen {
		return sha, false
	}
	for i, b := range word {
		if 'A' <= b && b <= 'F' {
			b += 'a' - 'A'
		}
		sha[i] = b
	}
	return sha, true
}

// known returns the script of a name if the group of the call has it or, in a cluster, another one
// that this node leads, or a call without keys has brought it here; otherwise nil. It also returns
// the position that the call has seen.
func known(env *command.Env, sha string) (s *script.Script, seen engine.Position) {
	s, position := env.Engine.Scripts.Get(sha)
	if s != nil || !env.InCluster() {
		return s, engine.Position(position)
	}
	if s, _ = env.Home.Scripts.Get(sha); s != nil {
		return s, engine.Position(position)
	}
	for _, k := range env.Server.Keyspaces() {
		if s, _ = k.Engine.Scripts.Get(sha); s != nil {
			break
		}
	}
	return s, engine.Position(position)
}

// compiled returns what a script is compiled to, which is done once.
func compiled(c *command.Call, s *script.Script) (*lua.Entry, error) {
	if e, done := s.Compiled.Load().(*lua.Entry); done {
		return e, nil
	}
	e, err := compile(c, s.SHA, s.Text)
	if err == nil {
		s.Compiled.Store(e)
	}
	return e, err
}

// add compiles a script, unless another group has, and keeps it for EVALSHA. While changes are
// refused, or held back as paused reports, it is not kept.
func add(c *command.Call, text string, loaded bool, paused func() bool) (e *lua.Entry, err error) {
	if len(text) > maxText {
		return nil, errTextLong
	}
	sha := lua.SHA1(text)
	e, err = compileText(c, sha, text)
	if err != nil || changeable(c) != nil {
		return e, err
	}
	s, position := c.Env.Engine.Scripts.Add(c.Env.Clock(), sha, e.Text, loaded,
		script.Limits{Evaled: maxEvaled, Bytes: c.Env.Settings.ScriptCache.Load(), Paused: paused})
	if s != nil {
		s.Compiled.Store(e)
	}
	c.Tx.See(engine.Position(position))
	return e, nil
}

// largeText is the length of a script in bytes from which one is compiled at a time.
const largeText = 16 << 10

func compile(c *command.Call, sha, text string) (*lua.Entry, error) {
	if e, err, done := c.Env.Scripts.Ahead(sha); done {
		return e, err
	}
	if len(text) > largeText {
		c.Env.Scripts.Compiling.Lock()
		defer c.Env.Scripts.Compiling.Unlock()
		if s, _ := known(c.Env, sha); s != nil {
			if e, done := s.Compiled.Load().(*lua.Entry); done { // meanwhile
				return e, nil
			}
		}
	}
	e, unknown, err := lua.Read(sha, text)
	if err != nil {
		return nil, engine.Error("ERR " + err.Error())
	}
	if len(unknown) > 0 {
		c.Env.Log.Info("a script has flags that have no effect here", "script", e.SHA, "flags", unknown)
	}
	return e, nil
}

// compileAhead compiles the scripts of a transaction before its locks are taken: to compile one
// takes up to a second, and others wait meanwhile. What SCRIPT FLUSH drops within the transaction
// is not compiled again.
func compileAhead(c *command.Call, calls []command.Prepared) (release func(), err error) {
	a := aheadOf{Call: c}
	defer func() {
		if release == nil { // an error, or a panic
			a.release()
		}
	}()
	for i := range calls {
		if calls[i].Command.Ahead != nil {
			if err := a.compile(calls[i].Words[calls[i].Name]); err != nil {
				return nil, err
			}
		}
	}
	return a.release, nil
}

// aheadOf are the scripts of a transaction.
type aheadOf struct {
	*command.Call
	kept  []string // their names
	bytes int      // of those that are new
}

func (a *aheadOf) release() { a.Env.Scripts.Forget(a.kept) }

// compile compiles a script with a text or, if it is known, a name.
func (a *aheadOf) compile(word []byte) error {
	if sha, isName := shaOf(word); isName {
		if s, _ := known(a.Env, string(sha[:])); s != nil {
			compiled(a.Call, s) // its error is that of the call
		}
		return nil
	}
	sha := ""
	if s := a.Env.Engine.Scripts.FindText(word); s != nil {
		sha = s.SHA
	} else {
		sha = lua.SHA1(string(word))
		if _, _, done := a.Env.Scripts.Ahead(sha); !done {
			a.bytes += len(word)
		}
	}
	if a.bytes > maxText {
		return errAheadLong
	}
	e, err := compileText(a.Call, sha, string(word))
	a.Env.Scripts.Keep(sha, e, err)
	a.kept = append(a.kept, sha)
	return nil
}

func compileText(c *command.Call, sha, text string) (*lua.Entry, error) {
	if s, _ := known(c.Env, sha); s != nil {
		return compiled(c, s)
	}
	return compile(c, sha, text)
}
