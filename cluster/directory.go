package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rlserver/cluster/group"
	"rlserver/cluster/mux"
	"rlserver/internal/smallfile"
)

// mapFile is the file in a node's directory that says which node it is, and has the latest map that
// it knows.
const mapFile = "cluster.json"

// stateFormat is the version of the files of a node.
const stateFormat = 2

// saved is the content of that file.
type saved struct {
	Format   int
	Node     string
	Instance uint64 // of this directory, see Member
	Boot     string // of the machine when the node was last started
	// Clean reports that the node has ended in order. Without it, and with another Boot, a log that
	// is not synced may be truncated.
	Clean bool
	// Synced reports that all entries of the logs were synced before they counted as stored, in
	// this run and those before it.
	Synced bool
	// Begun reports that the replicas that a new cluster begins with are written. They never are
	// again: a replica that is missing from then on is lost.
	Begun bool
	// Dismissed is why the node is no member any more; "": it is one.
	Dismissed string
	// Recovering reports that a forced recovery was begun, Recovered that one has ended since the
	// node was last started without the option.
	Recovering, Recovered bool
	// Starts is how often the node was started, and History the identities of the latest of its
	// starts, the last one at the end.
	Starts  uint64
	History []uint64
	Map     *Map
}

// loadState reads the file, nil if there is none.
func loadState(dir string) (*saved, error) {
	path := filepath.Join(dir, mapFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var s saved
	var version struct{ Format int } // the rest may mean something else in another one
	if err == nil {
		err = json.Unmarshal(b, &version)
	}
	if err == nil && version.Format != stateFormat {
		err = fmt.Errorf("it has format %d, and this version knows %d: the data of another version cannot be used",
			version.Format, stateFormat)
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err == nil && s.Map != nil {
		err = s.Map.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", path, err)
	}
	return &s, nil
}

// save replaces the file.
func (s *saved) save(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(dir, mapFile, append(b, '\n'))
}

// replaceFile replaces a file in a directory, or makes it. When it returns, that is durable.
func replaceFile(dir, name string, b []byte) error {
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) // it has users
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		return err
	}
	return smallfile.SyncDirectory(dir)
}

// bootID names the present run of the machine; "" if the system does not say.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// The replicas of a node are in folders, each with a file that says which instance it is. Folders
// appear and disappear by being renamed, so that a replica is whole or not there. One that is not
// there is made anew, under another instance: the group takes it for a new member.
//
//	group-0003      a replica
//	truncated-0003  one whose log may be truncated: kept for --force-recover until the group has a
//	                leader
//	new-0003        one that is being made
//	gone-…          one that is being removed
const (
	groupPrefix     = "group-"
	truncatedPrefix = "truncated-"
	newPrefix       = "new-"
	gonePrefix      = "gone-"
	instanceFile    = "replica"
)

func folder(prefix string, number int) string { return fmt.Sprintf("%s%04d", prefix, number) }

// folders returns the numbers of the groups that have a folder with a prefix.
func folders(dir, prefix string) (numbers []int, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), prefix); ok {
			if number, err := strconv.Atoi(rest); err == nil {
				numbers = append(numbers, number)
			}
		}
	}
	return numbers, err
}

