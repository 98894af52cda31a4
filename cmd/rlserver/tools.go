package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"rlserver/persistence"
	"rlserver/resp"
)

// tool is something the program does beside serving.
type tool struct {
	run  func(args []string, out io.Writer) error
	help string // what --help prints
}

// tools are found by the first word of the command line.
var tools = map[string]tool{
	"docs": {docs, `Usage: rlserver docs

Prints docs/COMMANDS.md: all commands, as the command table declares them.
`},
	"check": {check, `Usage: rlserver check DIR

Reads a data directory and says what is in each file, up to its first damage, and whether a server would start on it: the exit code
is 0 then, otherwise 1. Changes nothing. While a server uses the directory, the end of its log may look torn.
`},
	"repair": {repair, `Usage: rlserver repair DIR

Makes a server start on a damaged data directory again. All files are copied to DIR/before-repair-<time> first, which takes as much
room once more; then the log is cut where its damage begins, and of a damaged snapshot the keys before the damage are kept. What comes
after is lost to the server. Changes nothing if a server would start as it is. No server may be using the directory.
`},
	"dump": {dump, `Usage: rlserver dump [--json] DIR

Prints every change in a data directory as a line: the newest snapshot, and the log from there on. Times are in UTC,
with --json in Unix milliseconds. Text that is not UTF-8 is quoted, with --json given in base64 under another name. Changes nothing; a
server may be using the directory.
`},
}

// use runs a tool, or tells how it is used.
func (t tool) use(args []string, out io.Writer) error {
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		_, err := io.WriteString(out, t.help)
		return err
	}
	return t.run(args, out)
}

func docs(args []string, out io.Writer) error {
	if len(args) > 0 {
		return errors.New("docs takes no arguments")
	}
	_, err := io.WriteString(out, resp.Documentation())
	return err
}

func check(args []string, out io.Writer) error {
	dir, err := dataDirectory("check", args)
	if err != nil {
		return err
	}
	return persistence.Check(dir, out)
}

func repair(args []string, out io.Writer) error {
	dir, err := dataDirectory("repair", args)
	if err != nil {
		return err
	}
	return persistence.Repair(dir, out)
}

func dump(args []string, out io.Writer) error {
	asJSON := slices.Contains(args, "--json")
	dir, err := dataDirectory("dump [--json]", slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--json" }))
	if err != nil {
		return err
	}
	return persistence.Dump(dir, out, asJSON)
}

// dataDirectory is the one argument of a tool.
func dataDirectory(tool string, args []string) (string, error) {
	if len(args) != 1 || args[0] == "" || args[0][0] == '-' {
		return "", fmt.Errorf("say which data directory: rlserver %s DIR", tool)
	}
	info, err := os.Stat(args[0])
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is no directory", args[0])
	}
	return args[0], nil
}
