package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rlserver/cluster/group"
	"rlserver/cluster/mux"
	"rlserver/internal/smallfile"
)

// When a majority of the nodes is lost for ever, one of the others can go on alone, with what it
// has: Options.ForceRecover. It makes a cluster with another id, so that nodes of the old one that
// come back after all are refused. What it had not heard before the others were lost is lost.
//
// The option is used once: it has no effect until the node has been started without it. If the node
// ends in between, it goes on with the recovery at the next start.

// probes is for how many timeouts a node looks for the others before it goes on without them.
const probes = 5

// forceRecover makes this node the only one of a cluster, if no majority is there.
func (n *Node) forceRecover(state *saved) error {
	switch {
	case n.saved.Recovering:
	case !n.options.ForceRecover:
		n.saved.Recovered = false
		return nil
	case state == nil || state.Map == nil || !state.Begun:
		return errors.New("--force-recover: the directory " + n.options.Dir + " has no data of a cluster, so there " +
			"is nothing to recover here: use it on a node that has")
	case n.saved.Recovered:
		n.log.Warn("--force-recover has no effect: it was used already. Start the node without it from now on; " +
			"to use it again, start it once without it and then with it")
		return nil
	case len(n.m.Members) == 1 && n.m.has(&n.self):
		n.log.Warn("--force-recover has no effect: this node is the only one of its cluster")
		return nil
	default:
		if there := n.probe(); 2*len(there) > len(n.m.Members) {
			n.log.Warn("--force-recover has no effect: a majority of the nodes is there. Stop the others first if " +
				"they are to be given up: " + strings.Join(there, ", "))
			return nil
		}
	}
	return n.goOnAlone()
}

// probe returns the members that answer, with this node.
func (n *Node) probe() (there []string) {
	deadline := time.Now().Add(probes * n.options.Timeout)
	n.log.Warn("--force-recover: looking for the other nodes first")
	for time.Now().Before(deadline) && 2*len(there) <= len(n.m.Members) {
		there = []string{n.self.Name}
		for _, m := range n.m.Members {
			if m.Name == n.self.Name {
				continue
			}
			var theirs Greeting
			err := n.callNode(m.Name, "Greet", n.greeting(), &theirs, n.options.Timeout/4)
			if err == nil && theirs.Member.Name == m.Name {
				there = append(there, m.Name)
			}
		}
		time.Sleep(seekInterval)
	}
	return there
}

// goOnAlone makes this node the only member of all groups.
func (n *Node) goOnAlone() error {
	if !n.saved.Recovering {
		lost := n.m
		n.mu.Lock()
		n.m = lost.alone(n.self)
		n.mu.Unlock()
		n.saved.Recovering = true
		if err := n.store(false); err != nil {
			return err
		}
		n.log.Error("FORCED RECOVERY: this node goes on alone. What the other nodes had committed without it is lost, "+
			"and permits that they have granted may be granted again. They must not come back: remove their "+
			"directories, and they can join as new nodes", "was", lost.ID, "now", n.m.ID, "nodes", len(lost.Members))
	}
	n.port.SetCluster(n.m.clusterID())
	step := n.options.recovery
	if step == nil {
		step = func() error { return nil }
	}
	err := step()
	for number := 0; number < n.m.Groups() && err == nil; number++ {
		if err = n.recoverGroup(number); err == nil {
			err = step()
		}
	}
	if err != nil {
		return fmt.Errorf("--force-recover: %w", err)
	}
	// a restored backup has used up nothing
	n.saved.Recovering, n.saved.Recovered = false, n.options.ForceRecover
	return n.store(false)
}

// alone returns the map of a new cluster that has one node of this one.
func (m *Map) alone(self Member) *Map {
	var id mux.ClusterID
	rand.Read(id[:])
	next := m.next()
	next.ID, next.Founder, next.Founded = hex.EncodeToString(id[:]), self.Name, true
	if known := m.Member(self.Name); known != nil && self.Address == "" {
		self.Address = known.Address
	}
	next.Members = []Member{self}
	for g := range next.Replicas {
		next.Replicas[g] = []string{self.Name}
	}
	return next
}

