package resp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rlserver/resp/command"
)

// writeRatelimit writes how many calls were admitted and denied since the start or CONFIG
// RESETSTAT: in total, by command, and by policy. Calls that cost nothing and commands without a
// decision are left out.
func (s *Server) writeRatelimit(r *report) {
	var admitted, denied int64
	lines := make(map[string]string)
	for _, c := range command.Commands {
		t := s.Tallies[c.Index].Load()
		if t == nil {
			continue
		}
		a, d := t.Sum()
		admitted, denied = admitted+a, denied+d
		lines[strings.ReplaceAll(c.Name, ".", "_")] = fmt.Sprintf("admitted=%d,denied=%d", a, d)
	}
	r.field("decisions_admitted", admitted)
	r.field("decisions_denied", denied)
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		r.field(name, lines[name])
	}
	s.writePolicies(r)
}

// PoliciesChanged tries the waiting calls again with the current policies. Code that changes
// policies without a command calls it. No lock of the engine is held.
func (s *Server) PoliciesChanged() { s.queues.RetryAll() }

// writePolicies writes, for each policy, whether it is in SHADOW mode, and how many calls it has
// admitted and denied.
func (s *Server) writePolicies(r *report) {
	for _, p := range s.Engine.Policies() {
		admitted, denied := p.Counts()
		r.field("policy_"+p.Name(),
			fmt.Sprintf("shadow=%d,admitted=%d,denied=%d", boolDigit(p.Shadow()), admitted, denied))
	}
}
