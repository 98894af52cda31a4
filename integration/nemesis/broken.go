//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// builds are the servers that are run with -broken, by their tags: first the server as it is, then
// those that are broken on purpose, each with the faults that show it.
var builds = []struct{ tag, faults string }{
	{sound, "kill -9 of leaders,SIGSTOP of a leader,leader alone,clock steps"},
	{"broken_early", "kill -9 of leaders,leader alone"},
	{"broken_denials", "SIGSTOP of a leader"},
	{"broken_norebuild", "leader alone"},
	{"broken_wallclock", "clock steps"},
}

// sound is the tag of all builds, and of the one that is not broken.
const sound = "nemesis"

// tryAll runs each build until there is a finding, and prints a table. The sound one must have
// none, all others must have one.
func (s *settings) tryAll(ctx context.Context, dir string) (wrong error) {
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(rows, "build\tfound after\twhat")
	given := s.faults
	for _, b := range builds {
		if s.build != "" && s.build != b.tag {
			continue
		}
		fmt.Println("---", b.tag)
		s.faults = cmp.Or(given, b.faults)
		row, err := s.tryBuild(ctx, filepath.Join(dir, b.tag), b.tag)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || (row == "") != (b.tag == sound) {
			missed := fmt.Errorf("%s: each broken build must have a finding, the sound one none", b.tag)
			wrong = errors.Join(wrong, missed, err)
		}
		fmt.Fprintf(rows, "%s\t%s\n", b.tag, cmp.Or(row, "-\tnothing"))
	}
	rows.Flush()
	fmt.Print(table.String())
	return wrong
}

// tryBuild runs a build in a folder that it makes, and returns the row of the table; "": there was
// no finding.
func (s *settings) tryBuild(ctx context.Context, dir, tag string) (row string, err error) {
	if err := os.Mkdir(dir, 0o750); err != nil {
		return "", err
	}
	err = s.try(ctx, dir, sound+","+tag)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == findingCode {
		found, err := os.ReadFile(filepath.Join(dir, findingFile))
		return string(found), err
	}
	return "", err
}
