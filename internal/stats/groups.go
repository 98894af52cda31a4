package stats

import "sync/atomic"

// MaxGroups is the largest number of groups of slots in a cluster.
const MaxGroups = 1024

// GroupCalls counts calls on the keys of a group of slots in a cluster.
type GroupCalls struct {
	holding, held, refused, uncertain, repeat atomic.Int64
}

// Hold counts a call that waits until the group has a leader. release ends the wait, with whether
// the call is refused as there is none.
func (g *GroupCalls) Hold() (release func(refused bool)) {
	g.held.Add(1)
	g.holding.Add(1)
	return func(refused bool) {
		g.holding.Add(-1)
		if refused {
			g.refused.Add(1)
		}
	}
}

// Uncertain counts an UNCERTAIN reply: whether the call was carried out is unknown.
func (g *GroupCalls) Uncertain() { g.uncertain.Add(1) }

// Repeat counts a TRYAGAIN reply.
func (g *GroupCalls) Repeat() { g.repeat.Add(1) }

// GroupCounts is a snapshot of GroupCalls.
type GroupCounts struct {
	Holding   int64 // calls that are held now
	Held      int64 // calls that were held
	Refused   int64 // calls that found no leader in time
	Uncertain int64 // UNCERTAIN replies
	Repeat    int64 // TRYAGAIN replies
}

// Snapshot returns the current counts.
func (g *GroupCalls) Snapshot() GroupCounts {
	return GroupCounts{
		Holding: g.holding.Load(), Held: g.held.Load(), Refused: g.refused.Load(), Uncertain: g.uncertain.Load(),
		Repeat: g.repeat.Load(),
	}
}

// Group returns the counters of a group of slots, by its number. They are created at their first
// use.
func (c *Counters) Group(number int) *GroupCalls {
	all := c.groups.Load()
	if all == nil {
		c.groups.CompareAndSwap(nil, new([MaxGroups]GroupCalls))
		all = c.groups.Load()
	}
	return &all[number]
}

// resetGroups sets the counts of all groups to 0, except for the calls that are held now.
func (c *Counters) resetGroups() {
	all := c.groups.Load()
	if all == nil {
		return
	}
	for i := range all {
		g := &all[i]
		g.held.Store(0)
		g.refused.Store(0)
		g.uncertain.Store(0)
		g.repeat.Store(0)
	}
}
