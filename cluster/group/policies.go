package group

import (
	"fmt"
	"hash/fnv"
)

// PoliciesVersion names the state of the policies of this replica: it is the same on all that have
// the same policies. It is "0" if there are none, and a hash of their names and definitions
// otherwise.
func (g *Group) PoliciesVersion() string {
	list := g.running.Load().fsm.replica.Load().Engine.Policies()
	if len(list) == 0 {
		return "0"
	}
	h := fnv.New32a()
	for _, p := range list {
		fmt.Fprintf(h, "%q %q\n", p.Name(), p.Definition())
	}
	return fmt.Sprintf("%08x", h.Sum32())
}
