package main

import (
	"strings"

	"rlserver/resp/config"
)

const description = `A rate limiter for all Redis clients, with commands such as RL.SLIDE, RL.TOKEN, RL.FIXED and RL.MULTI.

	rlserver &
	redis-cli RL.SLIDE user:42 100 1m

Each setting is a flag, an environment variable and a line of the configuration file, which has the
syntax of redis.conf: --requirepass-file FILE, RLSERVER_REQUIREPASS_FILE=FILE, requirepass-file FILE.
Flags take precedence over the environment, and the environment over the file. A yes|no flag without
a value means yes. CONFIG SET changes settings of the running server; CONFIG REWRITE writes them to
the file.

	rlserver healthcheck [URL]  checks over HTTP whether a server is healthy
	rlserver docs               prints the documentation of all commands
	rlserver check DIR          reads a data directory and reports whether a server would start on it
	rlserver backup DIR TO      copies the snapshots of a cluster node to a new directory
	rlserver repair DIR         copies all files, then removes everything from the first damage on
	rlserver repair --clock DIR copies all files, then moves times that are ahead back to the present
	rlserver dump [--json] DIR  prints the changes in a data directory, one per line
	rlserver import redis://…   copies the keys of a running Redis into a running server
	rlserver gen-cert DIR       generates certificates for tests of TLS

Each of these has a --help of its own.`

// optionHelp has the help texts of options.
var optionHelp = map[string]string{
	"file":                  "Configuration file.",
	"config":                "Configuration file, like the argument FILE.",
	"ignore-unknown-config": "Start despite unknown directives in the configuration file, and log them.",
	"check-config": "Print each setting, its value and its origin, and exit. The exit code is 1 after an " +
		"error.",
	"version": "Print the version and exit.",
}

// helpOf returns the help text of a flag as one line, or "".
func helpOf(flag string) string {
	text := optionHelp[flag]
	if p := config.Lookup(flag); p != nil {
		text = p.Help
	}
	return strings.Join(strings.Fields(text), " ")
}
