package server

import (
	"slices"
	"strings"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/glob"
)

func init() {
	const operator = command.Admin | command.NoScript | command.Loading | command.Stale
	command.Register("server",
		&command.Command{Name: "config", Arity: -2, Subs: []*command.Command{
			{Name: "get", Arity: -3, Flags: operator, Run: configGet},
			command.HelpSince("5.0.0"),
			{Name: "resetstat", Arity: 2, Flags: operator | command.Stepwise, Run: configResetStat},
			{Name: "rewrite", Arity: 2, Flags: operator, Run: configRewrite},
			{Name: "set", Arity: -4, Flags: operator, Run: configSet},
		}},
	)
}

// configGet handles CONFIG GET parameter [parameter ...], names or patterns. A parameter that is
// requested by its alias is returned by its alias.
func configGet(c *command.Call) error {
	var names, values []string
	pattern := glob.New(nil, true)
	for c.Args.More() {
		pattern.Text = c.Args.Next()
		for _, name := range matchParameters(&pattern) {
			if !slices.Contains(names, name) {
				names = append(names, name)
				values = append(values, config.Lookup(name).Shown(c.Env.Settings))
			}
		}
	}

	if err := pattern.Err(); err != nil {
		return err
	}

	c.Reply.Mapping(len(names))
	for i := range names {
		c.Reply.BulkString(names[i])
		c.Reply.BulkString(values[i])
	}
	return nil
}

// matchParameters returns the names and aliases that match a name or a pattern.
func matchParameters(pattern *glob.Pattern) (names []string) {
	wanted := string(pattern.Text)
	if !strings.ContainsAny(wanted, "[*?") {
		if p := config.Lookup(wanted); p != nil && !p.StartOnly {
			names = append(names, wanted)
		}
		return names
	}
	for _, p := range config.Parameters {
		if p.StartOnly {
			continue
		}
		for _, name := range []string{p.Name, p.Alias} {
			if name != "" && pattern.Match([]byte(name)) {
				names = append(names, name)
			}
		}
	}
	return names
}

// configSet handles CONFIG SET parameter value [parameter value ...]. It changes all or none.
func configSet(c *command.Call) error {
	changes, err := parseChanges(&c.Args)
	if err != nil {
		return err
	}
	return c.ReplyOK(c.Env.Server.ChangeSettings(c, changes))
}

// parseChanges parses names and values. It checks the names; the values are parsed after all names
// have been checked.
func parseChanges(a *command.Args) (changes []config.Change, err error) {
	if a.Left()%2 != 0 {
		return nil, engine.ErrSyntax
	}
	for a.More() {
		change := config.Change{Called: string(a.Next()), Value: string(a.Next())}
		change.Parameter = config.Lookup(change.Called)
		sameParameter := func(other config.Change) bool { return change.Parameter == other.Parameter }
		switch {
		case change.Parameter == nil || change.StartOnly:
			const format = "ERR Unknown option or number of arguments for CONFIG SET - '%.128s'"
			return nil, engine.Errorf(format, change.Called)
		case change.Set == nil:
			return nil, change.Refuse(config.ErrImmutable)
		case slices.ContainsFunc(changes, sameParameter):
			return nil, change.Refuse(config.ErrDuplicate)
		}
		changes = append(changes, change)
	}
	return changes, nil
}

func configResetStat(c *command.Call) error {
	c.Tx.ResetStats()
	own := c.Env.Engine
	c.Conn.DeferUntilUnlocked(func() {
		for _, e := range own.Memory().Engines() {
			if e != own {
				e.ResetStats()
			}
		}
	})
	c.Conn.FlushStats()
	c.Env.Server.ResetFigures()
	return c.ReplyOK(nil)
}

func configRewrite(c *command.Call) error {
	switch err := c.Env.Settings.Rewrite(); err {
	case nil:
		return c.ReplyOK(nil)
	case config.ErrNoFile:
		return engine.Error("ERR The server is running without a config file")
	default:
		c.Env.Log.Warn("CONFIG REWRITE failed", "error", err)
		return engine.Error("ERR Rewriting config file: " + err.Error())
	}
}
