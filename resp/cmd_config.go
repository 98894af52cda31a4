package resp

import (
	"fmt"
	"slices"
	"strings"

	"rlserver/engine"
)

func init() {
	const operator = admin | noScript | loading | stale
	register(
		&command{name: "config", arity: -2, group: "server", since: "2.0.0", complexity: "Depends on subcommand.",
			summary: "A container for server configuration commands",
			subs: []*command{
				{name: "get", arity: -3, flags: operator, group: "server", since: "2.0.0",
					syntax:     "parameter [parameter ...]",
					complexity: "O(N) when N is the number of configuration parameters provided",
					summary:    "Get the values of configuration parameters", run: configGet},
				{name: "help", arity: 2, flags: loading | stale, group: "server", since: "5.0.0", complexity: "O(1)",
					summary: "Show helpful text about the different subcommands", run: help},
				{name: "resetstat", arity: 2, flags: operator | stepwise, group: "server", since: "2.0.0", complexity: "O(1)",
					summary: "Reset the stats returned by INFO", run: configResetStat},
				{name: "rewrite", arity: 2, flags: operator, group: "server", since: "2.8.0", complexity: "O(1)",
					summary: "Rewrite the configuration file with the in memory configuration", run: configRewrite},
				{name: "set", arity: -4, flags: operator, group: "server", since: "2.0.0",
					tips:       "request_policy:all_nodes response_policy:all_succeeded",
					syntax:     "parameter value [parameter value ...]",
					complexity: "O(N) when N is the number of configuration parameters provided",
					summary:    "Set configuration parameters to the given values", run: configSet},
			}},
	)
}

const errNoConfigFile = engine.Error("ERR The server is running without a config file")

// configGet handles CONFIG GET parameter [parameter ...]: names, or patterns over names. A parameter that is asked for by its
// alias answers by it.
func configGet(c *call) error {
	var names, values []string
	pattern := newGlob(nil, true)
	for c.args.more() {
		pattern.pattern = c.args.next()
		for _, name := range matchParameters(&pattern) {
			if !slices.Contains(names, name) {
				names = append(names, name)
				values = append(values, findParameter(name).get(c.env.settings))
			}
		}
	}

	if err := pattern.err(); err != nil {
		return err
	}

	c.reply.mapping(len(names))
	for i := range names {
		c.reply.bulkString(names[i])
		c.reply.bulkString(values[i])
	}
	return nil
}

// matchParameters gives the names, aliases too, that are meant by a name or a pattern.
func matchParameters(pattern *glob) (names []string) {
	asked := string(pattern.pattern)
	if !strings.ContainsAny(asked, "[*?") {
		if findParameter(asked) != nil {
			names = append(names, asked)
		}
		return names
	}
	for _, p := range parameters {
		for _, name := range []string{p.name, p.alias} {
			if name != "" && pattern.match([]byte(name)) {
				names = append(names, name)
			}
		}
	}
	return names
}

// configSet handles CONFIG SET parameter value [parameter value ...]: all are changed or none.
func configSet(c *call) error {
	s := sessionOf(c)
	changes, err := c.args.configChanges()
	if err != nil {
		return err
	}
	var apply []func()
	for _, change := range changes {
		put, err := change.set(s.server.settings, change.value)
		if err != nil {
			return change.refuse(err)
		}
		apply = append(apply, put)
	}

	timeout, preauth := s.server.settings.Timeout(), s.server.settings.PreauthTimeout()
	for _, put := range apply {
		put()
	}
	if s.server.settings.Timeout() != timeout || s.server.settings.PreauthTimeout() != preauth {
		s.server.retime()
	}
	s.server.fitMemory()
	if slices.ContainsFunc(changes, func(change configChange) bool { return change.name == "maxmemory" }) {
		s.server.warnOfMaxMemory()
	}
	s.afterwards = append(s.afterwards, s.server.configure, s.server.relieveAll)

	c.reply.ok()
	return nil
}

// configChange is a parameter, by the name it was called, and the value it is to have.
type configChange struct {
	*parameter
	called, value string
}

func (c *configChange) refuse(why error) error {
	return engine.Error(fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument '%.128s') - %v", c.called, why))
}

// configChanges takes names and values, which are looked at when all names are known to be good.
func (a *args) configChanges() (changes []configChange, err error) {
	if a.left()%2 != 0 {
		return nil, engine.ErrSyntax
	}
	for a.more() {
		change := configChange{called: string(a.next()), value: string(a.next())}
		change.parameter = findParameter(change.called)
		switch {
		case change.parameter == nil:
			return nil, engine.Error(fmt.Sprintf("ERR Unknown option or number of arguments for CONFIG SET - '%.128s'", change.called))
		case change.set == nil:
			return nil, change.refuse(refusedFixed)
		case slices.ContainsFunc(changes, func(earlier configChange) bool { return earlier.parameter == change.parameter }):
			return nil, change.refuse(refusedTwice)
		}
		changes = append(changes, change)
	}
	return changes, nil
}

func configResetStat(c *call) error {
	s := sessionOf(c)
	c.tx.ResetStats()
	s.server.resetTotals()
	s.server.crowdedOut.Store(0)
	s.server.deniedLogins.Store(0)
	s.server.lateLogins.Store(0)
	s.server.memory.evicted.Store(0)
	s.server.memory.unread.Store(0)
	s.server.tallies.reset()
	c.reply.ok()
	return nil
}

// configRewrite has no file to rewrite: flags and the environment are all the configuration there is.
func configRewrite(c *call) error { return errNoConfigFile }
