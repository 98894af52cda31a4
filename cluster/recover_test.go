package cluster

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// brief is a timeout for a node that looks for others in vain. As the only one of its cluster it
// needs no other.
const brief = 200 * time.Millisecond

// TestOneNodeGoesOnAlone loses two of three nodes for ever.
func TestOneNodeGoesOnAlone(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	l := f.load()
	l.goesOn()
	l.end()
	old := f.nodes[0].Map().ID
	for i := range f.nodes {
		f.stop(i)
	}
	f.options[0].ForceRecover, f.options[0].Timeout = true, brief
	require.NoError(t, f.start(0))
	f.options[0].Timeout = calm
	assert.Contains(t, f.log.get(), "FORCED RECOVERY: this node goes on alone")
	f.stable()
	m := f.nodes[0].Map()
	assert.NotEqual(t, old, m.ID)
	assert.Equal(t, []string{"a"}, m.Replicas[0])

	// it has what was admitted, and goes on
	l = &load{f: f, stop: make(chan struct{})}
	l.update()
	f.eventually("calls are served", func() error {
		for range loadKeys {
			l.call(int(l.total.Load()))
		}
		if n := l.total.Load(); n < 100 {
			return fmt.Errorf("%d calls", n)
		}
		return nil
	})

	// the option is used once, and the others are refused
	f.stop(0)
	require.NoError(t, f.start(0))
	assert.Contains(t, f.log.get(), "--force-recover has no effect: it was used already")
	f.stable()
	assert.Equal(t, m.ID, f.nodes[0].Map().ID)
	require.NoError(t, f.start(1))
	testLogged(f, "belongs to another cluster")
	f.stop(1)

	// without their directories they join
	for i := 1; i < 3; i++ {
		require.NoError(t, os.RemoveAll(f.options[i].Dir))
		require.NoError(t, f.start(i))
	}
	f.matches("a", "b", "c")
	f.stop(0)
	f.options[0].ForceRecover = false
	require.NoError(t, f.start(0))
	f.matches("a", "b", "c")

	// while a majority is there, it has no effect
	f.stop(0)
	f.options[0].ForceRecover = true
	require.NoError(t, f.start(0))
	assert.Contains(t, f.log.get(), "--force-recover has no effect: a majority of the nodes is there")
	f.matches("a", "b", "c")
}

// TestARecoveredNodeBeginsGroupsAnewThatItDoesNotHave also shows that the policies are kept.
func TestARecoveredNodeBeginsGroupsAnewThatItDoesNotHave(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 4)
	f.changePolicies("login SLIDE 4 1m")
	f.changePolicies("login SLIDE 5 1m") // so that groups have noted a later version than the first
	alone := 3                           // the groups are on a b c, b c d, c d a, d a b
	require.Nil(t, f.nodes[alone].Group(0))
	f.eventually("it has what is committed", func() error {
		for number := 1; number < 4; number++ {
			leader := f.nodes[alone].Leader(number)
			if leader == nil {
				return fmt.Errorf("group %d has no leader", number)
			}
			committed := f.nodes[leader.Name[0]-'a'].Group(number).Status().Committed
			if applied := f.nodes[alone].Group(number).Status().Applied; applied < committed {
				return fmt.Errorf("group %d: %d of %d", number, applied, committed)
			}
		}
		return nil
	})
	for i := range f.nodes {
		f.stop(i)
	}
	f.options[alone].ForceRecover, f.options[alone].Timeout = true, brief
	require.NoError(t, f.start(alone))
	assert.Contains(t, f.log.get(), "ALL ITS KEYS ARE LOST")
	f.stable()
	f.eventually("all groups have the policy", func() error {
		for number, g := range f.nodes[alone].groups() {
			p, err := g.Leading()
			if err == nil {
				err = checkPolicy(p, "login")
			}
			if err != nil {
				return fmt.Errorf("group %d: %w", number, err)
			}
		}
		return nil
	})
}

func TestNothingIsRecoveredWithoutData(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, func(_ int, o *Options) { o.ForceRecover = true })
	assert.ErrorContains(t, f.start(0), "has no data of a cluster")
}

// TestARecoveryThatIsInterruptedGoesOn ends the node after each step of the recovery, once.
func TestARecoveryThatIsInterruptedGoesOn(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	before := f.load()
	before.goesOn()
	before.end()
	f.caughtUp(0)
	groups := f.nodes[0].Map().Groups()
	for i := range f.nodes {
		f.stop(i)
	}
	f.options[0].Timeout = brief
	ended := errors.New("the process has ended")
	var id string
	for last := range groups + 1 {
		f.options[0].ForceRecover = last == 0 // later starts go on with it by themselves
		done := 0
		f.options[0].recovery = func() error {
			if done++; done > last {
				return ended
			}
			return nil
		}
		require.ErrorIs(t, f.start(0), ended)
		state, err := loadState(f.options[0].Dir)
		require.NoError(t, err)
		assert.True(t, state.Recovering)
		if last == 0 {
			id = state.Map.ID
		}
		assert.Equal(t, id, state.Map.ID, "it is one recovery")
	}
	f.options[0].recovery = nil
	require.NoError(t, f.start(0))
	f.stable()
	assert.Equal(t, id, f.nodes[0].Map().ID)
	after := f.load()
	for key := range before.admitted {
		after.admitted[key].Add(before.admitted[key].Load())
	}
	after.conserved()
}