// removeLeftovers removes what the last run has not finished making or removing.
func removeLeftovers(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newPrefix) || strings.HasPrefix(e.Name(), gonePrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// removeReplica removes the folder of a replica that is not open.
func removeReplica(dir, name string) error {
	gone := filepath.Join(dir, fmt.Sprintf("%s%s-%016x", gonePrefix, name, rand.Uint64()))
	if err := os.Rename(filepath.Join(dir, name), gone); err != nil {
		return err
	}
	return errors.Join(smallfile.SyncDirectory(dir), os.RemoveAll(gone))
}

// instanceOf returns which replica is in a folder.
func instanceOf(path string) (uint64, error) {
	b, err := os.ReadFile(filepath.Join(path, instanceFile))
	if err != nil {
		return 0, err
	}
	instance, err := strconv.ParseUint(strings.TrimSpace(string(b)), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not the folder of a replica: %w", path, err)
	}
	return instance, nil
}

// createReplica makes the folder of a replica without state.
func createReplica(dir string, number int, instance uint64) error {
	making := filepath.Join(dir, folder(newPrefix, number))
	err := os.RemoveAll(making)
	if err == nil {
		err = os.MkdirAll(making, 0o750)
	}
	if err == nil {
		err = replaceFile(making, instanceFile, fmt.Appendf(nil, "%016x\n", instance))
	}
	if err == nil {
		err = os.Rename(making, filepath.Join(dir, folder(groupPrefix, number)))
	}
	if err != nil {
		return err
	}
	return smallfile.SyncDirectory(dir)
}

// setAside renames all replicas whose log may be truncated.
func setAside(dir string) error {
	numbers, err := folders(dir, groupPrefix)
	for _, number := range numbers {
		truncated := filepath.Join(dir, folder(truncatedPrefix, number))
		own := filepath.Join(dir, folder(groupPrefix, number))
		err = errors.Join(err, os.RemoveAll(truncated), os.Rename(own, truncated))
	}
	return errors.Join(err, smallfile.SyncDirectory(dir))
}

func (n *Node) groupOptions(number int, instance uint64) group.Options {
	return group.Options{
		Number: number, Node: n.self.Name, Instance: instance,
		Dir:  filepath.Join(n.options.Dir, folder(groupPrefix, number)),
		Sync: n.syncs.Load(), Timeout: n.options.Timeout, Patience: n.options.Patience,
		Engine: n.options.Engine, Clock: n.options.Clock, Log: n.log, Begun: n.options.Begun,
		ObserveSync: n.observeSync, ObserveSnapshot: n.options.ObserveSnapshot,
		LongCall: n.options.LongCall, Disk: n.options.disk,
		AskTime: func(log int64, still func() bool) (int64, bool) {
			return n.askTime(n.askAll, number, log, still), true
		},
		Clocks: n.middleClock, Speaks: n.trusts, Policies: policyNotes{n, number},
		Layer: func() group.Layer { return n.port.Instance(mux.Channel(number), instance) },
	}
}

// begin writes the replicas that a new cluster begins with.
func (n *Node) begin(m *Map) error {
	for number, names := range m.Replicas {
		if !slices.Contains(names, n.self.Name) {
			continue
		}
		var members []group.ReplicaID
		for _, name := range names {
			members = append(members, group.ReplicaID{Node: name, Instance: m.Member(name).Instance})
		}
		o := n.groupOptions(number, n.self.Instance)
		if _, err := instanceOf(o.Dir); errors.Is(err, fs.ErrNotExist) {
			err = createReplica(n.options.Dir, number, n.self.Instance)
			if err != nil {
				return err
			}
		}
		if err := group.Bootstrap(o, members); err != nil {
			return err
		}
	}
	n.saved.Begun = true
	return nil
}

// openReplica opens a replica that is there, or makes a new one.
func (n *Node) openReplica(number int) (*group.Group, error) {
	path := filepath.Join(n.options.Dir, folder(groupPrefix, number))
	instance, err := instanceOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(path); err == nil {
			return nil, fmt.Errorf("%s is not the folder of a replica: it has no file %s", path, instanceFile)
		}
		instance = rand.Uint64()
		n.log.Info("a new replica of a group is made here", "group", number)
		err = createReplica(n.options.Dir, number, instance)
		if err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	return group.Open(n.groupOptions(number, instance))
}

// openGroups opens the replicas that this node has, and those that the map wants.
func (n *Node) openGroups() error {
	groups := make([]*group.Group, n.m.Groups())
	have, err := folders(n.options.Dir, groupPrefix)
	if err != nil {
		return err
	}
	for number, names := range n.m.Replicas {
		if !slices.Contains(names, n.self.Name) && !slices.Contains(have, number) {
			continue
		}
		if groups[number], err = n.openReplica(number); err != nil {
			closeGroups(groups)
			return err
		}
	}
	n.takePolicies(n.m)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opened.Store(&opened{n.m, groups})
	n.leaders = make([]leader, len(groups))
	n.movers, n.elected = make([]mover, len(groups)), make([]bool, len(groups))
	close(n.ready)
	return nil
}

// setGroup replaces a replica. n.adopting is held.
func (n *Node) setGroup(number int, g *group.Group) {
	o := n.opened.Load()
	groups := slices.Clone(o.groups)
	groups[number] = g
	n.opened.Store(&opened{o.m, groups})
	n.wake()
}

// reconcile opens the replicas that the map wants, and removes those that it does not want any more
// and that are members of their group no more.
func (n *Node) reconcile() {
	m := n.Map()
	for number, names := range m.Replicas {
		wanted, g := m.has(&n.self) && slices.Contains(names, n.self.Name), n.Group(number)
		switch {
		case wanted && g == nil:
			n.adopting.Lock()
			if n.closed {
				n.adopting.Unlock()
				return
			}
			opened, err := n.openReplica(number)
			if err == nil {
				n.setGroup(number, opened)
			}
			n.adopting.Unlock()
			if err != nil {
				n.warnOften("a replica cannot be made, which is tried again: "+err.Error(), "group", number)
			}
		case !wanted && g != nil:
			n.retire(number, g)
		}
	}
	n.removeTruncated()
}

// retire removes a replica if its group has committed its removal. That is asked again when
// it is closed: then it cannot become a member once more.
func (n *Node) retire(number int, g *group.Group) {
	if !n.removed(number, g) {
		return
	}
	n.adopting.Lock()
	defer n.adopting.Unlock()
	if n.closed {
		return
	}
	n.setGroup(number, nil)
	if err := g.Close(); err != nil {
		n.log.Warn("a replica was not closed in order", "group", number, "error", err)
	}
	if n.removed(number, g) {
		err := removeReplica(n.options.Dir, folder(groupPrefix, number))
		if err == nil {
			n.log.Info("removed the replica of a group that has moved away", "group", number)
			return
		}
		n.log.Error("the replica of a group that has moved away cannot be removed", "group", number, "error", err)
	}
	again, err := n.openReplica(number)
	if err != nil {
		n.log.Error("a replica cannot be opened again", "group", number, "error", err)
		return
	}
	n.setGroup(number, again)
}

// removed asks the leader of a group whether a replica on this node is no member any more.
func (n *Node) removed(number int, g *group.Group) bool {
	n.mu.Lock()
	name := n.leaders[number].name
	n.mu.Unlock()
	if name == "" || name == n.self.Name {
		return false
	}
	var answer Removed
	err := n.callNode(name, "Removed", RemovedArgs{number, g.ID()}, &answer, n.options.Timeout)
	return err == nil && answer.Known && answer.Removed && answer.Term >= g.Status().Term
}

// removeTruncated removes replicas that may be truncated, of groups that go on without them.
func (n *Node) removeTruncated() {
	for _, number := range n.truncated {
		n.mu.Lock()
		l := n.leaders[number]
		leads := l.name != "" && n.upLocked(l.name)
		n.mu.Unlock()
		if !leads {
			continue
		}
		err := removeReplica(n.options.Dir, folder(truncatedPrefix, number))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			n.log.Warn("a replica that may be truncated cannot be removed", "group", number, "error", err)
			continue
		}
		n.truncated = slices.DeleteFunc(slices.Clone(n.truncated), func(c int) bool { return c == number })
		return // one at a time: the list has changed
	}
}
