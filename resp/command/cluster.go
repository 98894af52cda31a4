package command

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"

	"rlserver/cluster/overview"
	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/internal/clock"
	"rlserver/resp/wire"
)

// Cluster is the cluster of which the server is a node.
type Cluster interface {
	// View returns the nodes and groups for clients, without the figures of the groups.
	View() *overview.Cluster
	// Overview is View with all figures.
	Overview() *overview.Cluster
	// SetPolicies is Engine.SetPolicies. In a cluster it is called on the node that leads group 0,
	// and returns when all groups use them, or after the hold time. Keys are dropped later, when
	// they are met. All policies together may not become larger than a bound.
	SetPolicies(e *Env, list []*policy.Policy) (engine.PolicyChanges, error)
	// DeletePolicy is Engine.DeletePolicy in the same way.
	DeletePolicy(e *Env, name string) (found bool, err error)
	// HandOver hands over the groups that this node leads to other nodes. It tries once. The error
	// names the groups that it still leads, and why.
	HandOver(ctx context.Context) error
	// Drain has this node lead no group until it is started again. It returns when it leads none
	// or, when the context ends, the groups that it leads and why.
	Drain(ctx context.Context) error
	// Meet has the node at an address, host:port between nodes, join the cluster.
	Meet(ctx context.Context, address string) error
	// Forget removes a node, by its name or id, in the background.
	Forget(node string) error
}

// Alone is the Cluster of a server that is alone: it has no commands about one.
type Alone struct{ Cluster }

// View implements Cluster: there are no nodes. So does Overview.
func (Alone) View() *overview.Cluster     { return new(overview.Cluster) }
func (Alone) Overview() *overview.Cluster { return new(overview.Cluster) }

// InCluster reports whether the server is a node of a cluster.
func (e *Env) InCluster() bool { return e.Mode == "cluster" }

// SetPolicies implements Cluster.
func (Alone) SetPolicies(e *Env, list []*policy.Policy) (engine.PolicyChanges, error) {
	return e.Engine.SetPoliciesWithin(e.Clock(), list, policy.MaxBytes)
}

// DeletePolicy implements Cluster.
func (Alone) DeletePolicy(e *Env, name string) (found bool, err error) {
	return e.Engine.DeletePolicy(e.Clock(), name)
}

// Keyspace is an engine on which calls run on this node, with its clock. Without a cluster there is
// one, otherwise one for each group of slots that this node leads.
type Keyspace struct {
	Group  int // number of the group; 0 without a cluster
	Engine *engine.Engine
	Time   *clock.Clock
}

// Merger runs a call of a command on the whole keyspace on several partitions, one after the other,
// and merges the values: see Command.Merge.
type Merger struct {
	Words  [][]byte
	Groups []int // numbers of the groups to run on, in order
	// On runs the command on a group, with words that may differ from those of the call. Group -1
	// is the partition without keys.
	On func(group int, words [][]byte) wire.Value
	// Keys returns the number of keys of a group, or why a call on all of them cannot run now.
	Keys   func(group int) wire.Value
	Pause  func() (ok bool) // waits a little; ok: the client is still there
	Random *rand.Rand
	Reply  *wire.Reply
}

// Each runs the call on each group, and calls do with the value. An error ends it, and is the
// reply: then Each returns false.
func (m *Merger) Each(do func(wire.Value)) bool {
	for _, group := range m.Groups {
		v := m.On(group, m.Words)
		if v.Failed() {
			m.Reply.Value(v)
			return false
		}
		do(v)
	}
	return true
}

// MergeSum replies with the sum of integers.
func MergeSum(m *Merger) {
	sum := int64(0)
	if m.Each(func(v wire.Value) { sum += v.Integer }) {
		m.Reply.Integer(sum)
	}
}

// MergeArrays replies with all elements of arrays.
func MergeArrays(m *Merger) {
	count, elements := int64(0), []byte(nil)
	if m.Each(func(v wire.Value) { count, elements = count+v.Integer, append(elements, v.Text...) }) {
		m.Reply.Array(int(count))
		m.Reply.B = append(m.Reply.B, elements...)
	}
}

// MergeFlush replies with OK when all groups have. If a script holds keys of one, or one has no
// leader, it changes nothing. A script that takes too long only afterwards is waited for.
func MergeFlush(m *Merger) {
	for _, group := range m.Groups {
		// a user who may not ask for the number of keys may delete them
		if v := m.Keys(group); v.Failed() && !bytes.HasPrefix(v.Text, []byte("NOPERM")) {
			m.Reply.Value(v)
			return
		}
	}
	for i, group := range m.Groups {
		v := m.On(group, m.Words)
		for i > 0 && v.Kind == '-' && string(v.Text) == string(ErrBusy) && m.Pause() {
			v = m.On(group, m.Words)
		}
		switch {
		case !v.Failed():
			continue
		case i > 0 && v.Kind == '-':
			m.Reply.Error(errFlushedSome + string(v.Text))
		default:
			m.Reply.Value(v)
		}
		return
	}
	m.Reply.OK()
}

const errFlushedSome = "UNCERTAIN the keys of some slots are deleted, those of others are not: send the call again. "

// MergeDraw runs the command on a random group, weighted so that all keys have the same chance.
func MergeDraw(m *Merger) {
	sum, sizes := 0, make([]int, len(m.Groups))
	for i, group := range m.Groups {
		v := m.Keys(group)
		sizes[i] = int(v.Integer)
		sum += sizes[i]
	}
	on, n := -1, m.Random.IntN(max(sum, 1))
	for i, group := range m.Groups {
		if n < sizes[i] {
			on = group
			break
		}
		n -= sizes[i]
	}
	m.Reply.Value(m.On(on, m.Words))
}

// cursorGroupBits is the number of low bits of a SCAN cursor that have the number of its group.
// SCAN visits the groups in order.
const cursorGroupBits = 10

// MergeScan scans the groups one after the other. It skips groups that are not led here any more
// when their turn comes.
func MergeScan(m *Merger) { MergeScanAt(m, 1) }

// MergeScanAt is MergeScan for a call whose cursor is the word at an index.
func MergeScanAt(m *Merger, index int) {
	cursor, err := strconv.ParseUint(string(m.Words[index]), 10, 64)
	if err != nil || len(m.Groups) == 0 {
		m.Reply.Value(m.On(-1, m.Words))
		return
	}
	group, within := int(cursor&(1<<cursorGroupBits-1)), cursor>>cursorGroupBits
	at := slices.IndexFunc(m.Groups, func(led int) bool { return led >= group })
	if at < 0 {
		at, within = len(m.Groups)-1, 0 // the last group has moved to another node
	} else if m.Groups[at] != group {
		within = 0
	}
	words := slices.Clone(m.Words)
	words[index] = strconv.AppendUint(nil, within, 10)
	v := m.On(m.Groups[at], words)
	parts := v.Elements()
	if v.Failed() || len(parts) != 2 {
		m.Reply.Value(v)
		return
	}
	next, _ := strconv.ParseUint(string(parts[0].Text), 10, 64)
	switch {
	case next != 0:
		next = next<<cursorGroupBits | uint64(m.Groups[at])
	case at+1 < len(m.Groups):
		next = uint64(m.Groups[at+1])
	}
	m.Reply.Array(2)
	m.Reply.BulkString(strconv.FormatUint(next, 10))
	m.Reply.Value(parts[1])
}
