package resp

import (
	"fmt"
	"slices"
	"strings"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/glob"
)

func init() {
	const operator = command.Admin | command.NoScript | command.Loading | command.Stale
	command.Register(
		&command.Command{Name: "config", Arity: -2, Group: "server", Since: "2.0.0",
			Complexity: "Depends on subcommand.", Summary: "A container for server configuration commands",
			Subs: []*command.Command{
				{Name: "get", Arity: -3, Flags: operator, Group: "server", Since: "2.0.0",
					Syntax:     "parameter [parameter ...]",
					Complexity: "O(N) when N is the number of configuration parameters provided",
					Summary:    "Get the values of configuration parameters", Run: configGet},
				{Name: "help", Arity: 2, Flags: command.Loading | command.Stale, Group: "server",
					Since: "5.0.0", Complexity: "O(1)",
					Summary: "Show helpful text about the different subcommands", Run: command.Help},
				{Name: "resetstat", Arity: 2, Flags: operator | command.Stepwise, Group: "server",
					Since: "2.0.0", Complexity: "O(1)", Summary: "Reset the stats returned by INFO",
					Run: configResetStat},
				{Name: "rewrite", Arity: 2, Flags: operator, Group: "server", Since: "2.8.0",
					Complexity: "O(1)",
					Summary:    "Rewrite the configuration file with the in memory configuration",
					Run:        configRewrite},
				{Name: "set", Arity: -4, Flags: operator, Group: "server", Since: "2.0.0",
					Tips:       "request_policy:all_nodes response_policy:all_succeeded",
					Syntax:     "parameter value [parameter value ...]",
					Complexity: "O(N) when N is the number of configuration parameters provided",
					Summary:    "Set configuration parameters to the given values", Run: configSet},
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
	asked := string(pattern.Text)
	if !strings.ContainsAny(asked, "[*?") {
		if p := config.Lookup(asked); p != nil && !p.StartOnly {
			names = append(names, asked)
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
	s := sessionOf(c)
	changes, err := parseConfigChanges(&c.Args)
	if err != nil {
		return err
	}
	s.server.setting.Lock()
	defer s.server.setting.Unlock()
	var apply []func()
	for _, change := range changes {
		put, err := change.Set(s.server.Settings, change.value)
		if err != nil {
			return change.refuse(err)
		}
		apply = append(apply, put)
	}
	if err := s.server.useCertificates(changes); err != nil {
		return err
	}

	timeout, preauth := s.server.Settings.Timeout(), s.server.Settings.PreauthTimeout()
	for _, put := range apply {
		put()
	}
	if s.server.Settings.Timeout() != timeout || s.server.Settings.PreauthTimeout() != preauth {
		s.server.applyTimeouts()
	}
	if slices.ContainsFunc(changes, func(change configChange) bool { return change.Name == "requirepass" }) {
		c.Env.UsersChanged(c)
	}
	s.server.applyMemoryLimits()
	s.server.applyDiagnostics()
	if slices.ContainsFunc(changes, func(change configChange) bool { return change.Name == "maxmemory" }) {
		s.server.warnAboutMaxMemory()
	}
	s.deferUntilUnlocked(s.server.configure)
	s.deferUntilUnlocked(s.server.evictClientsOfAllPools)

	c.Reply.OK()
	return nil
}

// useCertificates puts the changes of TLS files into force, all or none. The settings do not have
// them yet.
func (s *Server) useCertificates(changes []configChange) error {
	files, first := s.Settings.TLS(), -1
	for i, change := range changes {
		if change.TLS != nil {
			*change.TLS(&files) = change.value
			if first < 0 {
				first = i
			}
		}
	}
	if first < 0 || s.certificates == nil {
		return nil
	}
	if err := s.certificates.Use(files.Files()); err != nil {
		return changes[first].refuse(fmt.Errorf("Unable to update TLS configuration: %w", err))
	}
	return nil
}

// configChange is a parameter, the name the client used, and its new value.
type configChange struct {
	*config.Parameter
	called, value string
}

func (c configChange) sameParameter(other configChange) bool { return c.Parameter == other.Parameter }

func (c *configChange) refuse(why error) error {
	return engine.Error(
		fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument '%.128s') - %v", c.called, why),
	)
}

// parseConfigChanges parses names and values. It checks the names; the values are parsed when all
// names are known to be good.
func parseConfigChanges(a *command.Args) (changes []configChange, err error) {
	if a.Left()%2 != 0 {
		return nil, engine.ErrSyntax
	}
	for a.More() {
		change := configChange{called: string(a.Next()), value: string(a.Next())}
		change.Parameter = config.Lookup(change.called)
		switch {
		case change.Parameter == nil || change.StartOnly:
			return nil, engine.Error(
				fmt.Sprintf("ERR Unknown option or number of arguments for CONFIG SET - '%.128s'", change.called),
			)
		case change.Set == nil:
			return nil, change.refuse(config.ErrImmutable)
		case slices.ContainsFunc(changes, change.sameParameter):
			return nil, change.refuse(config.ErrDuplicate)
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// configResetStat handles CONFIG RESETSTAT.
func configResetStat(c *command.Call) error {
	s := sessionOf(c)
	c.Tx.ResetStats()
	s.server.resetTotals()
	s.server.oomRefusals.Store(0)
	c.Env.AccessLog.ResetCounts()
	s.server.loginTimeouts.Store(0)
	s.server.handshakeFailures.Store(0)
	s.server.memory.Evicted.Store(0)
	s.server.memory.Unread.Store(0)
	s.meter.Flush()
	s.server.Stats.Reset()
	c.Reply.OK()
	return nil
}

// configRewrite handles CONFIG REWRITE.
func configRewrite(c *command.Call) error {
	switch err := c.Env.Settings.Rewrite(); err {
	case nil:
		c.Reply.OK()
		return nil
	case config.ErrNoFile:
		return engine.Error("ERR " + err.Error())
	default:
		sessionOf(c).server.Log.Warn("CONFIG REWRITE failed", "error", err)
		return engine.Error("ERR Rewriting config file: " + err.Error())
	}
}
