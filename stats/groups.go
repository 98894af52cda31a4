package stats

import "sync/atomic"

// MaxGroups is how many groups of slots a cluster has at most.
const MaxGroups = 1024

// GroupCalls counts calls on the keys of a group of slots, in a cluster.
type GroupCalls struct {
	holding, held, uncertain, repeat atomic.Int64
}

// Hold counts a call that is held until the group has a leader, as long as release is not called.
func (g *GroupCalls) Hold() (release func()) {
	g.held.Add(1)
	g.holding.Add(1)
	return func() { g.holding.Add(-1) }
}

// Uncertain counts a reply of a call that was carried out or not.
func (g *GroupCalls) Uncertain() { g.uncertain.Add(1) }

// Repeat counts a reply that asks the client to send its call again.
func (g *GroupCalls) Repeat() { g.repeat.Add(1) }

// GroupCounts is a snapshot of GroupCalls.
type GroupCounts struct {
	Holding   int64 // calls that are held now
	Held      int64 // calls that were held
	Uncertain int64 // UNCERTAIN replies
	Repeat    int64 // TRYAGAIN replies
}

// Snapshot returns what has been counted.
func (g *GroupCalls) Snapshot() GroupCounts {
	return GroupCounts{
		Holding: g.holding.Load(), Held: g.held.Load(), Uncertain: g.uncertain.Load(), Repeat: g.repeat.Load(),
	}
}

// Group returns the counters of a group of slots, by its number. They take no memory until they are
// used for the first time.
func (c *Counters) Group(number int) *GroupCalls {
	all := c.groups.Load()
	if all == nil {
		c.groups.CompareAndSwap(nil, new([MaxGroups]GroupCalls))
		all = c.groups.Load()
	}
	return &all[number]
}

// resetGroups sets the counts of all groups to 0, but for the calls that are held now.
func (c *Counters) resetGroups() {
	all := c.groups.Load()
	if all == nil {
		return
	}
	for i := range all {
		g := &all[i]
		g.held.Store(0)
		g.uncertain.Store(0)
		g.repeat.Store(0)
	}
}
