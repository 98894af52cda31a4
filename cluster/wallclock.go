package cluster

import "time"

const (
	clockInterval = time.Second
	// clockTolerance is by how much the system clock and the time of a group may differ without a
	// warning. Half of that ends the trouble.
	clockTolerance = 10 * time.Second
)

// compareClocks logs when the system clock of this node begins to differ from the time of the first
// group that it knows, and when that has ended. Limits follow the time of their group.
func (n *Node) compareClocks() {
	for _, g := range n.Replicas() {
		ms, known := g.Estimate()
		if !known {
			continue
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
		return
	}
}
