package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"rlserver/internal/process"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rlserver:", err)
		os.Exit(1)
	}
}

// run runs the program. It returns nil after an orderly stop, and an error if the arguments are
// invalid, the server cannot start, or it stops with a loss of data.
func run(argv []string, out io.Writer) error {
	if len(argv) > 0 {
		if t, ok := tools[argv[0]]; ok {
			return t.use(argv[1:], out)
		}
	}
	if err := process.CheckStart(); err != nil {
		return err
	}
	c, done, err := parse(argv, out)
	if done || err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second signal ends the process at once
	return serve(ctx, c, machineClock())
}
