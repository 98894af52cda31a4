package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

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
is 0 then, otherwise 1. Changes nothing. A server may be using the directory.
`},
	"repair": {repair, `Usage: rlserver repair [--clock] DIR

Makes a server start on a damaged data directory again. All files are copied to DIR/before-repair-<time> first, which takes as much
room once more; then the log is cut where its damage begins, and of a damaged snapshot the keys before the damage are kept. What comes
after is lost to the server. Changes nothing if a server would start as it is. No server may be using the directory.

With --clock it takes a directory back to the present that is ahead of it, as it was written while the system clock was wrong: see to it
that the clock is right now. All files are copied first, as above. What happened at the latest moment in the data happened now, then; limiters keep
what was used of them, and deadlines are as far away as they were. Times from before the clock was wrong stay. In sorted sets with a deadline, whole
numbers between the present and that are taken for times. Changes nothing if the data is not ahead.
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
	dir, clock, err := directoryAnd("--clock", "repair", args)
	if err != nil {
		return err
	}
	if clock {
		return persistence.RepairClock(dir, time.Now().UnixMilli(), out)
	}
	return persistence.Repair(dir, out)
}

func dump(args []string, out io.Writer) error {
	dir, asJSON, err := directoryAnd("--json", "dump", args)
	if err != nil {
		return err
	}
	return persistence.Dump(dir, out, asJSON)
}

// directoryAnd is the data directory that a tool is given, and whether it is given a flag too.
func directoryAnd(flag, tool string, args []string) (dir string, given bool, err error) {
	rest := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == flag })
	dir, err = dataDirectory(fmt.Sprintf("%s [%s]", tool, flag), rest)
	return dir, len(rest) < len(args), err
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
