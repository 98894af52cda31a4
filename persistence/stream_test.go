package persistence

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/effect"
	"rlserver/engine/object"
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

func TestReadCallReturnsWhatAppendCallWrote(t *testing.T) {
	effects := []effect.Effect{{Kind: effect.Delete, Key: effect.Key{Name: []byte("k")}}}
	b := AppendCall(nil, 7, effects)
	at, got, size, err := ReadCall(nil, append(b, "more"...))
	require.NoError(t, err)
	assert.Equal(t, int64(7), at)
	assert.Equal(t, len(b), size)
	assert.Equal(t, effects, got)

	_, _, _, err = ReadCall(nil, b[:len(b)-1])
	assert.ErrorIs(t, err, ErrShort)
	_, _, _, err = ReadCall(nil, appendMark(nil, recordEnd, 7, 1))
	assert.ErrorContains(t, err, "record of kind 3")
}
