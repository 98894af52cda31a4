package group

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// ReplicaID names one replica of a group. A node that has lost its replica gets another instance,
// and is a new member of the group: it has acknowledged nothing yet.
type ReplicaID struct {
	Node     string
	Instance uint64
}

// String returns the id as raft knows it: the node's name, a slash and 16 hex digits.
func (id ReplicaID) String() string { return fmt.Sprintf("%s/%016x", id.Node, id.Instance) }

// ParseReplicaID is the inverse of String.
func ParseReplicaID(s string) (ReplicaID, error) {
	if at := strings.LastIndexByte(s, '/'); at > 0 {
		if instance, err := strconv.ParseUint(s[at+1:], 16, 64); err == nil {
			return ReplicaID{s[:at], instance}, nil
		}
	}
	return ReplicaID{}, fmt.Errorf("%q is not the id of a replica", s)
}

func (o *Options) id() ReplicaID { return ReplicaID{o.Node, o.Instance} }

// ID returns which replica this is.
func (g *Group) ID() ReplicaID { return g.options.id() }

// Server is a member of a group.
type Server struct {
	ID    ReplicaID
	Voter bool // false: it gets the log, and does not vote
}

func serversOf(run *running) (list []Server) {
	for _, s := range run.raft.GetConfiguration().Configuration().Servers {
		if id, err := ParseReplicaID(string(s.ID)); err == nil {
			list = append(list, Server{id, s.Suffrage == raft.Voter})
		}
	}
	return list
}

// Bootstrap writes what a new group begins with, the same members on all their nodes, before any of
// them opens its replica. It does nothing if there is state.
func Bootstrap(o Options, members []ReplicaID) error {
	g := newGroup(o)
	config := g.config(nil)
	return g.withFiles(config, func(f files, trans raft.Transport) error {
		if has, err := raft.HasExistingState(f.cache, f.log, f.snapshots); err != nil || has {
			return err
		}
		return raft.BootstrapCluster(config, f.cache, f.log, f.snapshots, trans, votersOf(members))
	})
}

func votersOf(members []ReplicaID) (c raft.Configuration) {
	for _, id := range members {
		c.Servers = append(c.Servers, raft.Server{
			ID: raft.ServerID(id.String()), Address: raft.ServerAddress(id.String()),
		})
	}
	return c
}

// withFiles runs a function on the files of a replica that is not open.
func (g *Group) withFiles(config *raft.Config, do func(files, raft.Transport) error) error {
	f, err := g.openFiles(config.Logger, g.stored, func() {})
	if err != nil {
		return err
	}
	// encodes ids, connects to nothing
	_, trans := raft.NewInmemTransport(raft.ServerAddress(config.LocalID))
	if err = errors.Join(do(f, trans), f.log.Close()); err != nil {
		return fmt.Errorf("group %d in %s: %w", g.options.Number, g.options.Dir, err)
	}
	return nil
}

// Change is a change of a group's members, which the leader makes with Group.Change.
type Change struct {
	Kind ChangeKind
	ID   ReplicaID
}

// ChangeKind is what a Change does.
type ChangeKind int

// The changes.
const (
	NoChange    ChangeKind = iota
	AddNonvoter            // the replica gets the log, and does not vote
	AddVoter               // it votes from now on
	Remove                 // it is a member no more
)

func (k ChangeKind) String() string { return [...]string{"none", "add", "promote", "remove"}[k] }

// Change changes the members by one, and returns when the new ones have committed it. This
// replica has to lead, and its own membership does not change.
func (g *Group) Change(c Change, within time.Duration) error {
	if c.ID == g.ID() {
		return errors.New("a leader does not change its own membership")
	}
	g.changing.Lock()
	defer g.changing.Unlock()
	if _, err := g.Leading(); err != nil {
		return err
	}
	run := g.running.Load()
	id, address := raft.ServerID(c.ID.String()), raft.ServerAddress(c.ID.String())
	switch c.Kind {
	case AddNonvoter:
		return run.await(run.raft.AddNonvoter(id, address, 0, within))
	case AddVoter:
		return run.await(run.raft.AddVoter(id, address, 0, within))
	case Remove:
		return run.await(run.raft.RemoveServer(id, 0, within))
	}
	return nil
}

// Removed reports whether the group has committed that a replica is no member, in which term. ok is
// false if this replica does not know: it does not lead, or is changing the members.
func (g *Group) Removed(id ReplicaID) (removed bool, term uint64, ok bool) {
	if !g.changing.TryLock() {
		return false, 0, false
	}
	defer g.changing.Unlock()
	// a leader's barrier is committed, and so are all members before it; those that it has changed
	// itself are committed when Change returns
	p, err := g.Leading()
	if err != nil {
		return false, 0, false
	}
	for _, s := range serversOf(g.running.Load()) {
		if s.ID == id {
			return false, p.term, true
		}
	}
	return true, p.term, p.Leads()
}
