package group

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
)

// proposeAll returns the entries of all that has been appended, as they are committed in a term.
func (p *Partition) proposeAll(first, term uint64) (logs []*raft.Log) {
	p.Ask()
	for list := p.take(nil); len(list) > 0; list = p.take(nil) {
		for _, b := range list {
			logs = append(logs, &raft.Log{
				Index: first + uint64(len(logs)), Term: term, Type: raft.LogCommand, Data: bytes.Clone(b.entry),
			})
		}
	}
	return logs
}

// large is a change of several parts, between two others, that cannot be made twice.
func large(p *Partition) {
	p.change(func(tx *engine.Tx, k func(string) engine.Key) { tx.Set(k("before"), []byte("1"), engine.SetMode{}) })
	p.change(func(tx *engine.Tx, k func(string) engine.Key) {
		rename(tx, k)
		tx.Set(k("large"), bytes.Repeat([]byte("x"), 3*maxBatch), engine.SetMode{})
		tx.Set(k("small"), []byte("2"), engine.SetMode{})
	})
	p.change(func(tx *engine.Tx, k func(string) engine.Key) { tx.Set(k("after"), []byte("3"), engine.SetMode{}) })
}

func TestALargeRecordIsSplit(t *testing.T) {
	one, two := newFSM(t), newFSM(t)
	p := one.lead(5)
	large(p)
	logs := p.proposeAll(1, 5)
	assert.Len(t, logs, 1+4+1)
	size := int64(0)
	for i, log := range logs {
		assert.LessOrEqual(t, len(log.Data), maxBatch+headerSize)
		assert.Nil(t, one.Apply(log))
		if i < 4 {
			assert.False(t, p.endQuietly(), "parts are on their way")
		}
		assert.Nil(t, two.Apply(log))
		size += int64(len(log.Data))
		state, err := two.Snapshot()
		if i >= 1 && i < 4 {
			for _, f := range []*fsm{one, two} {
				assert.Equal(t, int64(len(logs[0].Data)), f.logBytes.Load(), "or a snapshot would be tried")
			}
			assert.Error(t, err, "the log would lack the parts that are applied")
			assert.Empty(t, two.get("c"))
		} else {
			require.NoError(t, err)
			assert.Equal(t, size, two.logBytes.Load())
			state.Release()
		}
	}
	for _, f := range []*fsm{one, two} {
		assert.Equal(t, "11", f.get("before")+f.get("c"))
		assert.Len(t, f.get("large"), 3*maxBatch)
		assert.Equal(t, "23", f.get("small")+f.get("after"))
	}
	assert.Equal(t, uint64(3), p.committed)
}

// While a follower applies a large record, and loads a snapshot, all processors are used: the node
// may lead other groups.
func TestALargeRecordIsALongCall(t *testing.T) {
	one, two := newFSM(t), newFSM(t)
	begun, ended := 0, 0
	two.longCall = func() func() {
		begun++
		return func() { ended++ }
	}
	p := one.lead(5)
	large(p)
	for i, log := range p.proposeAll(1, 5) {
		two.Apply(log)
		want := 0
		if i >= 4 {
			want = 1
		}
		assert.Equal(t, [2]int{want, want}, [2]int{begun, ended}, i)
	}
	state, err := two.Snapshot()
	require.NoError(t, err)
	var stored sink
	require.NoError(t, state.Persist(&stored))
	state.Release()
	require.NoError(t, two.Restore(io.NopCloser(&stored)))
	assert.Equal(t, [2]int{2, 2}, [2]int{begun, ended})
}

