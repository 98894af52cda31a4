package command

import (
	"strings"

	"rlserver/engine"
)

const (
	ErrNoAuth = engine.Error("NOAUTH Authentication required.")
	// ErrBusy refuses a call on the keys of a script that takes too long.
	ErrBusy = engine.ErrBusy

	ErrLoading        = engine.Error("LOADING Redis is loading the dataset in memory")
	ErrTooManyWindows = engine.Error("ERR too many windows: RL.MULTI takes at most 128")
	ErrEmptyID        = engine.Error("ERR ID must not be empty")
	ErrEmptyLease     = engine.Error("ERR id must not be empty: a lease is renewed and released by its id")
	ErrTooManyRules   = engine.Error("ERR too many rules: RL.ALL takes at most 128")
	ErrNoSuchDB       = engine.Error("ERR DB index is out of range")
	ErrNotPositive    = engine.Error("ERR value is out of range, must be positive")
	errNotInt32       = engine.Error("ERR value is out of range, value must between -2147483648 and 2147483647")
	// ErrBelowLongMin refuses the one integer that cannot be negated.
	ErrBelowLongMin = engine.Error(
		"ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
	)
	// ErrNoShardInExec refuses SSUBSCRIBE within EXEC.
	ErrNoShardInExec = engine.Error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")

	errOutOfRange  = engine.Error("ERR value is out of range")
	errNoFunctions = engine.Error("ERR this server has no functions: EVAL and EVALSHA run scripts, and RL.SLIDE, " +
		"RL.TOKEN, RL.FIXED, RL.LEASE and RL.ALL limit without one")
	errNoDebugger = engine.Error("ERR this server has no debugger of scripts: redis.log writes to the log")

	errFixedSlots = engine.Error("ERR slots are not assigned by hand: they are divided into groups when a cluster is " +
		"formed, and its nodes share these among themselves. CLUSTER MEET and CLUSTER FORGET add and remove nodes, " +
		"CLUSTER FAILOVER has other nodes lead the slots of this one")
	errNoReplicate = engine.Error("ERR a node is not a replica of another one: each group of slots has replicas on " +
		"several nodes, which elect a leader. INFO replication shows it, INFO cluster how many replicas a node has")
	errNoReset = engine.Error("ERR a node is not reset: CLUSTER FORGET removes it from its cluster, and without its " +
		"directory it joins one as a new node")
	errNoEpochs = engine.Error("ERR epochs are not set by hand: they are the terms of elections. CLUSTER FAILOVER " +
		"has other nodes lead the slots of this one")
	errNoLinks = engine.Error("ERR the links between nodes are not listed: CLUSTER NODES shows which nodes are " +
		"connected, and INFO cluster when this node has last heard each")
)

// ProtectedModeRefusal is the exact text of Redis: users search for it.
const ProtectedModeRefusal = "DENIED Redis is running in protected mode because protected mode is enabled and no " +
	"password is set for the default user. " +
	"In this mode connections are only accepted from the loopback interface. " +
	"If you want to connect from external computers to Redis you may adopt one of the following solutions: " +
	"1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface " +
	"by connecting to Redis from the same host the server is running, " +
	"however MAKE SURE Redis is not publicly accessible from internet if you do so. Use CONFIG REWRITE to make this " +
	"change permanent. " +
	"2) Alternatively you can just disable the protected mode by editing the Redis configuration file, and setting " +
	"the protected mode option to 'no', and then restarting the server. " +
	"3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. " +
	"4) Setup a an authentication password for the default user. " +
	"NOTE: You only need to do one of the above things in order for the server to start accepting connections from " +
	"the outside."

// unsupported has the errors of commands of Redis that this server does not have, by their full
// names, if they say what to use instead. They are not in the command table, so that COMMAND does
// not list them.
var unsupported = map[string]error{
	"fcall": errNoFunctions, "fcall_ro": errNoFunctions, "function|load": errNoFunctions,
	"script|debug": errNoDebugger,

	"cluster|addslots": errFixedSlots, "cluster|addslotsrange": errFixedSlots, "cluster|delslots": errFixedSlots,
	"cluster|delslotsrange": errFixedSlots, "cluster|flushslots": errFixedSlots, "cluster|setslot": errFixedSlots,
	"cluster|replicate": errNoReplicate, "cluster|reset": errNoReset,
	"cluster|bumpepoch": errNoEpochs, "cluster|set-config-epoch": errNoEpochs, "cluster|links": errNoLinks,
}

// Unsupported returns the error for an unknown command, or subcommand of a container, that Redis
// has; nil if it is not known what to use instead.
func Unsupported(container string, word []byte) error {
	if len(word) > 16 {
		return nil
	}
	name := strings.ToLower(string(word))
	if container != "" {
		name = container + "|" + name
	}
	return unsupported[name]
}
