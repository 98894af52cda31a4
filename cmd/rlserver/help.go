package main

import (
	"strings"

	"rlserver/resp/config"
)

const description = `A rate limiter for any client of Redis: send it RL.SLIDE, RL.TOKEN, RL.MULTI or RL.FIXED.

	rlserver &
	redis-cli RL.SLIDE user:42 100 1m

Each setting is a flag, an environment variable and a line of the configuration file, which has the
syntax of redis.conf: --requirepass-file FILE, RLSERVER_REQUIREPASS_FILE=FILE, requirepass-file FILE.
A flag takes precedence over the environment, and that over the file. A flag of yes|no alone is yes.
CONFIG SET changes what can change while the server runs, CONFIG REWRITE writes it to the file.

	rlserver healthcheck [URL]  asks the HTTP port of a server whether it is healthy
	rlserver docs               prints the documentation of all commands
	rlserver check DIR          reads a data directory and reports whether a server would start on it
	rlserver repair DIR         cuts off what is damaged, and keeps a copy
	rlserver repair --clock DIR moves data back that is ahead of the present, and keeps a copy
	rlserver dump [--json] DIR  prints the changes in a data directory, one per line
	rlserver gen-cert DIR       makes certificates to try TLS with

Each of these has a --help of its own.`

// optionHelp has the help texts of options.
var optionHelp = map[string]string{
	"file":                  "Configuration file.",
	"config":                "Configuration file, as the argument FILE.",
	"ignore-unknown-config": "Log the directives of the configuration file that rlserver does not have, and start.",
	"check-config": "Print each setting, its value and where it comes from, and exit: with 1 if there is " +
		"an error.",
	"version": "Print the version and exit.",
}

// helpOf returns the help text of a flag as one line; "" for a flag without one.
func helpOf(flag string) string {
	text := optionHelp[flag]
	if p := config.Lookup(flag); p != nil {
		text = p.Help
	}
	return strings.Join(strings.Fields(text), " ")
}
