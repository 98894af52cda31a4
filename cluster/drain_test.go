package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// drains calls Drain, and checks that the node leads nothing when it returns.
func (f *fleet) drains(i int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	require.NoError(f.t, f.nodes[i].Drain(ctx, "a test"))
	require.Empty(f.t, f.nodes[i].led())
	require.True(f.t, f.nodes[i].Drained())
}

func TestADrainedNodeLeadsNothingUntilItIsStartedAgain(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	f.ledAsPlaced()
	f.drains(0)
	f.stable()
	f.ready(0) // it has the data, and votes
	for number := range f.nodes[0].Map().Groups() {
		f.eventually("another node leads", func() error {
			if l := f.nodes[1].Leader(number); l == nil || l.Name == "a" {
				return fmt.Errorf("group %d: %v", number, l)
			}
			return nil
		})
	}
	f.drains(0) // again: it has nothing to do
	f.stop(0)
	require.NoError(t, f.start(0))
	f.ledAsPlaced()
	assert.False(t, f.nodes[0].Drained())
}

// A drained node that is elected, as no other can be, hands over when one can.
func TestADrainedNodeThatIsElectedHandsOver(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	f.ledAsPlaced()
	f.drains(0)
	f.stable()
	f.nodes[0].Group(0).CallElection()
	f.eventually("it was elected", func() error {
		if f.nodes[0].Group(0).Figures().ElectionsWon == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	f.eventually("another node leads all groups", func() error {
		if led := f.nodes[0].led(); len(led) > 0 {
			return fmt.Errorf("it leads %v", led)
		}
		return nil
	})
}

func TestDrainNamesTheGroupsThatNobodyTakes(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	f.ledAsPlaced()
	f.drains(0)
	f.drains(1)
	f.stable()
	f.eventually("the third node leads all groups", func() error {
		if led := f.nodes[2].led(); len(led) != f.nodes[2].Map().Groups() {
			return fmt.Errorf("it leads %v", led)
		}
		return nil
	})
	// those that were drained do not take them
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := f.nodes[2].Drain(ctx, "a test")
	failed, ok := errors.AsType[*NotHandedOverError](err)
	require.True(t, ok)
	assert.Len(t, failed.Reasons, f.nodes[2].Map().Groups())
	assert.ErrorContains(t, err, "groups [0 1 2 3]")
	assert.ErrorContains(t, err, errNoTaker.Error())
	f.serve(-1)
	// it goes on trying
	f.stop(0)
	require.NoError(t, f.start(0))
	f.eventually("the node that was started leads all groups", func() error {
		if led := f.nodes[2].led(); len(led) > 0 {
			return fmt.Errorf("it leads %v", led)
		}
		return nil
	})
}

func TestDrainOfANodeWithoutOthersThatStore(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	f, hangs := newHangingFleet(t)
	f.ledAsPlaced()
	led := f.nodes[0].led()
	require.NotEmpty(t, led)
	// one of the others hangs: the third gets everything
	hangs[1].Lock()
	f.drains(0)
	f.serve(1)
	hangs[1].Unlock()
}

// A node whose own disk hangs gives its groups up, at the latest after Options.Patience.
func TestDrainWithAHungDisk(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	f, hangs := newHangingFleet(t)
	f.ledAsPlaced()
	hangs[0].Lock()
	defer hangs[0].Unlock()
	f.drains(0)
	f.serve(0)
}
