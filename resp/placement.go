package resp

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"

	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/engine/eviction"
	"rlserver/internal/stats"
	"rlserver/resp/command"
	"rlserver/resp/commands/clustering"
	"rlserver/resp/forward"
	"rlserver/resp/pubsub/relay"
)

// This file chooses the partition of a call, and nothing else asks whether there is a cluster: a
// server alone has one partition, its home, for all slots. A node of a cluster has one for each
// group of slots that it leads, and its home for calls without keys.

// place connects the server with its partitions.
func (s *Server) place(o *Options) {
	s.home = &partition{env: &s.Env, queues: &s.queues, groups: 1}
	s.only = []*partition{s.home}
	s.Env.Cluster, s.Mode, s.ChangeUsers = command.Alone{}, "standalone", s.changeOwnUsers
	if o.Journal != nil {
		s.home.journal = synced{o.Journal, s}
	}
	if o.Cluster == nil {
		return
	}
	s.home.group, s.led = -1, make([]atomic.Pointer[partition], stats.MaxGroups)
	// of the databases other than 0, commands say what Redis Cluster says by default
	s.Env.Cluster, s.Databases, s.Mode, s.ChangeUsers = o.Cluster, 16, "cluster", s.changeUsers
	s.cluster = o.Cluster
	s.Channels.Relay = relay.New(relay.Options{
		Others: o.Cluster.OtherNodes, Dial: o.Cluster.DialNode, Most: &o.Settings.PubSub.NodeQueue,
	})
	s.Tracking.Links = s.Tracking.NewLinks(o.Cluster.OtherNodes, o.Cluster.DialNode, s.listener.Elsewhere)
	s.passing = forward.NewPool(forward.Options{
		Nodes: o.Cluster, Hold: o.Hold, MostLinks: max(1, o.Settings.Start.Cluster.ProxyLinks),
		Held: func(group int) (release func(refused bool)) { return s.Stats.Group(group).Hold() },
	})
}

// endShards ends the subscriptions to shard channels of groups that this node does not lead. It
// ends those of one group in any case, -1: of none.
func (s *Server) endShards(ended int) {
	if s.cluster == nil {
		return
	}
	leads := make(map[int]bool)
	s.Channels.EndShards(func(name string) bool {
		group := slot.Group(slot.Of([]byte(name)), max(s.cluster.Groups(), 1))
		if _, known := leads[group]; !known {
			_, err := s.cluster.Lead(group)
			leads[group] = err == nil && group != ended
		}
		return !leads[group]
	})
}

// partitions returns the partitions on which calls run here, the home first.
func (s *Server) partitions() []*partition {
	if s.cluster == nil {
		return s.only
	}
	list := []*partition{s.home}
	for group := range s.cluster.Groups() {
		if p, err := s.cluster.Lead(group); err == nil {
			list = append(list, s.partitionOf(group, p))
		}
	}
	return list
}

// enter makes a call run on the partition of its keys. It may wait for an election, so the caller
// must hold no lock.
func (s *session) enter(p *command.Prepared, keys []engine.Key) error {
	if s.server.cluster == nil {
		return nil // it is on the only one
	}
	if refused := p.Command.Refused; refused != nil {
		if err := refused(p.Words); err != nil {
			return err
		}
	}
	if len(keys) == 0 {
		if p.Command.OnFirstGroup {
			return s.enterSlot(s.slotWithoutKeys(p), s.role != forOtherNode)
		}
		s.use(s.server.home)
		if p.Command == execCommand && s.transaction.open && !s.transaction.broken {
			return s.enterTransaction()
		}
		if needsKeys(p) {
			return clustering.ErrWholeKeyspace
		}
		return nil
	}
	at, ok := clustering.SlotOf(keys)
	if !ok {
		return clustering.CrossSlot(p, keys)
	}
	return s.enterSlot(at, s.passes(p, at))
}

