// Command rlserver decides rate limits for clients that speak the Redis protocol.
//
//	rlserver [flags]      serves until SIGTERM, SIGINT or SHUTDOWN
//	rlserver docs         prints docs/COMMANDS.md
//
// It is the one place that knows all packages, and the edge at which time, randomness, files and sockets enter:
//
//	config.go   flags and environment, and what makes no sense in them
//	listen.go   addresses and sockets
//	run.go      what is made of what, in which order, and how it ends
//	policies.go the file of named limits, at the start and after SIGHUP
//	heap.go, processors.go: what the runtime is given to work with
//	main.go     the exit code
//
// Flags have the names of Redis' parameters. Each can be given as an environment variable, RLSERVER_ and the name; a flag goes first. There is no
// configuration file but that of the policies: what may change later is changed by CONFIG SET, and forgotten at the end.
//
// Everything that can go wrong at the start is checked before the first client is let in, and told in one line on standard error: the
// exit code is then 1. From then on the log speaks (log/slog, as text, on standard error).
//
// The order of the end is that of the start backward. The listeners close; the commands that have arrived in full are answered; the
// connections close; the sweeper stops. A second signal does not wait for that.
package main
