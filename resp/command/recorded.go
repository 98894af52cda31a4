package command

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
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
		Flags                      string `json:"doc_flags"`
		DeprecatedSince            string `json:"deprecated_since"`
		ReplacedBy                 string `json:"replaced_by"`
	}
}

// recordings returns what is recorded, by the full name of the command. Most servers are never
// asked for it, and reading it takes milliseconds.
var recordings = sync.OnceValue(func() map[string]*recorded {
	all := make(map[string]*recorded)
	for line := range strings.Lines(recording) {
		r := new(recorded)
		if err := json.Unmarshal([]byte(line), r); err != nil {
			panic(fmt.Sprintf("resp: recorded commands: %v", err))
		}
		all[r.Name] = r
	}
	return all
})

// Quoted returns a copy of a declaration, completed with what Redis' manual says of the command if
// Redis has it.
func (c *Command) Quoted() *Command {
	q := *c
	if r := recordings()[c.FullName()]; r != nil {
		q.Syntax = cmp.Or(c.Syntax, r.Syntax)
		q.Since = cmp.Or(c.Since, r.Docs.Since)
		q.Complexity = cmp.Or(c.Complexity, r.Docs.Complexity)
		q.Summary = cmp.Or(c.Summary, r.Docs.Summary)
		q.Tips = cmp.Or(c.Tips, strings.Join(r.Tips, " "))
		q.DocFlags = cmp.Or(c.DocFlags, r.Docs.Flags)
		q.Deprecated = cmp.Or(c.Deprecated, r.Docs.DeprecatedSince)
		q.ReplacedBy = cmp.Or(c.ReplacedBy, r.Docs.ReplacedBy)
	}
	return &q
}
