package command

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rlserver/resp/config"
)

var (
	//go:embed docs_intro.md
	introText string
	//go:embed docs_ratelimit.md
	rateLimitText string
	//go:embed docs_keys.md
	keysText string
	//go:embed docs_server.md
	serverText string
	//go:embed docs_errors.md
	errorsText string
	//go:embed docs_settings.md
	settingsText string
	//go:embed docs_info.md
	infoText string
	//go:embed docs_examples.md
	examplesText string
)

// The texts of the sections that need only a few lines.
const (
	bitsText = "" +
		"A call that would grow a string by 64 KB or more beyond what it sends is checked against `maxmemory`\n" +
		"first: it evicts keys, or returns `OOM`.\n"
	transactionsText = "" +
		"The commands between MULTI and EXEC run as one: no other client sees a part of it. EXEC runs nothing\n" +
		"if a key given to WATCH has changed since.\n"
	clusterText = "" +
		"A server that runs with `--cluster-enabled yes` answers these commands, see docs/CLUSTER.md. Others\n" +
		"return an error, except for CLUSTER HELP. READONLY, READWRITE and ASKING change nothing.\n"
	pubsubText = "" +
		"A message goes to the clients that have subscribed to its channel when it is published, and is not kept. A\n" +
		"client in RESP2 that has subscribed to something can only call these commands, PING, QUIT and RESET; in\n" +
		"RESP3 messages are pushes, and any command can be called.\n\n" +
		"Messages are sent when the replies to the publisher's pipeline are: when the changes before them are kept.\n" +
		"A message to the publisher itself precedes the reply to PUBLISH or, within a transaction, that to EXEC. A\n" +
		"subscriber that does not read is closed by `client-output-buffer-limit pubsub`, and costs the publisher\n" +
		"nothing. `pubsub-max-subscriptions-per-client`, `pubsub-max-subscriptions` and `pubsub-max-patterns` limit\n" +
		"the subscriptions.\n\n" +
		"In a cluster a message reaches the subscribers on all nodes; the reply counts those on this node, as in\n" +
		"Redis. `pubsub-node-queue` bounds what waits for another node: if that hangs or cannot be reached, its\n" +
		"subscribers miss messages, and the publisher does not wait. A shard channel belongs to its slot: other\n" +
		"nodes than the leader reply MOVED, also those of the proxy port to SSUBSCRIBE, and when another node\n" +
		"begins to lead the slot, its subscribers get `sunsubscribe`.\n"
	scriptingText = "" +
		"Scripts are in Lua 5.1, and run as in Redis: docs/COMPATIBILITY.md lists the differences. A script runs\n" +
		"under the locks of the keys that its call declares, as one step for others, and each redis.call has the\n" +
		"permissions of its user. It may not take more memory than `lua-memory-limit`; after `lua-time-limit`\n" +
		"other calls on its keys get BUSY, and SCRIPT KILL ends it if it has changed nothing. Scripts are\n" +
		"logged and replicated: EVALSHA works after a restart, and on a node of a cluster that begins to lead. The\n" +
		"500 scripts of EVAL that were used last are kept, and those of SCRIPT LOAD, up to `lua-cache-limit`. There\n" +
		"are no functions: FCALL, FCALL_RO and FUNCTION LOAD return an error that says so.\n"
)

// manual has the sections of docs/COMMANDS.md. A section without a group consists of a text.
var manual = []struct{ group, title, text string }{
	{"ratelimit", "Rate limits", rateLimitText},
	{"string", "Strings", ""},
	{"bitmap", "Bits of strings", bitsText},
	{"hash", "Hashes", ""},
	{"list", "Lists", ""},
	{"set", "Sets", ""},
	{"sorted-set", "Sorted sets", ""},
	{"generic", "Keys of any type", keysText},
	{"pubsub", "Publish and subscribe", pubsubText},
	{"connection", "Connections", ""},
	{"server", "Server", serverText},
	{"transactions", "Transactions", transactionsText},
	{"cluster", "Cluster", clusterText},
	{"scripting", "Scripting", scriptingText},
	{"", "Errors of any command", errorsText},
	{"", "Settings", settingsText + settable()},
	{"", "INFO fields", infoText},
}

// Documentation returns the text of docs/COMMANDS.md: all commands, as the table declares them. It
// returns an error if a command has no example, or if an example has no command.
func Documentation() (string, error) {
	examples := readExamples()
	if err := checkExamples(examples); err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(introText)
	for _, section := range manual {
		fmt.Fprintf(&text, "- [%s](#%s)%s\n", section.title, anchor(section.title), linkedCommands(section.group))
	}
	for _, section := range manual {
		fmt.Fprintf(&text, "\n## %s\n\n", section.title)
		writeSummaries(&text, section.group)
		text.WriteString(section.text)
		for _, c := range inGroup(section.group) {
			c.document(&text, examples)
		}
	}
	return text.String(), nil
}

// checkExamples returns an error for each command without an example, in its entry or in examples,
// and for each of examples whose title is not a command.
func checkExamples(examples map[string]string) error {
	var errs []error
	unused := maps.Clone(examples)
	for _, section := range manual {
		for _, c := range inGroup(section.group) {
			if c.example(examples) == "" {
				errs = append(errs, fmt.Errorf("%s has no example: add it to its entry in the command table, "+
					"or to resp/command/docs_examples.md", c.title()))
			}
			delete(unused, c.title())
		}
	}
	for _, title := range slices.Sorted(maps.Keys(unused)) {
		errs = append(errs, fmt.Errorf("resp/command/docs_examples.md has an example for %s, which is not a command",
			title))
	}
	return errors.Join(errs...)
}

// example returns a session that shows the command, from its entry or from examples; "" if it has
// none.
func (c *Command) example(examples map[string]string) string {
	return cmp.Or(strings.TrimSpace(c.Example), examples[c.title()])
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
				list = append(list, each)
			}
		}
	}
	return list
}

// title returns the name as users write it: CLIENT LIST.
func (c *Command) title() string {
	return strings.ToUpper(strings.ReplaceAll(c.FullName(), "|", " "))
}

func (c *Command) link() string { return fmt.Sprintf("[%s](#%s)", c.title(), anchor(c.title())) }

// anchor returns the name that a heading is linked by: lower case, hyphens for spaces, no dots.
func anchor(title string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(title), " ", "-"), ".", "")
}

// document writes the section of one command.
func (c *Command) document(text *strings.Builder, examples map[string]string) {
	fmt.Fprintf(text, "\n### %s\n\n", c.title())
	writeWrapped(text, strings.TrimSpace(c.title()+" "+c.Syntax))
	fmt.Fprintf(text, "\n%s.\n\n", strings.TrimSuffix(c.Summary, "."))
	if c.Deprecated != "" {
		fmt.Fprintf(text, "Deprecated since Redis %s: use %s.\n\n", c.Deprecated, c.ReplacedBy)
	}
	complexity := strings.TrimSuffix(c.Complexity, ".")
	fmt.Fprintf(text, "%s · %s · %s\n", c.origin(), complexity, strings.Join(c.properties(), ", "))
	text.WriteString("\n    " + strings.ReplaceAll(c.example(examples), "\n", "\n    ") + "\n")
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

// readExamples parses docs_examples.md. It returns sessions by the title of the command that they
// show.
func readExamples() map[string]string {
	examples := make(map[string]string)
	_, sections, _ := strings.Cut(examplesText, "\n### ")
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
