package resp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rlserver/resp/command"
	"rlserver/stats"
)

// writeRatelimit writes how many calls were admitted and denied since the start or CONFIG
// RESETSTAT: in total, by command, and by policy. Calls that cost nothing and commands without a
// decision are left out. A call that is admitted although policies in SHADOW mode denied it counts
// as admitted, and in decisions_shadow_denied.
func (s *Server) writeRatelimit(r *report) {
	var all stats.DecisionCounts
	lines := make(map[string]string)
	for _, c := range command.Commands {
		counts := s.Stats.Command(c.Index)
		if counts == nil || counts.Decisions == (stats.DecisionCounts{}) {
			continue
		}
		d := counts.Decisions
		all = all.Plus(d)
		lines[strings.ReplaceAll(c.Name, ".", "_")] = fmt.Sprintf(
			"admitted=%d,denied=%d",
			d.Admitted+d.ShadowDenied,
			d.Denied,
		)
	}
	r.field("decisions_admitted", all.Admitted+all.ShadowDenied)
	r.field("decisions_denied", all.Denied)
	r.field("decisions_shadow_denied", all.ShadowDenied)
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
		d := p.Decisions()
		r.field("policy_"+p.Name(), fmt.Sprintf("shadow=%d,admitted=%d,denied=%d",
			boolDigit(p.Shadow()), d.Admitted, d.Denied+d.ShadowDenied))
	}
}
