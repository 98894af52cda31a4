// Command rlserver decides rate limits for clients that speak the Redis protocol.
//
//	rlserver [flags] [FILE]     serves until SIGTERM, SIGINT or SHUTDOWN
//	rlserver check DIR          reports what is readable in a data directory
//	rlserver repair DIR         cuts off what is damaged, and keeps a copy
//	rlserver repair --clock DIR moves data back that is ahead of the present, and keeps a copy
//	rlserver dump [--json] DIR  prints each change in it
//	rlserver gen-cert DIR       makes certificates to try TLS with
//	rlserver healthcheck [URL]  asks the HTTP port of a server whether it is healthy
//	rlserver docs               prints docs/COMMANDS.md
//
// It is the only place that knows all packages, and the edge at which time, randomness, files and
// sockets enter:
//
//	main.go     the exit code
//	flags.go    flags, made from the settings in resp/config, and the sources of values; help.go
//	config.go   which settings exclude each other; --check-config
//	run.go      the parts of a server: how they are opened and connected
//	listen.go   addresses and sockets
//	tls.go      the certificates of TLS
//	load.go     loading the data, and when clients are accepted
//	stop.go     the orderly stop
//	store.go    package persistence as package resp sees it
//	web.go      the HTTP server, and the other parts as package web sees them
//	tools.go    what the program does other than serving
//
// Flags have the names of Redis' parameters. Each can be set as an environment variable, RLSERVER_
// and the name, and in the configuration file FILE; a flag takes precedence over the environment,
// and that over the file. CONFIG SET changes what can change later, and CONFIG REWRITE writes it to
// the file.
//
// Flags, the policies' file, the data directory's lock and the addresses are checked before the
// first client is accepted. Clients are accepted when the data is loaded, or after two seconds;
// from then on they get LOADING until it is. An error until then is reported in one line on
// standard error, and the exit code is 1. The log (log/slog, as text or JSON) goes there too.
//
// The server stops in the reverse order of its start. The listeners close; the commands that have
// arrived in full are answered; the connections close; the background work stops; the log is
// written to its end. A second signal ends the process at once.
package main
