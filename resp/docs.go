package resp

import (
	_ "embed"
	"fmt"
	"strings"
)

var (
	//go:embed docs_intro.md
	introProse string
	//go:embed docs_ratelimit.md
	rateLimitProse string
	//go:embed docs_keys.md
	keysProse string
	//go:embed docs_server.md
	serverProse string // what the summaries, which are Redis' own, leave open
)

const scriptingProse = "Nothing can be scripted here: EVAL, EVALSHA, EVAL_RO, EVALSHA_RO, FCALL, FCALL_RO, SCRIPT LOAD and FUNCTION LOAD are answered with an error " +
	"that says so and names the commands to use instead. What is below is for clients that look for scripts or clear them away before they begin.\n"

// configurable says which parameters can change while the server runs.
func configurable() string {
	var names []string
	for _, p := range parameters {
		if p.set != nil && !p.inert {
			names = append(names, "`"+p.name+"`")
		}
	}
	return "**CONFIG SET** changes " + strings.Join(names, ", ") + ", until the server stops: there is no file that CONFIG REWRITE could write to. " +
		"All else is fixed by the flags of the start.\n"
}

// manual is how docs/COMMANDS.md is divided.
var manual = []struct{ group, title, prose string }{
	{"ratelimit", "Rate limits", rateLimitProse},
	{"string", "Strings", ""},
	{"bitmap", "Bits of strings", "A call that would stretch a string by 64 KB or more, beyond what it sends, is held against `maxmemory` before: it evicts keys, or is answered `OOM`.\n"},
	{"hash", "Hashes", ""},
	{"sorted-set", "Sorted sets", ""},
	{"generic", "Keys of any type", keysProse},
	{"connection", "Connections", ""},
	{"server", "Server", serverProse + configurable()},
	{"transactions", "Transactions", "Commands between MULTI and EXEC run as one: nobody sees a part of it. EXEC runs nothing if a key given to WATCH has been changed since.\n"},
	{"scripting", "Scripting", scriptingProse},
}

// Documentation writes docs/COMMANDS.md: all commands, as the table declares them.
func Documentation() string {
	var text strings.Builder
	text.WriteString(introProse)
	for _, part := range manual {
		fmt.Fprintf(&text, "\n- [%s](#%s): %s", part.title, anchor(part.title), strings.Join(links(part.group), " · "))
	}
	text.WriteString("\n")
	for _, part := range manual {
		fmt.Fprintf(&text, "\n## %s\n", part.title)
		if part.prose != "" {
			text.WriteString("\n" + part.prose)
		}
		for _, c := range inGroup(part.group) {
			c.document(&text)
		}
	}
	return text.String()
}

// inGroup gives what can be called: of a container its subcommands, and itself if it does something without one.
func inGroup(group string) (list []*command) {
	for _, c := range commands.sorted() {
		for _, each := range append([]*command{c}, c.subs...) {
			if each.group == group && each.run != nil {
				list = append(list, each)
			}
		}
	}
	return list
}

func links(group string) (list []string) {
	for _, c := range inGroup(group) {
		list = append(list, fmt.Sprintf("[%s](#%s)", c.title(), anchor(c.title())))
	}
	return list
}

// title is the name as people write it: CLIENT LIST.
func (c *command) title() string {
	return strings.ToUpper(strings.ReplaceAll(c.fullName(), "|", " "))
}

// anchor is the name that a heading is linked by: lower case, spaces as hyphens, no other signs.
func anchor(title string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(title), " ", "-"), ".", "")
}

func (c *command) document(text *strings.Builder) {
	fmt.Fprintf(text, "\n### %s\n\n", c.title())
	fmt.Fprintf(text, "    %s\n\n", strings.TrimSpace(c.title()+" "+c.syntax))
	fmt.Fprintf(text, "%s.\n\n", strings.TrimSuffix(c.summary, "."))
	if c.deprecated != "" {
		fmt.Fprintf(text, "Deprecated since Redis %s: use %s.\n\n", c.deprecated, c.replacedBy)
	}
	fmt.Fprintf(text, "%s · %s · %s\n", c.origin(), strings.TrimSuffix(c.complexity, "."), strings.Join(c.inWords(), ", "))
	if c.example != "" {
		text.WriteString("\n")
		for line := range strings.Lines(c.example) {
			text.WriteString("    " + line)
		}
		text.WriteString("\n")
	}
}

// origin tells which server brought the command, and when.
func (c *command) origin() string {
	if c.group == "ratelimit" {
		return "rlserver " + c.since
	}
	return "Redis " + c.since
}

// inWords tells people what the flags say.
func (c *command) inWords() (words []string) {
	for _, known := range []struct {
		flag flags
		text string
	}{
		{write, "writes"}, {readonly, "reads"}, {admin, "for operators"}, {noAuth, "needs no authentication"},
		{wholeKeyspace, "all other calls wait meanwhile"},
	} {
		if c.flags&known.flag != 0 {
			words = append(words, known.text)
		}
	}
	if len(words) == 0 {
		words = append(words, "touches no keys")
	}
	return words
}
