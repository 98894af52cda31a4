// Command rlserver decides rate limits for clients that speak the Redis protocol.
//
//	rlserver [flags]            serves until SIGTERM, SIGINT or SHUTDOWN
//	rlserver check DIR          says what is readable in a data directory
//	rlserver repair DIR         cuts off what is damaged, and keeps a copy
//	rlserver repair --clock DIR takes data back that is ahead of the present, and keeps a copy
//	rlserver dump [--json] DIR  prints each change in it
//	rlserver docs               prints docs/COMMANDS.md
//
// It is the one place that knows all packages, and the edge at which time, randomness, files and sockets enter:
//
//	config.go   flags and environment, and what makes no sense in them
//	listen.go   addresses and sockets
//	run.go      what is made of what, in which order, and how it ends
//	store.go    what package persistence looks like to package resp
//	policies.go the file of named limits, at the start and after SIGHUP; policies_yaml.go: what it says
//	load.go     when clients are let in
//	addressspace.go whether ulimit -v leaves room
//	file.go     how files are read that operators name
//	tools.go    what the program does beside serving
//	heap.go, processors.go: what the runtime is given to work with
//	main.go     the exit code
//
// Flags have the names of Redis' parameters. Each can be given as an environment variable, RLSERVER_ and the name; a flag takes precedence. There is no
// configuration file but that of the policies. CONFIG SET changes what can change later, until the end of the process.
//
// Flags, the policies' file, the data directory's lock and the addresses are checked before the first client is let in. Clients are let in when the data is loaded, or after
// two seconds: then they are told LOADING. What goes wrong until then is told in one line on standard error, and the exit code is 1. The log (log/slog, as text) goes there too.
//
// The order of the end is that of the start backward. The listeners close; the commands that have arrived in full are answered; the
// connections close; the background work stops; the log is written to its end. A second signal ends the process at once.
package main
