package resp

import (
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/config"
)

const (
	errClusterUsers = engine.Error("ERR in a cluster, users are not copied to the other nodes: change the --aclfile " +
		"of each node and send ACL LOAD to each")
	errClusterSave = engine.Error("ERR in a cluster, each group of slots makes its snapshots by itself, as its log " +
		"grows: they cannot be requested")
	errClusterReach = engine.Error("ERR in a cluster, a call cannot read keys that its words do not name: they may " +
		"be on other nodes")
)

// notInCluster has the commands that are not available in a cluster, and why.
var notInCluster = map[string]error{
	"acl|setuser": errClusterUsers, "acl|deluser": errClusterUsers, "acl|save": errClusterUsers,
	"save": errClusterSave, "bgsave": errClusterSave, "bgrewriteaof": errClusterSave, "lastsave": errClusterSave,
	"debug|reload": errClusterSave, "debug|loadaof": errClusterSave,
	"rl.top": errWholeKeyspace, "memory|stats": errWholeKeyspace, "memory|doctor": errWholeKeyspace,
}

// refusedInCluster returns why a call with so many keys is not available in a cluster; nil: it is.
func refusedInCluster(p *command.Prepared, keys int) error {
	if p.Command.Reaches != nil && p.Command.Reaches(p.Words) {
		return errClusterReach
	}
	if keys > 0 {
		return nil
	}
	return notInCluster[p.Command.FullName()]
}

// fixedInCluster has the settings that CONFIG SET cannot change in a cluster, and why.
var fixedInCluster = map[string]error{
	"appendfsync":        engine.Error("in a cluster, it is set at the start of a node"),
	"maxmemory":          engine.Error("in a cluster, no keys are evicted and memory has no limit"),
	"proto-max-bulk-len": engine.Error("in a cluster, it is fixed: a call has to fit into an entry of the nodes' log"),
	"save":               engine.Error("in a cluster, snapshots are made as the log of a group grows"),
}

// refusedSetting returns why settings cannot be changed in a cluster; nil: they can.
func refusedSetting(changes []config.Change) error {
	for i := range changes {
		if why := fixedInCluster[changes[i].Name]; why != nil {
			return changes[i].Refuse(why)
		}
	}
	return nil
}
