package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"rlserver/internal/importer"
)

const importHelp = `Usage: rlserver import [FLAGS] FROM

Copies the keys of a running Redis, or of a cluster, into a running server, or a cluster. FROM is the address of the
source: redis://[[user]:password@]host[:port][/database], rediss://... for TLS, or unix://path[?db=database].

  --to=URL                        address of the target (redis://127.0.0.1:6379)
  --from-password-file=FILE       password of the source: the first line of the file
  --to-password-file=FILE         password of the target
  --from-ca=FILE, --to-ca=FILE    certificates to trust with rediss://, instead of those of the system
  --from-cert=FILE --from-key=FILE  certificate for the source, and its key
  --to-cert=FILE --to-key=FILE    certificate for the target, and its key
  --replace                       overwrite keys that the target has; otherwise they are skipped
  --match=PATTERN                 copy only keys that match, such as 'limits:*'
  --keys-per-second=N             copy at most so many keys per second
  --megabytes-per-second=N        copy at most so many megabytes per second
  --state=FILE                    what the next run needs to go on (rlserver-import.state)

Each key that exists during the whole import is copied, with its deadline; a key that changes meanwhile is copied as it
was when it was read. If the import stops half-way, the same command goes on where it stopped, or begins again if a server
has restarted. At the end it prints what was copied and what was left out, and why. The exit code is 0 if nothing was left
out; skipped keys are not left out.
Users need, for all keys, +@connection +scan +type +memory|usage +time +pttl +pexpiretime +dump +multi +exec +info +dbsize
+cluster|slots at the source, and +@connection +restore +exists +time +info +cluster|slots at the target.
`

// importFlags are the arguments of rlserver import.
type importFlags struct {
	From               string `arg:""`
	To                 string `default:"redis://127.0.0.1:6379"`
	FromPasswordFile   string
	FromCA             string `name:"from-ca"`
	FromCert           string
	FromKey            string
	ToPasswordFile     string
	ToCA               string `name:"to-ca"`
	ToCert             string
	ToKey              string
	Replace            bool
	Match              string
	KeysPerSecond      int64
	MegabytesPerSecond int64
	State              string `default:"rlserver-import.state"`
}

func importKeys(args []string, out io.Writer) error {
	var f importFlags
	parser, err := kong.New(&f, kong.Name("rlserver import"), kong.NoDefaultHelp())
	if err != nil {
		return err
	}
	if _, err := parser.Parse(args); err != nil {
		return fmt.Errorf("%w: see rlserver import --help", err)
	}
	const megabyte, maxMegabytes = 1_000_000, 1_000_000_000
	if f.MegabytesPerSecond > maxMegabytes {
		return errors.New("--megabytes-per-second is too large")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second signal ends the process at once
	return importer.Run(ctx, importer.Options{
		From: importer.Endpoint{
			URL: f.From, PasswordFile: f.FromPasswordFile, CA: f.FromCA, Cert: f.FromCert, Key: f.FromKey,
		},
		To:      importer.Endpoint{URL: f.To, PasswordFile: f.ToPasswordFile, CA: f.ToCA, Cert: f.ToCert, Key: f.ToKey},
		Replace: f.Replace, Match: f.Match, State: f.State,
		KeysPerSecond: f.KeysPerSecond, BytesPerSecond: f.MegabytesPerSecond * megabyte,
	}, out, meter(), func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "rlserver: the import "+format+"\n", args...)
	})
}
