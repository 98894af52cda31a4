// Package policy has the policies of the engine: named limits, tables of them, and their overrides.
//
// A policy is a named limit; Tx.Check decides a call against several. Policies belong to no
// database. Their table is changed under all locks, so a call that holds any lock sees the same
// policies throughout, and the log has their changes in the order in which calls saw them. A policy
// whose algorithm changes leaves keys that the new one cannot use: they are deleted at the moment
// of the change, under the same locks. In steps, a waiter whose key is deleted would be admitted by
// a limit that no longer exists.
package policy

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"rlserver/engine/ban"
	"rlserver/engine/effect"
	"rlserver/engine/rule"
	"rlserver/internal/stats"
)

// Policy is a named limit that the engine keeps, for Tx.Check. It is immutable except for its
// counters: changing a policy replaces it. Policies belong to no database, and FLUSHALL keeps them.
type Policy struct {
	of    rule.Definition
	since uint64
	given []Given
	// nil until a table has the policy; a policy that replaces it takes over its counters
	decisions  *stats.Decisions
	overridden *atomic.Bool
}

// New makes a policy that no table has yet.
func New(d rule.Definition) *Policy { return &Policy{of: d} }

// Parse is New for a policy that was accepted before, by its definition.
func Parse(name, definition []byte) (*Policy, error) {
	d, err := rule.ParseStored(name, bytes.Split(definition, []byte{' '}))
	return New(d), err
}

// NewSince is New for a policy that exists, with this algorithm, since a version of a Shared table.
// Overrides of before do not count: they were those of another policy.
func NewSince(d rule.Definition, version uint64) *Policy { return &Policy{of: d, since: version} }

// Given is an override that is set together with its policy.
type Given struct {
	ID         string
	Definition rule.Definition // of the same algorithm, without options of policies
}

// NewWith is New for a policy that is set together with overrides.
func NewWith(d rule.Definition, given []Given) *Policy { return &Policy{of: d, given: given} }

// Given returns the overrides that are set with the policy. Others stay.
func (p *Policy) Given() []Given { return p.given }

// Since returns the version since which the policy exists; 0: always.
func (p *Policy) Since() uint64 { return p.since }

// Overridden reports whether the policy may have overrides.
func (p *Policy) Overridden() bool { return p.overridden.Load() }

// Numbers reads the numbers of an override; ok is false if they are not those of this policy.
func (p *Policy) Numbers(o Override) (numbers rule.Rule, ok bool) {
	if o.Since < p.since {
		return rule.Rule{}, false
	}
	return p.Rule().Kind.Algorithm().ReadNumbers(o.Definition)
}

// Name returns the name by which Check finds the policy.
func (p *Policy) Name() string { return p.of.Name }

// Definition returns the algorithm and arguments in canonical form: SLIDE 5 1m SHADOW.
// rule.ParsePolicy parses it.
func (p *Policy) Definition() string { return p.of.Text }

// Effect returns the effect that sets the policy.
func (p *Policy) Effect() effect.Effect {
	k := effect.Key{Name: []byte(p.Name())}
	return effect.Effect{Kind: effect.Policy, Key: k, Value: []byte(p.of.Text)}
}

// MaxBytes is how many bytes clients may make the names and definitions of all policies together:
// in a cluster they are one entry of a log, and a kilobyte of memory for each does not count for
// maxmemory.
const MaxBytes = 4 << 20

// Bytes returns how long the name and the definition are together.
func (p *Policy) Bytes() int64 { return int64(len(p.Name()) + len(p.Definition())) }

// Rule returns the policy's rule, which is not to be changed.
func (p *Policy) Rule() *rule.Rule { return &p.of.Rule }

// Shadow reports whether the policy admits every call, and only counts those that it would have
// denied.
func (p *Policy) Shadow() bool { return p.of.Shadow }

// Ban returns whom the policy bans, which is not to be changed; nil: nobody.
func (p *Policy) Ban() *ban.Rule {
	if p.of.Ban.After == 0 || p.of.Shadow {
		return nil
	}
	return &p.of.Ban
}

// SplitKey returns the policy and the id of a key policy:{id}; ok is false for any other key.
func SplitKey[T string | []byte](key T) (name, id T, ok bool) {
	end := len(key) - 1
	for i := 0; i < end && key[end] == '}'; i++ {
		if key[i] == ':' && key[i+1] == '{' { // no policy's name has a brace
			return key[:i], key[i+2 : end], true
		}
	}
	return name, id, false
}

