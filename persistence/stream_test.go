package persistence

import (
	"bytes"
	"errors"
	"hash/crc32"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/internal/largecopy"
)

// stateStream returns an engine with some keys, and the stream of its state.
func stateStream(t *testing.T) (*engine.Engine, []byte) {
	t.Helper()
	e := engine.New(engine.Options{})
	effects := []effect.Effect{{Kind: effect.String, Key: effect.Key{Name: []byte("a")}, Value: []byte("1")}}
	for i := range 300 {
		effects = append(effects, effect.Effect{
			Kind: effect.Add, Key: effect.Key{Name: []byte("z")}, Field: []byte{byte(i), byte(i >> 8)},
			Score: float64(i),
		})
	}
	require.NoError(t, e.Apply(1000, effects))
	s := e.Snapshot(func() {})
	defer s.Close()
	var out bytes.Buffer
	require.NoError(t, WriteState(&out, s, 1000, func() error { return nil }))
	return e, out.Bytes()
}

func digestAll(e *engine.Engine) object.Digest {
	tx := e.NewTx()
	tx.BeginAll(1000, 0, false)
	defer tx.End()
	return tx.DigestAll()
}

func TestStreamRestoresState(t *testing.T) {
	e, stream := stateStream(t)
	other := engine.New(engine.Options{})
	require.NoError(t, ReadState("stream", bytes.NewReader(stream), other))
	assert.Equal(t, digestAll(e), digestAll(other))
}

func TestReadStateRefusesCutStream(t *testing.T) {
	_, stream := stateStream(t)
	for size := range stream {
		assert.Error(
			t,
			ReadState("stream", bytes.NewReader(stream[:size]), engine.New(engine.Options{})),
			"%d bytes",
			size,
		)
	}
}

func TestCallReaderAppliesWhatAppendCallWrote(t *testing.T) {
	for _, count := range []int{0, 1, engine.MaxPrefetched, maxPiece, 3*maxPiece + 1} {
		var effects, got []effect.Effect
		for i := range count {
			effects = append(effects, effect.Effect{
				Kind: effect.Delete, Key: effect.Key{Name: []byte(strconv.Itoa(i))},
			})
		}
		apply := func(at int64, piece []effect.Effect) error {
			assert.Equal(t, int64(7), at)
			got = append(got, piece...)
			return nil
		}
		b := AppendCall(nil, 7, effect.AppendAll(nil, effects))
		var reader CallReader
		size, err := reader.Read(append(b, "more"...), apply)
		require.NoError(t, err)
		require.NoError(t, reader.Flush(apply))
		assert.Equal(t, len(b), size)
		assert.Equal(t, effects, got)
		size, err = reader.Read(b, nil)
		require.NoError(t, err)
		assert.Equal(t, len(b), size)
		_, err = reader.Read(b[:len(b)-1], nil)
		assert.ErrorIs(t, err, ErrShort)
	}
}

// Small calls are applied together, in order, at the latest of their times.
func TestCallReaderAppliesSeveralCallsAtOnce(t *testing.T) {
	const calls = engine.MaxPrefetched + 3
	var reader CallReader
	var names []string
	var times []int64
	apply := func(at int64, effects []effect.Effect) error {
		times = append(times, at)
		for _, f := range effects {
			names = append(names, string(f.Key.Name))
		}
		return nil
	}
	var want []string
	for i := range calls {
		name := strconv.Itoa(i)
		effects := []effect.Effect{{Kind: effect.Delete, Key: effect.Key{Name: []byte(name)}}}
		b := AppendCall(nil, int64(100+i), effect.AppendAll(nil, effects))
		to := apply
		if i == 1 {
			to = nil
		} else {
			want = append(want, name)
		}
		_, err := reader.Read(b, to)
		require.NoError(t, err)
	}
	assert.Len(t, names, engine.MaxPrefetched)
	require.NoError(t, reader.Flush(apply))
	require.NoError(t, reader.Flush(apply))
	assert.Equal(t, want, names)
	assert.Equal(t, []int64{100 + engine.MaxPrefetched, 100 + calls - 1}, times)
}

func TestCallReaderReturnsErrors(t *testing.T) {
	var reader CallReader
	ignore := func(int64, []effect.Effect) error { return nil }
	_, err := reader.Read(appendMark(nil, recordEnd, 7, 1), ignore)
	assert.ErrorContains(t, err, "record of kind 3")
	_, err = reader.Read(reseal([]byte{byte(recordCall), 0, 200, 0, 0}), ignore)
	assert.ErrorContains(t, err, "unknown kind 200")
	refused := errors.New("refused")
	refuse := func(int64, []effect.Effect) error { return refused }
	b := AppendCall(nil, 7, effect.Append(nil, &effect.Effect{Kind: effect.Delete, Key: effect.Key{Name: []byte("k")}}))
	_, err = reader.Read(b, refuse)
	require.NoError(t, err)
	assert.ErrorIs(t, reader.Flush(refuse), refused)
	assert.NoError(t, reader.Flush(refuse), "nothing is left")
	for range engine.MaxPrefetched {
		_, err = reader.Read(b, refuse)
	}
	assert.ErrorIs(t, err, refused)
}

// What precedes an error in a large call is applied: the state cannot be used any more.
func TestCallReaderHasAppliedPiecesBeforeAnError(t *testing.T) {
	var reader CallReader
	applied := 0
	apply := func(_ int64, effects []effect.Effect) error {
		applied += len(effects)
		return nil
	}
	effects := make([]effect.Effect, maxPiece+1)
	for i := range effects {
		effects[i] = effect.Effect{Kind: effect.Delete, Key: effect.Key{Name: []byte("k")}}
	}
	payload := AppendCall(nil, 7, effect.AppendAll(nil, effects))[headerSize:]
	_, err := reader.Read(reseal(append(payload, 200, 0, 0)), apply)
	assert.ErrorContains(t, err, "unknown kind 200")
	require.NoError(t, reader.Flush(apply))
	assert.Equal(t, maxPiece, applied)
}

func TestAChecksumInPiecesIsTheSame(t *testing.T) {
	b := bytes.Repeat([]byte("0123456"), 400_000)
	for _, n := range []int{0, 1, largecopy.Piece, largecopy.Piece + 1, len(b)} {
		assert.Equal(t, crc32.Checksum(b[:n], castagnoli), checksum(0, b[:n]), n)
	}
	record := AppendCall(
		nil,
		7,
		effect.Append(nil, &effect.Effect{Kind: effect.String, Key: effect.Key{Name: []byte("k")}, Value: b}),
	)
	assert.Equal(t, len(record), SizeOfCall(record[:headerSize]))
	assert.Zero(t, SizeOfCall(record[:headerSize-1]))
}

func TestCallReaderKeepsLittleMemory(t *testing.T) {
	effects := make([]effect.Effect, 100_000)
	for i := range effects {
		effects[i] = effect.Effect{Kind: effect.Delete, Key: effect.Key{Name: []byte("k")}}
	}
	var reader CallReader
	call := AppendCall(nil, 7, effect.AppendAll(nil, effects))
	_, err := reader.Read(call, func(int64, []effect.Effect) error { return nil })
	require.NoError(t, err)
	assert.LessOrEqual(t, cap(reader.effects), 2*maxPiece)
}
