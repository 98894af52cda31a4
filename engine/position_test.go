package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/policy"
)

// End returns the position of the latest change by any call to the shards that this call has
// held.
func TestEndReturnsLatestPosition(t *testing.T) {
	e := New(Options{Databases: 2, Shards: 2, Journal: new(recorder)})
	on := [2]Key{} // a key in each shard
	for c := byte('a'); on[0].Name == nil || on[1].Name == nil; c++ {
		k := e.Key([]byte{c})
		on[e.shardIndex(k.Hash)] = k
	}
	tx, other := e.NewTx(), e.NewTx()
	call := func(tx *Tx, do func(), keys ...Key) Position {
		tx.Begin(epoch, 0, keys, true)
		do()
		return tx.End()
	}
	set := func(k Key) func() { return func() { other.Set(k, []byte("v"), SetMode{}) } }
	nothing := func() {}

	require.EqualValues(t, 0, call(tx, nothing, on[0], on[1]), "nothing has changed")
	require.EqualValues(t, 1, call(other, set(on[0]), on[0]))
	require.EqualValues(t, 2, call(other, set(on[1]), on[1]))
	require.EqualValues(t, 1, call(tx, nothing, on[0]), "a read of what the first call changed")
	require.EqualValues(t, 2, call(tx, nothing, on[1]))
	require.EqualValues(t, 2, call(tx, nothing, on[0], on[1]))
	require.EqualValues(t, 0, tx.End(), "an idle Tx has seen nothing")
	require.EqualValues(t, 1, call(tx, func() {
		d, err := tx.Token(on[0], limit.Bucket{Capacity: 1, Refill: 1, Period: 1000}, 1)
		require.Equal(t, ErrWrongType, err)
		require.False(t, d.Allowed)
	}, on[0]), "a call that changes nothing makes no position of its own")

	tx.BeginAll(epoch, 0, false)
	require.EqualValues(t, 2, tx.End())

	seen := 0
	next, _ := tx.Scan(epoch, 0, 0, 100, func([]byte, object.Type) { seen++ })
	require.Zero(t, next)
	require.Equal(t, 2, seen)
	require.EqualValues(t, 2, tx.End(), "the position of a scan")
	require.EqualValues(t, 0, tx.End())

	tx.SeeAll()
	require.EqualValues(t, 2, tx.End())

	p, err := ParsePolicy([]byte("p"), [][]byte{[]byte("SLIDE"), []byte("1"), []byte("1m")})
	require.NoError(t, err)
	e.SetPolicies(epoch, []*policy.Policy{p})
	require.EqualValues(t, 3, call(tx, nothing, on[0]), "each call may have consulted a policy")
	e.DeletePolicy(epoch, "p")
	require.EqualValues(t, 4, call(tx, nothing, on[1]))

	tx.Begin(epoch, 0, []Key{on[0]}, true)
	require.True(t, tx.Join([]Key{on[1]}))
	require.EqualValues(t, 4, tx.End())
}

// A call with very many changes is one record, and the Tx does not keep their memory.
func TestManyChangesOfACallAreOneRecord(t *testing.T) {
	log := new(recorder)
	e := New(Options{Journal: log})
	tx, k := e.NewTx(), e.Key([]byte("k"))
	for _, n := range []int{1, 256, 257, 773} {
		tx.Begin(epoch, 0, []Key{k}, true)
		for i := range n {
			_, err := tx.HSet(k, [][]byte{fmt.Append(nil, i), fmt.Append(nil, n)})
			require.NoError(t, err)
		}
		tx.End()
		call := log.calls[len(log.calls)-1]
		require.Len(t, call, n)
		for i, f := range call {
			require.Equal(t, fmt.Sprint(i, n), string(f.Field)+" "+string(f.Value))
		}
		require.LessOrEqual(t, cap(tx.effects), keptEffects)
	}
	require.Len(t, log.calls, 4)
}

// visibilityJournal is a journal that records whether policies are visible before their position
// is known.
type visibilityJournal struct {
	e    *Engine
	seen []bool
}

func (w *visibilityJournal) Append(int64, []byte) Position {
	visible := w.e.naming.TryRLock()
	if visible {
		w.e.naming.RUnlock()
	}
	w.seen = append(w.seen, visible)
	return Position(len(w.seen))
}
func (w *visibilityJournal) Wait(Position) error { return nil }

func TestPoliciesAreRecordedBeforeVisible(t *testing.T) {
	w := new(visibilityJournal)
	w.e = New(Options{Journal: w})
	p, err := ParsePolicy([]byte("p"), [][]byte{[]byte("SLIDE"), []byte("1"), []byte("1m")})
	require.NoError(t, err)
	w.e.SetPolicies(epoch, []*policy.Policy{p})
	w.e.DeletePolicy(epoch, "p")
	require.Equal(t, []bool{false, false}, w.seen)
	require.Empty(t, w.e.Policies())
}
