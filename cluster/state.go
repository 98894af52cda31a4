package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
