package command

import (
	"strings"

	"rlserver/engine"
)

const (
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
