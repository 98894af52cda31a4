package cluster

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rlserver/cluster/mux"
)

// replication is how many nodes have a replica of each group, if there are so many.
const replication = 3

// Member is a node of the cluster.
type Member struct {
	Name    string // of the operator's choice, --node-id: unique in the cluster
	ID      string // 40 hex digits, as clients of Redis Cluster know nodes
	Address string // host:port between nodes
	Host    string // for clients; "": the host of Address
	Port    int    // for clients without TLS; 0: none
	TLSPort int    // for clients with TLS; 0: none
	Version string // of its rlserver
}

// Map says which nodes a cluster has, and which of them have a replica of each group.
type Map struct {
	ID       string // 32 hex digits
	Founder  string // name of the node that has made the cluster
	Founded  bool   // all nodes that it began with have this map
	Members  []Member
	Replicas [][]string // names of nodes, by group; the first should lead
}

// newMap returns the map of a new cluster. The members are sorted by name.
func newMap(id mux.ClusterID, founder string, members []Member, groups int) *Map {
	members = slices.SortedFunc(
		slices.Values(members),
		func(a, b Member) int { return strings.Compare(a.Name, b.Name) },
	)
	m := &Map{ID: hex.EncodeToString(id[:]), Founder: founder, Members: members, Replicas: make([][]string, groups)}
	for g := range m.Replicas {
		for i := range min(replication, len(members)) {
			m.Replicas[g] = append(m.Replicas[g], members[(g+i)%len(members)].Name)
		}
	}
	return m
}

// Groups returns how many groups the slots are divided into.
func (m *Map) Groups() int { return len(m.Replicas) }

// Member returns a node by its name, nil if the cluster does not have it.
func (m *Map) Member(name string) *Member {
	if i := slices.IndexFunc(m.Members, func(n Member) bool { return n.Name == name }); i >= 0 {
		return &m.Members[i]
	}
	return nil
}

func (m *Map) clusterID() (id mux.ClusterID) {
	hex.Decode(id[:], []byte(m.ID))
	return id
}

// check returns what is wrong with a map that was read.
func (m *Map) check() error {
	raw, err := hex.DecodeString(m.ID)
	switch {
	case err != nil || len(raw) != len(mux.ClusterID{}):
		return fmt.Errorf("the id %q is not 32 hex digits", m.ID)
	case len(m.Replicas) == 0 || len(m.Replicas) > MaxGroups:
		return fmt.Errorf("%d groups", len(m.Replicas))
	}
	for g, names := range m.Replicas {
		for _, name := range names {
			if m.Member(name) == nil {
				return fmt.Errorf("group %d has a replica on %q, which is no member", g, name)
			}
		}
	}
	return nil
}

// mapFile is the file in a node's directory that has the map, and the node's name.
const mapFile = "cluster.json"

// saved is the content of that file.
type saved struct {
	Node string
	Boot string // of the machine when the node was last started
	// Clean reports that the node has ended in order. Without it, and with another Boot, a log that
	// is not synced may be cut.
	Clean bool
	Map   *Map
}

// loadMap reads the file, nil if there is none.
func loadMap(dir string) (*saved, error) {
	path := filepath.Join(dir, mapFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var s saved
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
	path := filepath.Join(dir, mapFile)
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// bootID names the present run of the machine; "" if the system does not say.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
