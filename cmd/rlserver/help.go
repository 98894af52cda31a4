package main

import (
	"strings"

	"rlserver/engine"
)

const description = `A rate limiter for any client of Redis: send it RL.SLIDE, RL.TOKEN, RL.MULTI or RL.FIXED.

	rlserver &
	redis-cli RL.SLIDE user:42 100 1m

Each flag can also be set in the environment, as RLSERVER_ and its name: RLSERVER_PORT=6380,
RLSERVER_REQUIREPASS_FILE=/run/secrets/password. A flag takes precedence.
CONFIG SET changes what can change while the server runs, until it stops.

	rlserver docs               prints the documentation of all commands
	rlserver check DIR          reads a data directory and reports whether a server would start on it
	rlserver repair DIR         cuts off what is damaged, and keeps a copy
	rlserver repair --clock DIR moves data back that is ahead of the present, and keeps a copy
	rlserver dump [--json] DIR  prints the changes in a data directory, one per line
	rlserver gen-cert DIR       makes certificates to try TLS with

Each of these has a --help of its own.`

// flagHelp has the text that --help prints for each flag. Line breaks in it are spaces.
var flagHelp = map[string]string{
	"version": "Print the version and exit.",

	"port": "TCP port, 6379 by default. 0: none.",
	"bind": `Addresses to listen on, separated by commas or, in quotes, by spaces. * means all addresses of this
		machine. An address that begins with - is skipped if this machine does not have it. 127.0.0.1,-::1 by
		default.`,
	"unixsocket":     "Unix socket to listen on as well.",
	"unixsocketperm": "Permissions of the Unix socket, in octal, such as 770. By default the umask decides.",
	"tcp-keepalive": `How long a connection is silent before the system probes whether its peer is alive, 300 by
		default. 0: never.`,

	"requirepass": `Password that clients must give with AUTH. Other users of this machine can see it in the list of
		processes; --requirepass-file and the environment avoid that.`,
	"requirepass-file": "Regular file of at most 64 KB whose first line is the password.",
	"preauth-timeout": `How long after it has connected a client may take to give the password, 10 by default. 0: no
		limit.`,
	"protected-mode": "Whether clients on other machines are refused while there is no password, yes by default.",
	"enable-debug-command": `Clients that may use DEBUG: none (no), those on this machine (local), or all (yes).
		local by default.`,

	"maxclients": "How many clients may be connected at once, 10000 by default.",
	"reserved-clients": `How many of the --maxclients connections are kept free for clients on this machine, at most
		half of them, and how many more the Unix socket accepts. 8 by default.`,
	"timeout": "How long a client may be idle before its connection is closed. 0, the default: no limit.",
	"maxmemory": `How much memory the server may use before keys are evicted, such as 256mb. Its own 4 MB or so are
		included. The process stays below one and a half times that. 0, the default: no limit.`,
	"proto-max-key-len": `How long the key of a limiter may be, 64kb by default. Other keys may be as long as in
		Redis.`,
	"maxmemory-policy": `Which keys are evicted: ` + strings.Join(engine.EvictionPolicies, ", ") + `.
		ratelimit, the default, evicts first the limiters whose loss changes least, and never one that denies calls.`,
	"databases": "How many databases SELECT can choose from, 16 by default.",
	"loglevel":  "How much is logged, to standard error: debug, verbose, notice or warning. notice by default.",
	"policies": `YAML file of named limits for RL.CHECK: a regular file of at most 16 MB. It is read at the start,
		after SIGHUP and by RL.POLICY RELOAD.`,

	"maxmemory-clients": `How much memory all clients together may use, for unread replies, incomplete commands and
		transactions, in addition to maxmemory. Beyond it the client that uses most is closed; no key is evicted for
		it. Such as 64mb, or a percentage of maxmemory or, without maxmemory, of the machine's memory. 20% by
		default. 0: no limit.`,
	"preauth-memory": `How much of that all clients together may use that have not given the password, 4mb by
		default.`,
	"client-output-buffer-limit": `How many bytes of replies a client may leave unread: it is closed beyond HARD, or
		beyond SOFT for SECONDS. 'normal 64mb 16mb 60' by default. The classes are normal, replica and pubsub; 0: no
		limit.`,

	"appendonly": `Whether every change is written to a log, from which the state is restored after a restart or a
		crash. yes by default.`,
	"appendfsync": `When the log is synced to the disk: before each call is answered (always), every second
		(everysec), or when the system does it (no). everysec by default.`,
	"dir": "Directory of the log and the snapshots, created if it does not exist. ./rlserver-data by default.",
	"on-disk-failure": `What happens when the log cannot be written: commands that change something are refused
		(refuse), or the server goes on in memory alone (continue). refuse by default.`,
	"auto-aof-rewrite-percentage": `A snapshot replaces the log when the log has grown by this much, 100 by default.
		0: never.`,
	"auto-aof-rewrite-min-size": "How large the log must be for that, 64mb by default.",
	"save": `Take a snapshot also when so many changes were made within so many seconds, such as '3600 1 300 100'.
		None by default. With --appendonly no it also makes an orderly stop take a snapshot.`,
}

// helpOf returns the help text of a flag as one line; "" for a flag without one.
func helpOf(flag string) string { return strings.Join(strings.Fields(flagHelp[flag]), " ") }
