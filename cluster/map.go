package cluster

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"rlserver/cluster/mux"
	"rlserver/cluster/overview"
)

// Member is a node of the cluster.
type Member struct {
	Name    string // of the operator's choice, --node-id: unique in the cluster
	ID      string // 40 hex digits, as clients of Redis Cluster know nodes
	Address string // host:port between nodes
	Host    string // for clients; "": the host of Address
	Port    int    // for clients without TLS; 0: none
	TLSPort int    // for clients with TLS; 0: none
	Version string // of its rlserver
	// Instance is that of the node's directory: a random number, another one if that is lost.
	Instance uint64
	// Leaving reports that its replicas are moved to other nodes, and that it is no member when
	// they are.
	Leaving bool
}

// Overview returns what the map has of a node.
func (m *Member) Overview() overview.Node {
	n := overview.Node{
		Name: m.Name, ID: m.ID, Host: m.Host, Port: m.Port, TLSPort: m.TLSPort, Bus: m.Address, Version: m.Version,
		Leaving: m.Leaving, Heard: -1,
	}
	if n.Host == "" {
		n.Host, _, _ = net.SplitHostPort(m.Address)
	}
	return n
}

// moveTo notes where a node is now, as it says.
func (m *Member) moveTo(now Member) {
	m.Address, m.Host, m.Port, m.TLSPort, m.Version = now.Address, now.Host, now.Port, now.TLSPort, now.Version
}

// Map says which nodes a cluster has, and which of them are to have a replica of each group. The
// groups come to match it one change of their members at a time. It is not changed but replaced by
// one with the next version.
type Map struct {
	// Format is the version of this description: a server that does not know it must neither use
	// the map nor replace it, as it would drop what is new there.
	Format          int    `json:",omitempty"`
	ID              string // 32 hex digits
	Version         uint64 // 1: as the cluster was made
	Founder         string // name of the node that has made the cluster
	Founded         bool   // all nodes that it began with have this map
	Members         []Member
	Replicas        [][]string        // names of nodes, by group; the first should lead
	Users           []string          // see Users; nil: the cluster has none yet
	Policies        map[string]string // definitions, by name
	PoliciesVersion uint64            // the Version that has changed them last
	// the Version since which each policy exists with its algorithm; without an entry: always
	PoliciesSince map[string]uint64 `json:",omitempty"`
}

// mapFormat is the latest Format that this server knows.
const mapFormat = 0

// newMap returns the map of a new cluster. The members are sorted by name.
func newMap(id mux.ClusterID, founder string, members []Member, groups int) *Map {
	members = slices.SortedFunc(slices.Values(members), byName)
	m := &Map{
		ID: hex.EncodeToString(id[:]), Version: 1, Founder: founder, Members: members,
		Replicas: make([][]string, groups), PoliciesVersion: 1,
	}
	for g := range m.Replicas {
		for i := range min(replication, len(members)) {
			m.Replicas[g] = append(m.Replicas[g], members[(g+i)%len(members)].Name)
		}
	}
	return m
}

func byName(a, b Member) int { return strings.Compare(a.Name, b.Name) }

// Groups returns how many groups the slots are divided into.
func (m *Map) Groups() int { return len(m.Replicas) }

// Member returns a node by its name, nil if the cluster does not have it.
func (m *Map) Member(name string) *Member {
	if i := slices.IndexFunc(m.Members, func(n Member) bool { return n.Name == name }); i >= 0 {
		return &m.Members[i]
	}
	return nil
}

// has reports whether a node is a member with its present directory.
func (m *Map) has(n *Member) bool {
	known := m.Member(n.Name)
	return known != nil && known.Instance == n.Instance
}

func (m *Map) staying() (list []Member) {
	for _, n := range m.Members {
		if !n.Leaving {
			list = append(list, n)
		}
	}
	return list
}

// next returns a copy with the next version, to be changed.
func (m *Map) next() *Map {
	c := *m
	c.Version++
	c.Members = slices.Clone(m.Members)
	c.Replicas = slices.Clone(m.Replicas)
	return &c
}

func (m *Map) clusterID() (id mux.ClusterID) {
	hex.Decode(id[:], []byte(m.ID))
	return id
}

