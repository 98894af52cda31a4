package cluster

import (
	"cmp"
	"maps"
	"slices"
)

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
