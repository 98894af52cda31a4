package command

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

// recording describes the commands of Redis, one per line: see TestCommandsMatchRedis.
//
//go:embed redis-7.0.15.jsonl
var recording string

// recorded is what COMMAND says in Redis of a command, apart from what decides how it runs.
type recorded struct {
	Name, Syntax string
	Tips         []string
	Docs         struct {
		Summary, Since, Complexity string
		DeprecatedSince            string `json:"deprecated_since"`
		ReplacedBy                 string `json:"replaced_by"`
	}
}

// recordings has what is recorded, by the full name of the command.
var recordings = readRecordings()

func readRecordings() map[string]*recorded {
	all := make(map[string]*recorded)
	for line := range strings.Lines(recording) {
		r := new(recorded)
		if err := json.Unmarshal([]byte(line), r); err != nil {
			panic(fmt.Sprintf("resp: recorded commands: %v", err))
		}
		all[r.Name] = r
	}
	return all
}

// quote completes the declaration of a command that Redis has with what its manual says of it.
func (c *Command) quote() {
	r := recordings[c.FullName()]
	if r == nil {
		return
	}
	c.Syntax = cmp.Or(c.Syntax, r.Syntax)
	c.Since = cmp.Or(c.Since, r.Docs.Since)
	c.Complexity = cmp.Or(c.Complexity, r.Docs.Complexity)
	c.Summary = cmp.Or(c.Summary, r.Docs.Summary)
	c.Tips = cmp.Or(c.Tips, strings.Join(r.Tips, " "))
	c.Deprecated = cmp.Or(c.Deprecated, r.Docs.DeprecatedSince)
	c.ReplacedBy = cmp.Or(c.ReplacedBy, r.Docs.ReplacedBy)
}
