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

// tools are what the program does beside serving, by the first word of the command line.
var tools = map[string]func(args []string, out io.Writer) error{
	"docs":   docs,
	"check":  check,
	"repair": repair,
	"dump":   dump,
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
