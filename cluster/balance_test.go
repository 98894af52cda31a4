package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What was handed over by an order stays there, until the node that did so is started again.
func TestAnOrderIsNotUndone(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	f.ledAsPlaced()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, f.nodes[0].HandOver(ctx, "a test"))
	f.stable()
	// in which it would be undone, after a tick of the group
	time.Sleep(time.Second + 2*balanceAfter*f.options[0].balanceInterval)
	for number := range f.nodes[0].Map().Groups() {
		if leader := f.nodes[1].Leader(number); assert.NotNil(t, leader) {
			assert.NotEqual(t, "a", leader.Name)
		}
	}
	f.stop(0)
	require.NoError(t, f.start(0))
	f.ledAsPlaced()
}
