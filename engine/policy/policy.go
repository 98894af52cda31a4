// Package policy has the policies of the engine: named limits, and tables of them.
package policy

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"rlserver/engine/rule"
	"rlserver/internal/stats"
)

// Policy is a named limit that the engine keeps, for Tx.Check. It is immutable except for its
// counters: changing a policy replaces it. Policies belong to no database, and FLUSHALL keeps them.
type Policy struct {
	of rule.Definition
	// nil until a table has the policy; a policy that replaces it takes over its counters
	decisions *stats.Decisions
}

// New makes a policy that no table has yet.
func New(d rule.Definition) *Policy { return &Policy{of: d} }

// Name returns the name by which Check finds the policy.
func (p *Policy) Name() string { return p.of.Name }

// Definition returns the algorithm and arguments in canonical form: SLIDE 5 1m SHADOW.
// rule.ParsePolicy parses it.
func (p *Policy) Definition() string { return p.of.Text }

// Rule returns the policy's rule, which is not to be changed.
func (p *Policy) Rule() *rule.Rule { return &p.of.Rule }

// Shadow reports whether the policy admits every call, and only counts those that it would have
// denied.
func (p *Policy) Shadow() bool { return p.of.Shadow }

// Networks says as what the policy counts ids that are IP addresses.
func (p *Policy) Networks() rule.Networks { return p.of.Networks }

// Decisions returns the counts of the policy's decisions since it was set or the server started, or
// since they were reset. A call that other policies denied is not counted, nor a peek, nor the
// retry of an admitted call.
func (p *Policy) Decisions() stats.DecisionCounts { return p.decisions.Snapshot() }

// Count counts a decision. stripe is any number, see stats.Decisions.
func (p *Policy) Count(stripe int, o stats.Decision) { p.decisions.Count(stripe, o) }

// ResetDecisions sets the counts to 0.
func (p *Policy) ResetDecisions() { p.decisions.Reset() }

// Table has policies by name.
type Table struct {
	byName   map[string]*Policy
	networks atomic.Int64 // how many have Networks
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{byName: make(map[string]*Policy)} }

// Get returns the policy of a name, or nil.
func (t *Table) Get(name []byte) *Policy { return t.byName[string(name)] }

// Put adds a policy, which replaces the one of the same name. It continues the counters of before;
// nil: they begin at 0.
func (t *Table) Put(p, before *Policy) {
	if p.decisions = new(stats.Decisions); before != nil {
		p.decisions = before.decisions
	}
	t.Delete(p.Name())
	t.byName[p.Name()] = p
	if p.Networks() != (rule.Networks{}) {
		t.networks.Add(1)
	}
}

// Delete removes the policy of a name, if there is one.
func (t *Table) Delete(name string) {
	if p := t.byName[name]; p != nil && p.Networks() != (rule.Networks{}) {
		t.networks.Add(-1)
	}
	delete(t.byName, name)
}

// CountsNetworks reports whether any policy has Networks. It needs no lock.
func (t *Table) CountsNetworks() bool { return t.networks.Load() > 0 }

// All returns all policies, in any order.
func (t *Table) All() []*Policy { return slices.Collect(maps.Values(t.byName)) }

// Sorted returns all policies, sorted by name.
func (t *Table) Sorted() []*Policy { return Sort(t.All()) }

// Sort sorts policies by name, in place.
func Sort(list []*Policy) []*Policy {
	slices.SortFunc(list, func(a, b *Policy) int { return strings.Compare(a.Name(), b.Name()) })
	return list
}

// Shared is a table that several engines use and none of them keeps. The keys that a policy with
// another algorithm, or window of FIXED, has left are dropped when RL.CHECK meets them: so an
// engine must not use an older version than it has used before, see Engine.RequirePolicies.
type Shared struct{ latest atomic.Pointer[version] }

type version struct {
	number uint64
	table  *Table
}

// Set replaces all policies, for calls that begin from now on. The number of the version is 1 or
// more. Counters continue.
func (s *Shared) Set(number uint64, list []*Policy) {
	before, table := s.Table(), NewTable()
	for _, p := range list {
		var former *Policy
		if before != nil {
			former = before.byName[p.Name()]
		}
		table.Put(p, former)
	}
	s.latest.Store(&version{number, table})
}

// Version returns the number of the version; 0 before the first Set, and for a nil Shared.
func (s *Shared) Version() uint64 {
	if s == nil || s.latest.Load() == nil {
		return 0
	}
	return s.latest.Load().number
}

// Table returns the policies, which are not to be changed. They may be of a later version than one
// that was read before. nil before the first Set, and for a nil Shared: engines then use their own.
func (s *Shared) Table() *Table {
	if s == nil || s.latest.Load() == nil {
		return nil
	}
	return s.latest.Load().table
}
