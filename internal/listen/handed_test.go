package listen

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHandedConnectionsAreAccepted(t *testing.T) {
	h := NewHanded(&net.UnixAddr{Name: "here"})
	assert.Equal(t, "here", h.Addr().String())
	ours, theirs := net.Pipe()
	defer ours.Close()
	failed := make(chan error, 1)
	go func() { failed <- h.Hand(t.Context(), theirs) }()
	conn, err := h.Accept()
	require.NoError(t, err)
	assert.Same(t, theirs, conn)
	assert.NoError(t, <-failed)

	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("it takes too long"))
	assert.EqualError(t, h.Hand(ended, theirs), "it takes too long")
	require.NoError(t, h.Close())
	require.NoError(t, h.Close())
	assert.ErrorIs(t, h.Hand(t.Context(), theirs), net.ErrClosed)
	_, err = h.Accept()
	assert.ErrorIs(t, err, net.ErrClosed)
}