// recoverGroup makes the replica on this node the only member of a group. Without one, the group
// begins anew.
func (n *Node) recoverGroup(number int) error {
	path := filepath.Join(n.options.Dir, folder(groupPrefix, number))
	truncated := filepath.Join(n.options.Dir, folder(truncatedPrefix, number))
	if _, err := os.Stat(truncated); err == nil {
		err = errors.Join(os.RemoveAll(path), os.Rename(truncated, path), smallfile.SyncDirectory(n.options.Dir))
		if err != nil {
			return err
		}
		n.truncated = slices.DeleteFunc(n.truncated, func(c int) bool { return c == number })
		n.log.Error("FORCED RECOVERY: the end of a group's log may be missing, as the machine was restarted without "+
			"--appendfsync always", "group", number)
	}
	instance, err := instanceOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		n.log.Error("FORCED RECOVERY: this node has no replica of a group: ALL ITS KEYS ARE LOST, and their limits "+
			"begin anew", "group", number)
		instance = n.self.Instance
		err = createReplica(n.options.Dir, number, instance)
	}
	if err != nil {
		return err
	}
	o := n.groupOptions(number, instance)
	found, err := group.Recover(o)
	if errors.Is(err, group.ErrEmpty) {
		return group.Bootstrap(o, []group.ReplicaID{{Node: n.self.Name, Instance: instance}})
	}
	if err == nil {
		n.log.Warn("FORCED RECOVERY: a group goes on with what this node has", "group", number, "entry", found.Entries)
	}
	return err
}

// Backup copies the latest snapshots of a node's groups to a new directory, and reports to out what
// it has copied. The node may be running. A node that is started on the copy makes a new cluster of
// its own, with another id, so it cannot take part in that of before.
func Backup(dir, to string, out io.Writer) error {
	state, err := loadState(dir)
	if err != nil {
		return err
	}
	if state == nil || state.Map == nil || !state.Map.Founded {
		return fmt.Errorf("%s is not the directory of a node of a cluster: copy the directory of a server alone", dir)
	}
	self := state.Map.Member(state.Node)
	if self == nil {
		return fmt.Errorf("node %s is no member of its cluster any more", state.Node)
	}
	if err := os.Mkdir(to, 0o750); err != nil {
		return fmt.Errorf("the backup needs a directory of its own: %w", err)
	}
	for number := range state.Map.Replicas {
		if err := backUpGroup(dir, to, number, out); err != nil {
			return fmt.Errorf("group %d: %w", number, err)
		}
	}
	state.Map, state.Begun, state.Recovering, state.Recovered = state.Map.alone(*self), true, true, false
	state.Clean, state.Synced = true, true
	if err := state.save(to); err != nil {
		return err
	}
	fmt.Fprintf(out, "start it with --node-id %s, and --join with its own host and no other\n", state.Node)
	return nil
}

func backUpGroup(dir, to string, number int, out io.Writer) error {
	from, target := filepath.Join(dir, folder(groupPrefix, number)), filepath.Join(to, folder(groupPrefix, number))
	instance, err := instanceOf(from)
	if errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(out, "group %d: this node has no replica of it: copy the folder %s of another node's backup to "+
			"%s\n", number, filepath.Base(target), to)
		return nil
	}
	if err == nil {
		err = createReplica(to, number, instance)
	}
	if err != nil {
		return err
	}
	taken, err := group.CopySnapshot(from, target)
	if errors.Is(err, group.ErrNoSnapshot) {
		return fmt.Errorf("%w: send SAVE to the node first", err)
	}
	if err == nil {
		fmt.Fprintf(out, "group %d: as of %s\n", number, taken.UTC().Format(time.DateTime))
	}
	return err
}