func TestThePartsOfARecordAreProposedTogether(t *testing.T) {
	f := newFSM(t)
	p := f.lead(5)
	p.change(func(tx *engine.Tx, k func(string) engine.Key) {
		tx.Set(k("large"), bytes.Repeat([]byte("x"), maxTogether*maxBatch+maxBatch/2), engine.SetMode{})
	})
	p.Ask()
	first := p.take(nil)
	assert.Len(t, first, maxTogether)
	second := p.take(nil)
	require.Len(t, second, 2) // what came before the record is empty
	assert.Equal(t, entryLastPart, second[1].kind)
	p.change(func(tx *engine.Tx, k func(string) engine.Key) { tx.Set(k("after"), []byte("1"), engine.SetMode{}) })
	require.Len(t, p.take(nil), 1)
	for i, b := range append(first, second...) {
		assert.False(t, p.endQuietly(), i)
		p.applied(b, nil)
	}
}

func TestPartsOfAnEarlierLeadershipAreFenced(t *testing.T) {
	one, two, three := newFSM(t), newFSM(t), newFSM(t)
	p := one.lead(5)
	large(p)
	logs := p.proposeAll(1, 5)
	for i, log := range logs {
		if i >= 2 {
			log.Term = 7
		}
	}
	two.Apply(logs[0])
	two.Apply(logs[1])
	for _, log := range logs[2:] {
		assert.Equal(t, errFenced, two.Apply(log))
	}
	assert.Equal(t, errFenced, one.Apply(logs[2]))
	assert.ErrorIs(t, p.why(), errFenced, "its engine has what nobody commits")

	next := three.lead(8)
	three.Apply(logs[1])
	barrier := make([]byte, headerSize)
	header{kind: entryBarrier, proposer: next.id, first: 1}.put(barrier)
	for _, f := range []*fsm{two, three} {
		f.Apply(&raft.Log{Index: 7, Term: 8, Type: raft.LogCommand, Data: barrier})
		assert.Empty(t, f.partial.record, "the rest of the record does not follow any more")
	}
}

// TestALeadersSnapshotHasARecordOfWhichTheLogHasParts restores a snapshot that was taken between
// the parts of a record.
func TestALeadersSnapshotHasARecordOfWhichTheLogHasParts(t *testing.T) {
	leader := newFSM(t)
	p := leader.lead(5)
	large(p)
	logs := p.proposeAll(1, 5)
	for _, log := range logs[:3] {
		leader.Apply(log)
	}
	ahead, err := leader.Snapshot()
	require.NoError(t, err)
	for _, log := range logs[3:] {
		leader.Apply(log)
	}
	var stored sink
	require.NoError(t, ahead.Persist(&stored))
	ahead.Release()
	restored := newFSM(t)
	require.NoError(t, restored.Restore(io.NopCloser(&stored)))
	for _, log := range logs[3:] {
		assert.Nil(t, restored.Apply(log))
	}
	assert.Equal(t, "123", restored.get("before")+restored.get("small")+restored.get("after"))
	assert.Equal(t, digest(leader.replica.Load()), digest(restored.replica.Load()))
}

// TestALargeChangeCostsNoElection makes a change that takes many entries of the log.
func TestALargeChangeCostsNoElection(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	_, p := tr.leading()
	tx := p.Engine.NewTx()
	tx.BeginAll(p.Clock.Now(), 0, true)
	value := bytes.Repeat([]byte("x"), 8<<20)
	for i := range 2 {
		tx.Set(p.Engine.Key([]byte{byte(i)}), value, engine.SetMode{})
	}
	pos := tx.End()
	require.NoError(t, p.Wait(pos))
	tr.alike()
	select {
	case <-p.Ended():
		t.Error("the leadership has ended")
	default:
	}
}

// A call behind a large record is not held until that is committed, and the replica goes on
// leading.
func TestACallWaitsForALimitedTime(t *testing.T) {
	f := newFSM(t)
	p := f.lead(5)
	p.most = time.Millisecond
	large(p)
	assert.Equal(t, ErrUnknown, p.Wait(0))
	p.most = time.Minute
	outcome := p.Ask()
	for list := p.take(nil); len(list) > 0; list = p.take(nil) {
		for _, b := range list {
			p.applied(b, nil)
		}
	}
	assert.NoError(t, outcome())
	assert.True(t, p.Leads())
	assert.NoError(t, p.why())
}
