package group

import (
	"strconv"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
)

// numbers are notes that are the version alone.
type numbers struct{}

func (numbers) PolicyNote(version uint64) []byte { return strconv.AppendUint(nil, version, 10) }

func (numbers) PoliciesIn(note []byte) uint64 {
	version, _ := strconv.ParseUint(string(note), 10, 64)
	return version
}

// usePolicy makes the node know a version of the policies, with one of them.
func (n *node) usePolicy(version uint64, words ...string) {
	if n.policies == nil {
		n.policies = new(policy.Shared)
	}
	var definition [][]byte
	for _, word := range words {
		definition = append(definition, []byte(word))
	}
	p, err := rule.ParsePolicy([]byte("p"), definition)
	require.NoError(n.trio.t, err)
	n.policies.Set(version, []*policy.Policy{policy.New(p)}, false)
}

// check makes one call against the policy p.
func check(p *Partition) (allowed bool, err error) {
	tx, k := p.Engine.NewTx(), p.Engine.Key([]byte("p:{ann}"))
	tx.Begin(p.Clock.Now(), 0, []engine.Key{k}, true)
	d, err := tx.Check(engine.CheckCall{Names: [][]byte{[]byte("p")}, Keys: []engine.Key{k}, Costs: []int64{1}})
	pos := tx.End()
	if err != nil {
		return false, err
	}
	return d.Allowed, p.Wait(pos)
}

// A leader that does not know the policies that the group has used decides nothing by older ones,
// which would drop keys of another algorithm, and serves other calls. So does one after it that has
// the group's state from a snapshot.
func TestALaterLeaderUsesNoOlderPolicies(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	tr := newTrio(t)
	for _, n := range tr.nodes {
		n.usePolicy(1, "SLIDE", "1", "1h")
	}
	tr.startAll()
	first := tr.leader()
	first.usePolicy(2, "TOKEN", "1", "1", "1h")
	p, err := first.group.Leading()
	require.NoError(t, err)
	allowed, err := check(p)
	require.NoError(t, err)
	require.True(t, allowed)
	tr.alike()
	for _, n := range tr.nodes {
		assert.Equal(t, "2", string(n.group.Note().Data))
	}
	require.NoError(t, first.group.Snapshot())

	next := tr.nodes[(first.i+1)%3]
	require.NoError(t, first.group.HandOver(t.Context(), "a test", names[next.i]))
	p, err = next.group.Await(t.Context())
	require.NoError(t, err)
	_, err = check(p)
	assert.Equal(t, engine.ErrOldPolicies, err)
	_, err = admit(p, "k", 1)
	assert.NoError(t, err)
	next.usePolicy(2, "TOKEN", "1", "1", "1h")
	allowed, err = check(p)
	require.NoError(t, err)
	assert.False(t, allowed, "what was used is used")

	first.usePolicy(1, "SLIDE", "1", "1h") // it was started again, with an older map
	first.stop()
	first.open(first.options(0))
	tr.eventually("it leads", func() bool {
		_ = next.group.HandOver(t.Context(), "a test", names[first.i])
		p, err = first.group.Leading()
		return err == nil
	})
	_, err = check(p)
	assert.Equal(t, engine.ErrOldPolicies, err)
}

// The version is in the log before what was decided by it, once.
func TestPoliciesAreNotedBeforeTheyAreUsed(t *testing.T) {
	f := newFSM(t)
	p := f.lead(5)
	shared := new(policy.Shared)
	p.used = policiesUsed{shared: shared, notes: numbers{}, note: 3}
	f.note.Store(&Note{Version: 3})
	p.change(rename)
	p.beat()
	shared.Set(7, nil, false)
	note := p.take(nil)
	require.Len(t, note, 1)
	assert.Nil(t, f.Apply(&raft.Log{Index: 1, Term: 5, Data: note[0].entry}))
	assert.Equal(t, &Note{4, []byte("7")}, f.note.Load())
	assert.False(t, p.endQuietly(), "it is in flight")
	p.applied(note[0], nil)
	calls := p.take(nil)
	require.Len(t, calls, 1)
	assert.Equal(t, entryBatch, calls[0].kind)
	p.applied(calls[0], nil)
	p.beat()
	again := p.take(nil)
	require.Len(t, again, 1)
	assert.Equal(t, entryBatch, again[0].kind)
	p.applied(again[0], nil)
	assert.True(t, p.endQuietly())
}

func TestANoteHasABound(t *testing.T) {
	assert.EqualError(t, new(Group).SetNote(Note{1, make([]byte, longestNote+1)}),
		"it would take 16777217 bytes, and may take 16777216")
}
