package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"rlserver/cluster"
	"rlserver/internal/progress"
	"rlserver/persistence"
	"rlserver/resp/command"
)

// tool is a subcommand.
type tool struct {
	run  func(args []string, out io.Writer) error
	help string // text of --help
}

// tools are the subcommands by name.
var tools = map[string]tool{
	"docs": {docs, `Usage: rlserver docs

Prints docs/COMMANDS.md: all commands, as the command table declares them.
`},
	"healthcheck": {checkHealth, `Usage: rlserver healthcheck [--wait DURATION] [URL]

Checks over HTTP whether a server is healthy, for images without a shell. The exit code is 0 if it is, otherwise 1. The
default URL is http://127.0.0.1:PORT/healthz with the port in the environment variable RLSERVER_HTTP_PORT, or https if
RLSERVER_TLS_CERT_FILE is set. Health checks need neither a password nor a certificate.
/readyz/traffic instead of /healthz checks whether the server has loaded its data, can write to the disk and is not
stopping; /readyz, whether any one node of its cluster may be stopped as well. With --wait it is checked once a second for
up to that long, until it has been so for three seconds: rlserver healthcheck --wait 9m http://127.0.0.1:9121/readyz
For an https URL of this machine the name in the certificate is not checked.
`},
	"check": {check, `Usage: rlserver check DIR

Reads a data directory and prints what is in each file, up to its first damage, and whether a server would start on it.
The exit code is 0 if so, otherwise 1. It changes nothing. A server may be using the directory.
`},
	"repair": {repair, `Usage: rlserver repair [--clock] DIR

Repairs a damaged data directory, so that a server starts on it again. First it copies all files to
DIR/before-repair-<time>, which needs as much disk space as the data. Then it truncates the log where the damage begins;
of a damaged snapshot it keeps the keys before the damage. Everything after the damage is lost. If a server would start
anyway, nothing is changed. No server may be using the directory.

With --clock it moves the times in a data directory back to the present, if they are ahead because the system clock was
wrong. Make sure that the clock is correct before you run it. It copies all files first, as above.
It treats the latest time in the data as the present: limiters keep their usage, and the remaining time of each deadline
stays the same. Times from before the clock was wrong do not change. In sorted sets with a deadline, integers between
the present and the latest time count as times. If the data is not ahead, nothing is changed.
`},
	"dump": {dump, `Usage: rlserver dump [--json] DIR

Prints every change in a data directory, one per line: the newest snapshot, and the log after it. Times are in UTC;
with --json they are in Unix milliseconds. Text that is not UTF-8 is quoted; with --json it is in base64, and the name
of its field ends in _base64. It changes nothing. A server may be using the directory.
`},
	"backup": {backup, `Usage: rlserver backup DIR TO

Copies the latest snapshots of a cluster node, whose directory is DIR, to the new directory TO. The node may be running:
send it SAVE before. A node that is started with --dir TO is a new cluster with the keys, named limits and users of the
snapshots; others join it as new nodes. For groups of which the node has no replica, copy the folders from the backup of
another node. To back up a server without a cluster, copy its directory.
`},
	"import": {importKeys, importHelp},
	"gen-cert": {genCert, `Usage: rlserver gen-cert DIR [HOST ...]

Generates certificates for tests of TLS, valid for a year: ca.crt, server.crt, server.key, client.crt and client.key in
DIR, which is created if it does not exist. The server certificate is valid for localhost, 127.0.0.1, ::1 and each HOST,
a name or an address. The key of the CA is discarded. Existing files are never overwritten.
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

func backup(args []string, out io.Writer) error {
	if len(args) != 2 || args[1] == "" {
		return errors.New("name the data directory and a new directory: rlserver backup DIR TO")
	}
	dir, err := dataDirectory("backup", args[:1])
	if err != nil {
		return err
	}
	return cluster.Backup(dir, args[1], out)
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
		// a progress bar would be printed between the lines
		return persistence.Dump(dir, out, asJSON, persistence.NoProgress{})
	}
	return persistence.Dump(dir, out, asJSON, meter())
}

// meter returns a Meter that shows the progress of a tool on standard error.
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
