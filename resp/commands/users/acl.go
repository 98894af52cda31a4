package users

import (
	"rlserver/engine"
	"rlserver/internal/acl"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

func init() {
	const (
		open     = command.NoScript | command.Loading | command.Stale
		operator = command.Admin | open
	)
	command.Register("server",
		&command.Command{Name: "acl", Arity: -2, Subs: []*command.Command{
			{Name: "cat", Arity: -2, Flags: open, Run: cat},
			{Name: "deluser", Arity: -3, Flags: operator, RefusedInMulti: errInMulti, Run: delUser},
			{Name: "dryrun", Arity: -4, Flags: operator, Run: dryRun},
			{Name: "genpass", Arity: -2, Flags: open, Run: genPass},
			{Name: "getuser", Arity: 3, Flags: operator, Run: getUser},
			command.HelpSince("6.0.0"),
			{Name: "list", Arity: 2, Flags: operator, Run: list},
			{Name: "load", Arity: 2, Flags: operator | command.OwnLocks, Run: load},
			{Name: "log", Arity: -2, Flags: operator, Run: showLog},
			{Name: "save", Arity: 2, Flags: operator | command.OwnLocks, Run: save},
			{Name: "setuser", Arity: -3, Flags: operator, RefusedInMulti: errInMulti, Run: setUser},
			{Name: "users", Arity: 2, Flags: operator, Run: names},
			{Name: "whoami", Arity: 2, Flags: open, Run: whoAmI},
		}},
	)
}

const (
	errInMulti = engine.Error("ERR in a cluster, users are changed on all nodes: that cannot be part of a " +
		"transaction")
	errNoFile = engine.Error("ERR This Redis instance is not configured to use an ACL file. You may want to specify " +
		"users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration " +
		"file set) in order to store users in the Redis configuration.")
	errNotSaved = engine.Error("ERR There was an error trying to save the ACLs. Please check the server logs for " +
		"more information")
	errNoUserName   = engine.Error("ERR " + acl.ErrNoUserName)
	errPasswordBits = engine.Error("ERR ACL GENPASS argument must be the number of bits for the output password, " +
		"a positive number up to 4096")
)

func setUser(c *command.Call) error {
	name := string(c.Args.Next())
	if name == "" {
		return errNoUserName
	}
	_, err := c.Env.ChangeUsers(c, acl.Change{Set: name, Rules: c.Args.Strings()})
	return c.ReplyOK(err)
}

func delUser(c *command.Call) error {
	return c.ReplyCount(c.Env.ChangeUsers(c, acl.Change{Delete: c.Args.Strings()}))
}

func getUser(c *command.Call) error {
	a := c.Env.Users.Find(string(c.Args.Next()))
	if a == nil {
		c.Reply.Null()
		return nil
	}

	u, r := a.User(), &c.Reply
	parts := u.Parts()
	r.Mapping(6)
	r.BulkString("flags")
	flags := u.Flags()
	r.Set(len(flags))
	writeBulks(r, flags)
	r.BulkString("passwords")
	c.ReplyStrings(u.Passwords())
	writePart(r, parts[0])
	r.BulkString("selectors")
	r.Array(len(parts) - 1)
	for _, p := range parts[1:] {
		r.Mapping(3)
		writePart(r, p)
	}
	return nil
}

func writeBulks(r *wire.Reply, list []string) {
	for _, s := range list {
		r.BulkString(s)
	}
}

// writePart writes three fields of a mapping.
func writePart(r *wire.Reply, p acl.Part) {
	writeBulks(r, []string{"commands", p.Commands, "keys", p.Keys, "channels", p.Channels})
}

func list(c *command.Call) error {
	return c.ReplyStrings(c.Env.Users.Describe())
}

func names(c *command.Call) error {
	accounts := c.Env.Users.All()
	c.Reply.Array(len(accounts))
	for _, a := range accounts {
		c.Reply.BulkString(a.Name())
	}
	return nil
}

func whoAmI(c *command.Call) error {
	c.Reply.BulkString(c.Account.Name())
	return nil
}

func cat(c *command.Call) error {
	if c.Args.Left() > 1 {
		return c.WrongSubcommandArity()
	}
	shown := acl.Categories
	if c.Args.More() {
		name, known := c.Args.Next(), false
		if shown, known = c.Env.Users.Catalog().In(string(name)); !known {
			return engine.Errorf("ERR Unknown category '%.128s'", name)
		}
	}

	return c.ReplyStrings(shown)
}

func genPass(c *command.Call) error {
	if c.Args.Left() > 1 {
		return c.WrongSubcommandArity()
	}
	bits := int64(256)
	if c.Args.More() {
		bits = c.Args.Integer()
	}
	if c.Args.Err == nil && (bits <= 0 || bits > acl.MaxPasswordBits) {
		c.Args.Fail(errPasswordBits)
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	c.Reply.BulkString(acl.GeneratePassword(int(bits)))
	return nil
}

func dryRun(c *command.Call) error {
	name := c.Args.Next()
	a := c.Env.Users.Find(string(name))
	if a == nil {
		return engine.Errorf("ERR User '%.128s' not found", name)
	}
	denial, err := dryRunOf(c.Env.Engine, a.User(), c.Args.List)
	if denial != nil {
		c.Reply.BulkString(denial.DryRun())
		return nil
	}
	return c.ReplyOK(err)
}

// dryRunOf returns why a user may not run a call, or nil. Rules may name commands that only Redis
// has, so these are checked as well.
func dryRunOf(e *engine.Engine, u *acl.User, words [][]byte) (*command.Denial, error) {
	p := command.Prepare(words)
	if p.Command == nil {
		denial, ok := command.CheckAbsent(u, words)
		if !ok {
			return nil, engine.Errorf("ERR Command '%.128s' not found", words[0])
		}
		return denial, nil
	}
	if p.Command.Rejects(len(p.Words)) {
		return nil, engine.Error("ERR wrong number of arguments for '" + p.Command.FullName() + "' command")
	}
	return command.NewAccessCheck(e).Check(u, &p), nil
}

func showLog(c *command.Call) error {
	const shown = 10 // without a count
	if c.Args.Left() > 1 {
		return c.WrongSubcommandArity()
	}
	if c.Args.Word("RESET") {
		c.Env.AccessLog.Reset()
		return c.ReplyOK(nil)
	}
	count := int64(shown)
	if c.Args.More() {
		count = c.Args.Integer()
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	entries, now := c.Env.AccessLog.Latest(int(min(max(count, 0), 1<<30))), c.Env.Clock()
	c.Reply.Array(len(entries))
	for _, e := range entries {
		writeEntry(&c.Reply, e, now)
	}
	return nil
}

func writeEntry(r *wire.Reply, e acl.Entry, now int64) {
	r.Mapping(7)
	r.BulkString("count")
	r.Integer(e.Count)
	writeBulks(r, []string{"reason", e.Reason.String(), "context", e.Context, "object", e.Object, "username", e.User})
	r.BulkString("age-seconds")
	r.Double(float64(now-e.At) / 1000)
	writeBulks(r, []string{"client-info", e.Client})
}

// load handles ACL LOAD. As in Redis, it closes the connections of all users but the default one.
func load(c *command.Call) error {
	path := c.Env.Settings.Start.ACLFile
	if path == "" {
		return errNoFile
	}
	_, err := c.Env.ChangeUsers(c, acl.Change{Load: path})
	return c.ReplyOK(err)
}

func save(c *command.Call) error {
	path := c.Env.Settings.Start.ACLFile
	if path == "" {
		return errNoFile
	}
	if err := c.Env.Users.Save(path); err != nil {
		c.Env.Log.Error("the users could not be saved in the ACL file", "error", err)
		return errNotSaved
	}
	return c.ReplyOK(nil)
}