// AppendKey appends the name of the key that the policy has for an id.
func (p *Policy) AppendKey(b, id []byte) []byte {
	b = append(append(b, p.Name()...), ":{"...)
	if address, ok := rule.Address(id); ok {
		b = p.Networks().Append(b, id, address)
	} else {
		b = append(b, id...)
	}
	return append(b, '}')
}

// HasKey reports whether a key of the policy, by its name, is that of an id.
func (p *Policy) HasKey(key, id []byte) bool {
	counted := id
	if p.Networks() != (rule.Networks{}) {
		if address, ok := rule.Address(id); ok {
			counted = p.Networks().Append(nil, id, address)
		}
	}
	return bytes.Equal(key[len(p.Name())+len(":{"):len(key)-len("}")], counted)
}

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
	bytes    int64        // of the names and definitions
	marks    *marks
	partial  bool // there are others, which are not known here
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{byName: make(map[string]*Policy), marks: new(marks)} }

// MarkOverridden notes that the policy of a name has overrides, also one that is added later.
func (t *Table) MarkOverridden(name string) { t.marks.set(name) }

// marks has, by the names of policies, whether they have had overrides.
type marks struct {
	mu     sync.Mutex
	byName map[string]*atomic.Bool
}

func (m *marks) of(name string) *atomic.Bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ofLocked(name)
}

// set notes overrides, before drop can forget the name.
func (m *marks) set(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ofLocked(name).Store(true)
}

func (m *marks) ofLocked(name string) *atomic.Bool {
	if m.byName == nil {
		m.byName = make(map[string]*atomic.Bool)
	}
	if m.byName[name] == nil {
		m.byName[name] = new(atomic.Bool)
	}
	return m.byName[name]
}

// drop forgets a name; unless overridden is set, only one that has had no overrides.
func (m *marks) drop(name string, overridden bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mark := m.byName[name]; mark != nil && (overridden || !mark.Load()) {
		delete(m.byName, name)
	}
}

// Bytes returns how long the names and definitions are together.
func (t *Table) Bytes() int64 { return t.bytes }

// Get returns the policy of a name, or nil.
func (t *Table) Get(name []byte) *Policy { return t.byName[string(name)] }

// Put adds a policy, which replaces the one of the same name. It continues the counters of before;
// nil: they begin at 0.
func (t *Table) Put(p, before *Policy) {
	if p.decisions = new(stats.Decisions); before != nil {
		p.decisions = before.decisions
	}
	t.remove(p.Name())
	p.overridden = t.marks.of(p.Name())
	t.byName[p.Name()] = p
	t.bytes += p.Bytes()
	if p.Networks() != (rule.Networks{}) {
		t.networks.Add(1)
	}
}

// Delete removes the policy of a name, if there is one, which has no overrides any more.
func (t *Table) Delete(name string) {
	t.remove(name)
	t.marks.drop(name, true)
}

func (t *Table) remove(name string) {
	if p := t.byName[name]; p != nil {
		t.bytes -= p.Bytes()
		if p.Networks() != (rule.Networks{}) {
			t.networks.Add(-1)
		}
	}
	delete(t.byName, name)
}

// IsOld reports whether an override is none any more: it was added up to a version, which is that
// of the table or an earlier one, and its policy is gone since, or became another one.
func (t *Table) IsOld(o Override, version uint64) bool {
	p := t.byName[o.Policy()]
	if p == nil {
		return o.Since <= version && !t.partial
	}
	return o.Since < p.since && o.Since <= version
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
type Shared struct {
	latest atomic.Pointer[version]
	marks  marks
}

type version struct {
	number uint64
	table  *Table
}

// Set replaces all policies, for calls that begin from now on. The number of the version is 1 or
// more. Counters continue. partial: the version has others too, which are not known here.
func (s *Shared) Set(number uint64, list []*Policy, partial bool) {
	before, table := s.Table(), NewTable()
	table.marks, table.partial = &s.marks, partial
	for _, p := range list {
		var former *Policy
		if before != nil {
			former = before.byName[p.Name()]
		}
		table.Put(p, former)
	}
	if before != nil {
		for name := range before.byName {
			if table.byName[name] == nil {
				s.marks.drop(name, false)
			}
		}
	}
	s.latest.Store(&version{number, table})
}

// MarkOverridden is Table.MarkOverridden for this version and all later ones.
func (s *Shared) MarkOverridden(name string) { s.marks.set(name) }

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
