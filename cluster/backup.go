package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"rlserver/cluster/group"
)

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
