package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"rlserver/cluster/group"
)

// The system clocks of the nodes are compared with each other and with the time of the cluster. No
// single one is followed: what counts is the one in the middle. If their number is even, there is
// none, and what the logs say is counted with them.

const (
	clockInterval = time.Second
	// clockTolerance is by how much the system clock of a node and the time of the cluster may
	// differ without a warning. Half of that ends the trouble.
	clockTolerance = 10 * time.Second
	// askInterval is the time between attempts to learn the time of most nodes.
	askInterval = 50 * time.Millisecond
	// longestAsking is for how many timeouts that is tried. A leader is in touch with a majority,
	// so it does not take long, unless the map is about to change.
	longestAsking = 5
)

// middle returns the clock in the middle. If their number is even, other is counted as well.
func middle(clocks []int64, other int64) int64 {
	sorted := slices.Clone(clocks)
	if len(sorted)%2 == 0 {
		sorted = append(sorted, other)
	}
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// middleClock is group.Options.Clocks: the clock in the middle of those of the nodes that are up.
func (n *Node) middleClock(own, now int64) int64 {
	clocks := n.clocksAt(n.options.Clock.Elapsed(), own)
	return middle(slices.Collect(maps.Values(clocks)), now)
}

// clocksAt returns the system clocks of the nodes that are up when a time has passed on the
// monotonic clock, and the own one, by name, Unix µs.
func (n *Node) clocksAt(elapsed time.Duration, own int64) map[string]int64 {
	clocks := map[string]int64{n.self.Name: own}
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, o := range n.others {
		if n.upLocked(name) {
			clocks[name] = o.offset + elapsed.Microseconds()
		}
	}
	return clocks
}

// Time is what a node knows about the time, in Unix ms.
type Time struct {
	Group int64 // of the group that was asked for; 0: not known
	Any   int64 // the latest of all groups; 0: none is known
	Log   int64 // the latest time in all logs; 0: there is none
	Clock int64 // the system clock
}

// timeOf returns what this node knows about the time of a group and of the others.
func (n *Node) timeOf(number int) (t Time) {
	for i, g := range n.groups() {
		if g == nil {
			continue
		}
		t.Log = max(t.Log, g.LatestTime())
		if ms, known := g.Estimate(); known {
			t.Any = max(t.Any, ms)
			if i == number {
				t.Group = ms
			}
		}
	}
	wall, _ := n.options.Clock.Read()
	t.Clock = wall / 1000
	return t
}

// askTime asks all nodes what time it is, for a group whose log ends at log, until the nodes of a
// majority of its replicas have answered, still returns false, or it has taken too long. If a
// replica of the group knows its time, that is it, and otherwise that of the other groups. If
// nobody knows any, the whole cluster has started: then the clocks say how long it was away.
//
// ask, which is askAll, asks all once, and waits for their answers for a time. That is longer with
// each attempt, as nodes may be slow: what one alone says may be wrong.
func (n *Node) askTime(
	ask func(m *Map, number int, wait time.Duration) map[string]Time, number int, log int64, still func() bool,
) (ms int64) {
	wait := n.options.Timeout / 4
	for begun := n.options.Clock.Elapsed(); ; time.Sleep(askInterval) {
		m := n.known()
		answers := ask(m, number, wait)
		wait += n.options.Timeout / 4
		replicas, all := 0, Time{Log: log}
		var clocks []int64
		for name, t := range answers {
			if slices.Contains(m.Replicas[number], name) {
				replicas++
			}
			all.Group, all.Any, all.Log = max(all.Group, t.Group), max(all.Any, t.Any), max(all.Log, t.Log)
			clocks = append(clocks, t.Clock)
		}
		switch {
		case all.Group != 0 || all.Any != 0:
			return cmp.Or(all.Group, all.Any)
		case 2*replicas > len(m.Replicas[number]) || !still() ||
			n.options.Clock.Elapsed()-begun > longestAsking*n.options.Timeout:
			ms = group.Since(all.Log, middle(clocks, all.Log))
			for name, t := range answers {
				n.compareClock(name, t.Clock-ms)
			}
			return ms
		}
		n.warnOften("a group waits for the clocks of most of its nodes, as no node knows what time it is")
	}
}

// enough reports whether what nodes have answered decides the time of a group: a majority of its
// replicas has, and one of them knows. Who is cut off or slow is not waited for.
func enough(replicas []string, answers map[string]Time) bool {
	answered, known := 0, false
	for _, name := range replicas {
		if t, ok := answers[name]; ok {
			answered++
			known = known || t.Group != 0
		}
	}
	return known && 2*answered > len(replicas)
}

// askAll asks all members for the time of a group, and returns what has come, with the own answer:
// when that is enough, or after a time to wait. The times are those of the end of that.
func (n *Node) askAll(m *Map, number int, wait time.Duration) map[string]Time {
	type answer struct {
		name string
		t    Time
		at   time.Duration
	}
	elapsed := n.options.Clock.Elapsed
	answers := make(chan *answer, len(m.Members))
	asked := 0
	for _, member := range m.Members {
		if member.Name == n.self.Name {
			continue
		}
		asked++
		go func() {
			var t Time // which may still be written to after an error
			if n.callNode(member.Name, "Time", number, &t, wait) != nil {
				answers <- nil
				return
			}
			answers <- &answer{member.Name, t, elapsed()}
		}()
	}
	var list []*answer
	found := map[string]Time{n.self.Name: {}}
	for late := time.After(wait); asked > 0 && !enough(m.Replicas[number], found); asked-- {
		select {
		case a := <-answers:
			if a != nil {
				list = append(list, a)
				found[a.name] = a.t
			}
		case <-late:
			asked = 1
		}
	}
	found[n.self.Name] = n.timeOf(number)
	for _, a := range list {
		passed := (elapsed() - a.at).Milliseconds()
		for _, ms := range []*int64{&a.t.Group, &a.t.Any, &a.t.Clock} {
			if *ms != 0 {
				*ms += passed
			}
		}
		found[a.name] = a.t
	}
	return found
}

// compareClocks logs when the system clock of a node begins to differ from the time of the cluster,
// and when that has ended. Limits follow the time of their group.
func (n *Node) compareClocks() {
	ms, known := n.clusterTime()
	if !known {
		return
	}
	wall, elapsed := n.options.Clock.Read()
	for name, clock := range n.clocksAt(elapsed, wall) {
		n.compareClock(name, clock/1000-ms)
	}
}

// compareClock notes by how many ms the system clock of a node is ahead of the time of the cluster.
func (n *Node) compareClock(name string, aheadMS int64) {
	ahead := time.Duration(aheadMS) * time.Millisecond
	n.mu.Lock()
	o := n.others[name]
	was := o.off
	now := ahead.Abs() > clockTolerance || was && ahead.Abs() >= clockTolerance/2
	if now != was {
		o.off = now
		n.others[name] = o
	}
	n.mu.Unlock()
	switch {
	case now == was:
	case now:
		n.log.Warn("the system clock of a node differs from the time of the cluster, which all limits follow, and is "+
			"not followed: check that NTP works on all nodes", "clock", name, "ahead", ahead.Round(time.Second))
	default:
		n.log.Info("the system clock of a node no longer differs from the time of the cluster", "clock", name)
	}
}

// ClockOff reports whether the system clock of a node differs from the time of the cluster, so that
// it is not followed.
func (n *Node) ClockOff(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.others[name].off
}

// clusterTime returns the time of the first group of which the replica here is up to date, Unix ms.
func (n *Node) clusterTime() (ms int64, known bool) {
	for number, g := range n.groups() {
		if g == nil || !n.upToDate(number, g) {
			continue
		}
		if ms, known = g.Estimate(); known {
			break
		}
	}
	return ms, known
}

// upToDate reports whether a replica has all entries that were committed a moment ago. One that has
// not, as after a start, takes the time of an old entry for the present.
func (n *Node) upToDate(number int, g *group.Group) bool {
	st := g.Status()
	if st.Leads {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	committed, leads := n.others[st.Leader].report.Committed[number]
	return leads && n.upLocked(st.Leader) && st.Applied >= committed
}
