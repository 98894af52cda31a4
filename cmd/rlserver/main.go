package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"rlserver/clock"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rlserver:", err)
		os.Exit(1)
	}
}

// run is the program. It returns nil after an orderly end; an error when the server was told something that makes no sense, or could not
// start, or had to stop.
func run(argv []string, out io.Writer) error {
	if len(argv) > 0 {
		if t, ok := tools[argv[0]]; ok {
			return t.use(argv[1:], out)
		}
	}
	c, done, err := parse(argv, out)
	if done || err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // who cannot wait for the orderly end sends a second signal
	return serve(ctx, c, clock.System())
}
