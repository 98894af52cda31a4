package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"rlserver/persistence"
	"rlserver/progress"
	"rlserver/resp/command"
)

// tool is a subcommand: something the program does other than serving.
type tool struct {
	run  func(args []string, out io.Writer) error
	help string // what --help prints
}

// tools are the subcommands, by the first word of the command line.
var tools = map[string]tool{
	"docs": {docs, `Usage: rlserver docs

Prints docs/COMMANDS.md: all commands, as the command table declares them.
`},
	"healthcheck": {checkHealth, `Usage: rlserver healthcheck [URL]

Asks a server whether it is healthy, for images without a shell, and exits with 0 if so, otherwise with 1. URL is that
of --http-port: by default http://127.0.0.1:PORT/healthz with the port in the environment variable RLSERVER_HTTP_PORT,
or https if RLSERVER_TLS_CERT_FILE is set. Health checks need neither a password nor a certificate.
With /readyz in place of /healthz it asks whether the server has loaded its data, can write to the disk and is not
stopping. An https URL of this machine is asked without checking the name in the certificate.
`},
	"check": {check, `Usage: rlserver check DIR

Reads a data directory and prints what is in each file, up to its first damage, and whether a server would start on it.
The exit code is 0 if so, otherwise 1. It changes nothing. A server may be using the directory.
`},
	"repair": {repair, `Usage: rlserver repair [--clock] DIR

Makes a server start on a damaged data directory again. First it copies all files to DIR/before-repair-<time>, which
takes as much disk space again. Then it cuts the log where the damage begins; of a damaged snapshot it keeps the keys
before the damage. The server no longer has what comes after. If a server would start anyway, nothing is changed. No
server may be using the directory.

With --clock it moves a directory that is ahead of the present back to it. That is the case if the directory was
written while the system clock was wrong: make sure that the clock is right now. It copies all files first, as above.
It treats the latest moment in the data as the present: limiters keep what was used of them, and the time left until
each deadline stays the same. Times from before the clock was wrong are kept. In sorted sets with a deadline, integers
between the present and the latest moment count as times. If the data is not ahead, nothing is changed.
`},
	"dump": {dump, `Usage: rlserver dump [--json] DIR

Prints every change in a data directory, one per line: the newest snapshot, and the log after it. Times are in UTC,
with --json in Unix milliseconds. Text that is not UTF-8 is quoted; with --json it is in base64, and the name of its
field ends in _base64. It changes nothing. A server may be using the directory.
`},
	"gen-cert": {genCert, `Usage: rlserver gen-cert DIR [HOST ...]

Makes certificates to try TLS with, valid for a year: ca.crt, server.crt, server.key, client.crt and client.key in DIR,
which is created if it does not exist. The server's is valid for localhost, 127.0.0.1, ::1 and each HOST, a name or an
address. The key of the CA is not kept. Files that exist are never overwritten.
`},
}

// use runs a tool, or prints its help.
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
	text, err := command.Documentation()
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

func check(args []string, out io.Writer) error {
	dir, err := dataDirectory("check", args)
	if err != nil {
		return err
	}
	return persistence.Check(dir, out, meter())
}

func repair(args []string, out io.Writer) error {
	dir, clock, err := directoryAnd("--clock", "repair", args)
	if err != nil {
		return err
	}
	if clock {
		return persistence.RepairClock(dir, time.Now().UnixMilli(), out, meter())
	}
	return persistence.Repair(dir, out, meter())
}

func dump(args []string, out io.Writer) error {
	dir, asJSON, err := directoryAnd("--json", "dump", args)
	if err != nil {
		return err
	}
	if file, ok := out.(*os.File); ok && progress.Terminal(file) != nil {
		// a bar would be among the lines
		return persistence.Dump(dir, out, asJSON, persistence.NoProgress{})
	}
	return persistence.Dump(dir, out, asJSON, meter())
}

// meter shows the progress of a tool on standard error.
func meter() *progress.Meter {
	return progress.New(progress.Terminal(os.Stderr), slog.New(slog.NewTextHandler(os.Stderr, nil)))
}

// directoryAnd returns the data directory among the arguments of a tool, and whether a flag is
// given.
func directoryAnd(flag, tool string, args []string) (dir string, given bool, err error) {
	rest := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == flag })
	dir, err = dataDirectory(fmt.Sprintf("%s [%s]", tool, flag), rest)
	return dir, len(rest) < len(args), err
}

// dataDirectory returns the single argument of a tool, which must be a directory.
func dataDirectory(tool string, args []string) (string, error) {
	if len(args) != 1 || args[0] == "" || args[0][0] == '-' {
		return "", fmt.Errorf("name the data directory: rlserver %s DIR", tool)
	}
	info, err := os.Stat(args[0])
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory", args[0])
	}
	return args[0], nil
}
