package clustering

import (
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/config"
)

const (
	// ErrWholeKeyspace refuses a command that needs all keys of the cluster.
	ErrWholeKeyspace = engine.Error("ERR this command is not available in a cluster: no node has all keys")

	errUsers = engine.Error("ERR in a cluster, users are not copied to the other nodes: change the --aclfile " +
		"of each node and send ACL LOAD to each")
	errSave = engine.Error("ERR in a cluster, each group of slots makes its snapshots by itself, as its log " +
		"grows: they cannot be requested")
	errReach = engine.Error("ERR in a cluster, a call cannot read keys that its words do not name: they may " +
		"be on other nodes")
)

// refused has the commands that are not available in a cluster, and why.
var refused = map[string]error{
	"acl|setuser": errUsers, "acl|deluser": errUsers, "acl|save": errUsers,
	"save": errSave, "bgsave": errSave, "bgrewriteaof": errSave, "lastsave": errSave,
	"debug|reload": errSave, "debug|loadaof": errSave,
	"rl.top": ErrWholeKeyspace, "memory|stats": ErrWholeKeyspace, "memory|doctor": ErrWholeKeyspace,
}

// Refused returns why a call with so many keys is not available in a cluster; nil: it is.
func Refused(p *command.Prepared, keys int) error {
	if p.Command.Reaches != nil && p.Command.Reaches(p.Words) {
		return errReach
	}
	if keys > 0 {
		return nil
	}
	return refused[p.Command.FullName()]
}

// fixed has the settings that CONFIG SET cannot change in a cluster, and why.
var fixed = map[string]error{
	"appendfsync":        engine.Error("in a cluster, it is set at the start of a node"),
	"maxmemory":          engine.Error("in a cluster, no keys are evicted and memory has no limit"),
	"proto-max-bulk-len": engine.Error("in a cluster, it is fixed: a call has to fit into an entry of the nodes' log"),
	"save":               engine.Error("in a cluster, snapshots are made as the log of a group grows"),
}

// RefusedSetting returns why settings cannot be changed in a cluster; nil: they can.
func RefusedSetting(changes []config.Change) error {
	for i := range changes {
		if why := fixed[changes[i].Name]; why != nil {
			return changes[i].Refuse(why)
		}
	}
	return nil
}
