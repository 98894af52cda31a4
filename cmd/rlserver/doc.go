// Command rlserver is a rate-limit server that speaks the Redis protocol.
//
//	rlserver [flags] [FILE]    serves until SIGTERM, SIGINT or SHUTDOWN
//	rlserver check DIR         checks a data directory
//	rlserver repair DIR        copies all files, then removes everything from the first damage on
//	rlserver repair --clock DIR  copies all files, then moves times that are ahead to the present
//	rlserver dump [--json] DIR prints the changes in a data directory, one per line
//	rlserver backup DIR TO     copies the snapshots of a cluster node to a new directory
//	rlserver import redis://…  copies the keys of a running Redis into a running server
//	rlserver gen-cert DIR      generates certificates for tests of TLS
//	rlserver healthcheck [URL] checks over HTTP whether a server is healthy
//	rlserver docs              prints docs/COMMANDS.md
//
// It is the only package that imports all others, and it supplies them with time, randomness, files
// and sockets:
//
//	main.go     the exit code
//	flags.go    flags, one per setting of resp/config; values from the file and the environment
//	help.go     the text of --help
//	config.go   checks of the settings against each other; --check-config
//	users.go    the users of the start; secret.go reads files with secrets
//	run.go      opens and connects the parts of a server
//	listen.go   addresses and sockets
//	wall.go     the clocks of the machine; wall_nemesis.go shifts them in tests
//	tls.go      the certificates of TLS
//	load.go     loads the data and accepts clients
//	stop.go     the orderly stop
//	store.go    implements storage.Store by package persistence
//	web.go      the HTTP server; web_source.go implements web.Source
//	mode.go     what a server alone and a node of a cluster do differently: chosen here, once
//	cluster.go  the node of a cluster; implements resp.Cluster
//	tools.go    the subcommands; import.go that with flags
//
// Flags have the names of Redis' parameters. Each can also be set by an environment variable,
// RLSERVER_ and the name, and in the configuration file FILE. Flags take precedence over the
// environment, and the environment over the file. CONFIG SET changes the settings that can change
// in a running server, and CONFIG REWRITE writes them to the file.
//
// Flags, the file of policies, the lock of the data directory and the addresses are checked before
// the first client is accepted. Clients are accepted when the data is loaded, or after two seconds;
// from then on they get LOADING until it is loaded. An error before that is one line on standard
// error, and the exit code is 1. The log (log/slog, as text or JSON) also goes to standard error.
//
// The server stops in the reverse order of its start: the listeners close, calls that have fully
// arrived are answered, the connections close, the background work stops, and the rest of the log
// is written. A second signal ends the process at once.
package main
