package cluster

import (
	"time"

	"rlserver/cluster/group"
)

const (
	clockInterval = time.Second
	// clockTolerance is by how much the system clock and the time of a group may differ without a
	// warning. Half of that ends the trouble.
	clockTolerance = 10 * time.Second
)

// compareClocks logs when the system clock of this node begins to differ from the time of the
// cluster, and when that has ended. Limits follow the time of their group.
func (n *Node) compareClocks() {
	ms, known := n.clusterTime()
	if !known {
		return
	}
	wall, _ := n.options.Clock.Read()
	ahead := time.Duration(wall/1000-ms) * time.Millisecond
	switch {
	case !n.clockDiffers && ahead.Abs() > clockTolerance:
		n.clockDiffers = true
		n.log.Warn("the system clock of this node differs from the time of the cluster, which all limits follow: "+
			"check that NTP works on all nodes", "ahead", ahead.Round(time.Second))
	case n.clockDiffers && ahead.Abs() < clockTolerance/2:
		n.clockDiffers = false
		n.log.Info("the system clock of this node no longer differs from the time of the cluster")
	}
}

// clusterTime returns the time of the first group of which the replica here is up to date, Unix ms.
func (n *Node) clusterTime() (ms int64, known bool) {
	for number, g := range n.groups() {
		if g == nil || !n.upToDate(number, g) {
			continue
		}
		if ms, known = g.Estimate(); known {
			break
		}
	}
	return ms, known
}

// upToDate reports whether a replica has all entries that its leader had a moment ago. One that has
// not, as after a start, takes the time of an old entry for the present.
func (n *Node) upToDate(number int, g *group.Group) bool {
	st := g.Status()
	if st.Leads {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	last, leads := n.reports[st.Leader].Last[number]
	return leads && n.upLocked(st.Leader) && st.Applied >= last
}
