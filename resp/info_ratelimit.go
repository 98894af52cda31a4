package resp

import (
	"fmt"
	"maps"
	"rlserver/resp/command"
	"slices"
	"strings"
)

// tellRatelimit tells what was decided: all in all, and by each command that has decided anything since the start, or since CONFIG RESETSTAT;
// and by each policy.
// A call that costs nothing decides nothing.
func (s *Server) tellRatelimit(r *report) {
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
	s.tellPolicies(r)
}

// PoliciesChanged has the calls that wait tried again, by the policies of now. Whoever changes policies calls it, but for the commands.
func (s *Server) PoliciesChanged() { s.room.Stir() }

// tellPolicies tells, for each policy, whether it is in SHADOW and how many calls it has admitted and denied.
func (s *Server) tellPolicies(r *report) {
	for _, p := range s.Engine.Policies() {
		admitted, denied := p.Counts()
		r.field("policy_"+p.Name(), fmt.Sprintf("shadow=%d,admitted=%d,denied=%d", digit(p.Shadow()), admitted, denied))
	}
}
