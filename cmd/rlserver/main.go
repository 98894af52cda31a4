// Command rlserver decides rate limits for clients that speak the Redis protocol.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// run gives the exit code: 0 after an orderly end, 1 when the server could not start or had to stop, 2 for flags that make no sense.
func run(argv []string) int {
	c, exit, done := parse(argv)
	if done {
		return exit
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "rlserver:", err)
		return 1
	}
	return 0
}
