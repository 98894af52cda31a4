package command

import (
	"cmp"
	"embed"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"rlserver/resp/config"
)

// texts has what docs/COMMANDS.md says beyond the declarations: docs_examples.md, docs_intro.md and
// a file for each section that needs one, named by its group.
//
//go:embed docs_*.md
var texts embed.FS

func textOf(name string) string {
	text, _ := texts.ReadFile("docs_" + name + ".md") // most sections have none
	return string(text)
}

// manual has the sections of docs/COMMANDS.md. Those of groups without commands consist of a text.
var manual = []struct{ group, title string }{
	{"ratelimit", "Rate limits"}, {"string", "Strings"}, {"bitmap", "Bits of strings"}, {"hash", "Hashes"},
	{"list", "Lists"}, {"set", "Sets"}, {"sorted-set", "Sorted sets"}, {"generic", "Keys of any type"},
	{"pubsub", "Publish and subscribe"}, {"connection", "Connections"}, {"server", "Server"},
	{"transactions", "Transactions"}, {"cluster", "Cluster"}, {"scripting", "Scripting"},
	{"errors", "Errors of any command"}, {"settings", "Settings"}, {"info", "INFO fields"},
}

// Documentation returns the text of docs/COMMANDS.md: all commands, as the table declares them. It
// returns an error if a command has no example, or if an example has no command.
func Documentation() (string, error) {
	examples := Examples()
	if err := checkExamples(examples); err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(textOf("intro"))
	for _, section := range manual {
		fmt.Fprintf(&text, "- [%s](#%s)%s\n", section.title, anchor(section.title), linkedCommands(section.group))
	}
	for _, section := range manual {
		fmt.Fprintf(&text, "\n## %s\n\n", section.title)
		writeSummaries(&text, section.group)
		text.WriteString(textOf(section.group))
		if section.group == "settings" {
			text.WriteString(settable())
		}
		for _, c := range inGroup(section.group) {
			c.document(&text, examples)
		}
	}
	return text.String(), nil
}

// checkExamples returns an error for each command without an example, and for each example whose
// title is not a command.
func checkExamples(examples map[string]string) error {
	var errs []error
	unused := maps.Clone(examples)
	for _, section := range manual {
		for _, c := range inGroup(section.group) {
			if examples[c.Title()] == "" {
				errs = append(errs, fmt.Errorf("%s has no example: add it to resp/command/docs_examples.md", c.Title()))
			}
			delete(unused, c.Title())
		}
	}
	for _, title := range slices.Sorted(maps.Keys(unused)) {
		errs = append(errs, fmt.Errorf("resp/command/docs_examples.md has an example for %s, which is not a command",
			title))
	}
	return errors.Join(errs...)
}

// linkedCommands returns the names of a group's commands, linked, for the table of contents.
func linkedCommands(group string) string {
	var links []string
	for _, c := range inGroup(group) {
		links = append(links, c.link())
	}
	if len(links) == 0 {
		return ""
	}
	return ": " + strings.Join(links, " · ")
}

// writeSummaries writes the table of a group's commands, which begins its section.
func writeSummaries(text *strings.Builder, group string) {
	list := inGroup(group)
	if len(list) == 0 {
		return
	}
	text.WriteString("| command | what it does |\n| --- | --- |\n")
	for _, c := range list {
		first, _, _ := strings.Cut(c.Summary, ". ")
		fmt.Fprintf(text, "| %s | %s |\n", c.link(), strings.ReplaceAll(strings.TrimSuffix(first, "."), "|", `\|`))
	}
	text.WriteString("\n")
}

// inGroup returns the commands of a group that can be called: a container only if it does something
// without a subcommand.
func inGroup(group string) (list []*Command) {
	for _, c := range Table.Sorted() {
		for _, each := range append([]*Command{c}, c.Subs...) {
			if each.Group == group && each.Run != nil {
				list = append(list, each.Quoted())
			}
		}
	}
	return list
}

// Title returns the name as users write it: CLIENT LIST.
func (c *Command) Title() string {
	return strings.ToUpper(strings.ReplaceAll(c.FullName(), "|", " "))
}

func (c *Command) link() string { return fmt.Sprintf("[%s](#%s)", c.Title(), anchor(c.Title())) }

// anchor returns the name that a heading is linked by: lower case, hyphens for spaces, no dots.
func anchor(title string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(title), " ", "-"), ".", "")
}

// document writes the section of one command.
func (c *Command) document(text *strings.Builder, examples map[string]string) {
	fmt.Fprintf(text, "\n### %s\n\n", c.Title())
	writeWrapped(text, strings.TrimSpace(c.Title()+" "+c.Syntax))
	fmt.Fprintf(text, "\n%s.\n\n", strings.TrimSuffix(c.Summary, "."))
	if c.Deprecated != "" {
		fmt.Fprintf(text, "Deprecated since Redis %s: use %s.\n\n", c.Deprecated, c.ReplacedBy)
	}
	complexity := strings.TrimSuffix(c.Complexity, ".")
	fmt.Fprintf(text, "%s · %s · %s\n", c.origin(), complexity, strings.Join(c.properties(), ", "))
	text.WriteString("\n    " + strings.ReplaceAll(examples[c.Title()], "\n", "\n    ") + "\n")
}

// writeWrapped writes a syntax as an indented block whose lines end at column 110, with
// continuation lines indented further.
func writeWrapped(text *strings.Builder, syntax string) {
	line := "   "
	for word := range strings.FieldsSeq(syntax) {
		if len(line)+1+len(word) > 110 {
			text.WriteString(line + "\n")
			line = "       "
		}
		line += " " + word
	}
	text.WriteString(line + "\n")
}

// origin returns the server that introduced the command, and its version.
func (c *Command) origin() string {
	switch {
	case c.Group == "ratelimit" || c.FullName() == "cluster|drain":
		return "rlserver " + c.Since
	case c.FullName() == "script|show":
		return "Valkey " + c.Since
	}
	return "Redis " + c.Since
}

// properties describes the flags that matter to a reader.
func (c *Command) properties() (words []string) {
	for _, known := range []struct {
		flag Flags
		text string
	}{
		{Write, "writes"}, {Readonly, "reads"}, {Admin, "for operators"}, {NoAuth, "needs no authentication"},
		{WholeKeyspace, "all other calls wait meanwhile"},
	} {
		if c.Flags&known.flag != 0 {
			words = append(words, known.text)
		}
	}
	if len(words) == 0 {
		words = append(words, "accesses no keys")
	}
	return words
}

// Examples parses docs_examples.md. It returns sessions by the title of the command that they
// show.
func Examples() map[string]string {
	examples := make(map[string]string)
	_, sections, _ := strings.Cut(textOf("examples"), "\n### ")
	for section := range strings.SplitSeq(sections, "\n### ") {
		title, session, _ := strings.Cut(section, "\n")
		examples[title] = strings.TrimSpace(session)
	}
	return examples
}

// settable returns a table of the settings that CONFIG SET changes.
func settable() string {
	var text strings.Builder
	text.WriteString("| CONFIG SET changes |\n| --- |\n")
	for _, p := range config.Parameters {
		if p.Set != nil && !p.Inert {
			fmt.Fprintf(&text, "| `%s` |\n", p.Name)
		}
	}
	return text.String()
}

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
