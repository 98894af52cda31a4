package clustering

import (
	"sync"

	"rlserver/engine"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
	"rlserver/resp/config"
)

const (
	// ErrWholeKeyspace is the error of a command that needs all keys of the cluster.
	ErrWholeKeyspace = engine.Error("ERR this command is not available in a cluster: no node has all keys")

	errUsersInMulti = engine.Error("ERR in a cluster, users are changed on all nodes: that cannot be part of a " +
		"transaction")
	errReload = engine.Error("ERR in a cluster, a node does not reload its keys: it has them from its groups. " +
		"It reads them from its disk when it is restarted")

	// as in Redis
	errSelect = engine.Error("ERR SELECT is not allowed in cluster mode")
	errSwap   = engine.Error("ERR SWAPDB is not allowed in cluster mode")
	errMove   = engine.Error("ERR MOVE is not allowed in cluster mode")
	errMaster = engine.Error("ERR REPLICAOF not allowed in cluster mode.")
	errBy     = engine.Error("ERR BY option of SORT denied in Cluster mode.")
	errGet    = engine.Error("ERR GET option of SORT denied in Cluster mode.")
)

// refused has the errors of commands that are not available in a cluster.
var refused = map[string]error{
	"debug|reload": errReload, "debug|loadaof": errReload,
	"swapdb": errSwap, "move": errMove, "replicaof": errMaster, "slaveof": errMaster,
}

// refusals has the values of refused by Command.Index.
var refusals = sync.OnceValue(func() []error {
	list := make([]error, command.Count)
	for _, c := range command.Table {
		for _, each := range append([]*command.Command{c}, c.Subs...) {
			list[each.Index] = refused[each.FullName()]
		}
	}
	return list
})

// Refused returns the error of a call that is not available in a cluster, or nil.
func Refused(p *command.Prepared) error {
	c := p.Command
	if c.Reaches != nil && c.Reaches(p.Words) {
		return reaching(p.Words)
	}
	if c.Name == "select" {
		if n, ok := grammar.ParseInt(p.Words[1]); ok && n != 0 {
			return errSelect
		}
	}
	return refusals()[c.Index]
}

// reaching returns the error of a SORT that reads keys which its arguments do not name: they may be
// on other nodes.
func reaching(words [][]byte) error {
	for _, word := range words[2:] {
		if grammar.EqualFold(word, "BY") {
			return errBy
		}
	}
	return errGet
}

// RefusedInMulti returns the error of a command that cannot be part of a transaction in a cluster.
func RefusedInMulti(p *command.Prepared) error {
	switch p.Command.FullName() {
	case "acl|setuser", "acl|deluser":
		return errUsersInMulti
	}
	return nil
}

const errPorts = engine.Error("in a cluster, the other nodes tell clients where this one listens: restart it with " +
	"the new addresses and ports")

// fixed has the errors of settings that CONFIG SET cannot change in a cluster.
var fixed = map[string]error{
	"requirepass": engine.Error("in a cluster, ACL SETUSER default changes the password on all nodes"),
	"bind":        errPorts, "port": errPorts, "tls-port": errPorts,
	"save": engine.Error("in a cluster, changes are in the logs of the groups, and snapshots are made as these " +
		"grow: there is nothing to set. BGSAVE makes snapshots now"),
}

// RefusedSetting returns the error of changes that are not possible in a cluster, or nil.
func RefusedSetting(changes []config.Change) error {
	for i := range changes {
		if why := fixed[changes[i].Name]; why != nil {
			return changes[i].Refuse(why)
		}
	}
	return nil
}
