package cluster

import (
	"fmt"
	"slices"
	"strings"

	"rlserver/cluster/group"
)

// The cluster is ready for the loss of any one node, as at an upgrade, if each group keeps a
// majority then. What counts is what the leader of a group says about its members: who votes, and
// who stores what it proposes. The node that is asked needs its own replicas as well.

// leaderOf returns what the leader of a group says; false if none has reported a short time ago.
func (n *Node) leaderOf(number int) (by leader, ok bool) {
	if g := n.Group(number); g != nil {
		if st := g.Status(); st.Leads {
			return leader{n.self.Name, st.Term, st.Members, g.KeepUp(), n.Map().Version}, true
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.leaders[number]
	return l, l.name != "" && n.upLocked(l.name)
}

// atRisk returns why a group, of which some nodes should have a replica, might not survive the loss
// of any one node, or the replica that this node should have is not in order; "": neither.
func (n *Node) atRisk(number int, want []string) string {
	by, known := n.leaderOf(number)
	if !known {
		return "no leader that this node hears says who its members are"
	}
	var voters, stay []group.ReplicaID
	var missing []string
	for _, s := range by.members {
		switch {
		case !s.Voter:
			continue
		case n.stays(s.ID, by):
			stay = append(stay, s.ID)
		default:
			missing = append(missing, s.ID.Node)
		}
		voters = append(voters, s.ID)
	}
	if slices.Contains(want, n.self.Name) {
		switch g := n.Group(number); {
		case g == nil:
			return "the replica that this node should have is not made yet"
		case !slices.Contains(voters, g.ID()):
			return "the replica of this node does not vote yet"
		case !slices.Contains(stay, g.ID()) || !g.Level():
			return "the replica of this node has not caught up yet"
		}
	}
	nodes := len(n.Map().staying())
	switch least := len(voters)/2 + 1; {
	case len(voters) < min(replication, nodes):
		return fmt.Sprintf("it has %d replicas that vote, and should have %d", len(voters), min(replication, nodes))
	case nodes >= replication && len(stay)-1 < least, nodes < replication && len(missing) > 0:
		return "one more loss would stop it, as replicas are down, lag or leave: " + strings.Join(missing, ", ")
	}
	return ""
}

// stays reports whether a replica of a group is there, stores what its leader proposes and is not
// about to stop.
func (n *Node) stays(id group.ReplicaID, by leader) bool {
	if !slices.Contains(by.keepUp, id) {
		return false
	}
	if id.Node == n.self.Name {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.upLocked(id.Node) && !n.others[id.Node].report.Leaving
}