// slotWithoutKeys returns the slot where a call of a command with OnFirstGroup runs.
func (s *session) slotWithoutKeys(p *command.Prepared) int {
	at, groups := p.Command.RunsAt, s.server.cluster.Groups()
	if at == nil || groups == 0 {
		return 0
	}
	key, group := at(s.server.Engine, p.Words)
	if key != nil {
		return slot.Of(key)
	}
	return slot.RangeOf(min(group, groups-1), groups).First
}

// passes reports whether a call on keys of a slot runs on another node if that leads it, instead of
// sending the client there: clients of the proxy port follow no MOVED, and others compute the slot
// of an address from what they send, not from the network as which policies count it.
func (s *session) passes(p *command.Prepared, at int) bool {
	switch s.role {
	case proxied:
		return p.Command.Flags&command.WhileSubscribed == 0
	case ordinary:
		return p.Command.HashKeys != nil && slot.Of(p.NamedKey()) != at
	}
	return false
}

// needsKeys reports whether a call without keys is about those of all groups.
func needsKeys(p *command.Prepared) bool {
	return p.WantsAll() || p.Command.Flags&(command.Write|command.Readonly) != 0 &&
		p.Command.Flags&(command.OwnLocks|command.AnyKeys) == 0
}

// sameGroup reports whether a further call can run while the locks of the previous ones are held.
func (s *session) sameGroup(keys []engine.Key) bool {
	if s.server.cluster == nil {
		return true
	}
	at, ok := clustering.SlotOf(keys)
	return ok && slot.Group(at, s.server.cluster.Groups()) == s.at.group
}

// sameSlot checks a command that is queued in a transaction. In a cluster its keys must be in the
// slot of the previous ones, and this node must lead it or, for clients of the proxy port, any
// node.
func (s *session) sameSlot(p *command.Prepared) error {
	if s.server.cluster == nil {
		return nil
	}
	s.Hasher.Reset()
	s.Hasher.Add(p)
	if refused := p.Command.Refused; refused != nil {
		if err := refused(p.Words); err != nil {
			return err
		}
	}
	if len(s.Hasher.Keys) == 0 {
		if err := p.Command.RefusedInMulti; err != nil {
			return err
		}
		if needsKeys(p) {
			return clustering.ErrWholeKeyspace
		}
		return nil
	}
	at, ok := clustering.SlotOf(s.Hasher.Keys)
	if !ok || s.transaction.slot >= 0 && s.transaction.slot != at {
		return clustering.CrossSlot(p, s.Hasher.Keys)
	}
	s.transaction.slot = at
	s.transaction.passes = s.transaction.passes || s.passes(p, at)
	if err := s.enterSlot(at, s.role == proxied || s.transaction.passes); err != errElsewhere {
		return err
	}
	return nil // EXEC forwards the transaction
}

// spreads reports whether a call on the whole keyspace runs on several partitions.
func (s *session) spreads(c *command.Command) bool { return c.Merge != nil && s.server.cluster != nil }

// keyBound returns how many bytes the keys may take if nothing can be evicted here, at least the
// budget: see spared.
func (s *Server) keyBound() int64 {
	switch {
	case s.cluster == nil:
		return math.MinInt64 // the budget
	case s.Settings.Policy() == eviction.NoEviction:
		return 0
	}
	return cmp.Or(s.Settings.MaxMemory(), math.MaxInt64)
}

// spared reports whether a call may run although nothing can be evicted here. In a group that this
// node follows, the leader evicts, which may have a larger budget, as its overhead may be less. So
// calls are refused only when the keys alone take maxmemory, and if they run here.
func (s *session) spared(p *command.Prepared) bool {
	if !s.server.Engine.Memory().Full() {
		return true
	}
	hasher := command.Hasher{Engine: s.server.Engine}
	hasher.Add(p)
	at := -1
	if len(hasher.Keys) > 0 {
		at = slot.Of(hasher.Keys[0].Name)
	} else if p.Command == execCommand && s.transaction.open {
		at = s.transaction.slot
	}
	if at < 0 {
		return false
	}
	return !slices.ContainsFunc(s.server.partitions(), func(p *partition) bool { return p.has(at) })
}