// encode returns the map as group 0 holds it.
func (m *Map) encode() []byte {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // it has nothing that cannot be encoded
	}
	return b
}

// decodeMap is the inverse of encode.
func decodeMap(b []byte) (*Map, error) {
	var m Map
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	return &m, m.check()
}

// check returns what is wrong with a map that was read.
func (m *Map) check() error {
	raw, err := hex.DecodeString(m.ID)
	switch {
	case m.Format > mapFormat:
		return fmt.Errorf("the map of the cluster has format %d, and this server knows %d: it has to be upgraded",
			m.Format, mapFormat)
	case err != nil || len(raw) != len(mux.ClusterID{}):
		return fmt.Errorf("the id %q is not 32 hex digits", m.ID)
	case len(m.Replicas) == 0 || len(m.Replicas) > MaxGroups:
		return fmt.Errorf("%d groups", len(m.Replicas))
	case len(m.Members) == 0:
		return errors.New("no members")
	}
	for i := range m.Members {
		if m.Member(m.Members[i].Name) != &m.Members[i] {
			return fmt.Errorf("two members have the name %s", m.Members[i].Name)
		}
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

// replication is how many nodes have a replica of each group, if there are so many.
const replication = 3

// place distributes the replicas among the members that stay, and who should lead: evenly, and with
// as few moves as possible.
func (m *Map) place() {
	p := placement{replicas: make(map[string]int), leads: make(map[string]int)}
	for _, n := range m.staying() {
		p.replicas[n.Name], p.leads[n.Name] = 0, 0
	}
	for g, names := range m.Replicas {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			_, stays := p.replicas[name]
			return !stays
		})
		for _, name := range names {
			p.replicas[name]++
		}
		p.groups = append(p.groups, names)
		m.Replicas[g] = nil
	}
	p.fill()
	for p.moveOne() {
	}
	for _, names := range p.groups {
		p.leads[names[0]]++
	}
	for p.passOne() {
	}
	m.Replicas = p.groups
}

type placement struct {
	groups   [][]string
	replicas map[string]int // how many each node has
	leads    map[string]int
}

// sorted returns the nodes with the least count first.
func sorted(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b))
	})
}

// fill gives each group as many replicas as it should have.
func (p *placement) fill() {
	want := min(replication, len(p.replicas))
	for g := range p.groups {
		for _, name := range sorted(p.replicas) {
			if len(p.groups[g]) >= want {
				break
			}
			if !slices.Contains(p.groups[g], name) {
				p.groups[g] = append(p.groups[g], name)
				p.replicas[name]++
			}
		}
	}
}

// moveOne moves a replica from the node that has most to the one that has least. It reports whether
// that was needed.
func (p *placement) moveOne() bool {
	nodes := sorted(p.replicas)
	least, most := nodes[0], nodes[len(nodes)-1]
	if p.replicas[most]-p.replicas[least] < 2 {
		return false
	}
	for g := range p.groups {
		at := slices.Index(p.groups[g], most)
		if at >= 0 && !slices.Contains(p.groups[g], least) {
			p.groups[g][at] = least
			p.replicas[most]--
			p.replicas[least]++
			return true
		}
	}
	return false
}

// passOne has a node that should lead fewer groups take one over from a node that should lead more.
// Others in between may pass one on. It reports whether that was needed.
func (p *placement) passOne() bool {
	nodes := sorted(p.leads)
	least, most := nodes[0], nodes[len(nodes)-1]
	if p.leads[most]-p.leads[least] < 2 || !p.pass(most, least, map[string]bool{most: true}) {
		return false
	}
	p.leads[most]--
	p.leads[least]++
	return true
}

// pass has a group that one node leads led by another, or by one that passes another group on.
func (p *placement) pass(from, to string, seen map[string]bool) bool {
	for _, direct := range []bool{true, false} {
		for _, names := range p.groups {
			if names[0] != from {
				continue
			}
			for i, name := range names {
				if name == to || !direct && !seen[name] {
					seen[name] = true
					if name == to || p.pass(name, to, seen) {
						names[0], names[i] = names[i], names[0]
						return true
					}
				}
			}
		}
	}
	return false
}
