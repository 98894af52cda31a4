package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/group"
	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/engine/overrides"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
)

// changePolicies makes these the policies, given as their names and definitions.
func (f *fleet) changePolicies(policies ...string) {
	f.t.Helper()
	f.eventually("the policies are changed", func() error {
		n := f.leaderOf(0)
		if n == nil {
			return ErrNoMajority
		}
		ctx, cancel := context.WithTimeout(f.t.Context(), patience)
		defer cancel()
		missing, _, err := n.ChangePolicies(ctx, func(definitions map[string]string) bool {
			clear(definitions)
			for _, p := range policies {
				name, definition, _ := strings.Cut(p, " ")
				definitions[name] = definition
			}
			return true
		})
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("groups %v do not use them", missing)
		}
		return err
	})
}

// havePolicies returns an error unless the leaders of all groups use the policies of these names.
func (f *fleet) havePolicies(names ...string) error {
	for number := range f.nodes[0].Map().Groups() {
		n := f.leaderOf(number)
		if n == nil {
			return fmt.Errorf("group %d has no leader", number)
		}
		p, err := n.Group(number).Leading()
		if err != nil {
			return err
		}
		have := []string{}
		for _, policy := range p.Engine.Policies() {
			have = append(have, policy.Name())
		}
		if strings.Join(have, " ") != strings.Join(names, " ") {
			return fmt.Errorf("group %d on node %s has the policies %q", number, n.Name(), have)
		}
	}
	return nil
}

// When a change returns, the leaders of all groups use it, and calls that wait are retried. An
// older map that arrives later takes nothing back. An empty list is one, too.
func TestChangedPoliciesAreUsedByAllGroups(t *testing.T) {
	t.Parallel()
	var retried atomic.Int64
	f := newFleet(t, 3, func(_ int, o *Options) {
		o.PoliciesChanged = func() { retried.Add(1) }
	})
	f.startAll()
	f.stable()
	older := f.nodes[0].Map()
	f.changePolicies("day FIXED 9 1d", "login SLIDE 5 1m")
	for _, n := range f.nodes {
		n.follow(older)
		n.follow(f.nodes[0].Map())
	}
	// again, after a change of leaders in between
	f.eventually("all groups have them", func() error { return f.havePolicies("day", "login") })
	f.eventually("waiting calls were retried on all nodes", func() error {
		if retried.Load() < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	versions := make(map[string]bool)
	for _, n := range f.nodes {
		versions[n.Map().policiesVersion()] = true
	}
	assert.Len(t, versions, 1)
	f.changePolicies()
	f.eventually("they are deleted", func() error { return f.havePolicies() })
	assert.Equal(t, "0", f.nodes[1].Map().policiesVersion())
}

// A change that nobody needs to know about waits for no group, and others no longer than they may.
func TestSharingPoliciesEndsWithTheContext(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 1)
	n := f.nodes[0]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	set := func(definitions map[string]string) bool {
		definitions["login"] = "SLIDE 5 1m"
		return true
	}
	missing, _, err := n.ChangePolicies(ctx, set)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2, 3}, missing)
	missing, _, err = n.ChangePolicies(ctx, func(definitions map[string]string) bool {
		assert.Equal(t, map[string]string{"login": "SLIDE 5 1m"}, definitions)
		return false
	})
	require.NoError(t, err)
	assert.Empty(t, missing)
	missing, _, err = n.ChangePolicies(t.Context(), set)
	require.NoError(t, err)
	assert.Empty(t, missing)
	require.NoError(t, f.havePolicies("login"))
	_, refused, err := n.ChangePolicies(t.Context(), func(definitions map[string]string) bool {
		definitions["long"] = strings.Repeat("x", policy.MaxBytes)
		return true
	})
	assert.True(t, refused)
	assert.EqualError(t, err, "ERR the policies of a cluster may take 4194304 bytes together, and would take 4194323")
	assert.Equal(t, map[string]string{"login": "SLIDE 5 1m"}, n.Map().Policies)
}

// A node that was cut off while a policy was changed does not lead a group with the former one.
func TestANewLeaderUsesNoOlderPolicies(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	tries := 0
	f.eventually("a policy is changed, and a group moves to a node that has not heard of it", func() error {
		tries++
		return f.movesToWhoHasNotHeard(fmt.Sprint("p", tries))
	})
}

func (f *fleet) movesToWhoHasNotHeard(name string) error {
	first, from := f.leaderOf(0), f.leaderOf(1)
	if first == nil || from == nil {
		return errors.New("no leader")
	}
	var to *Node
	for _, n := range f.nodes {
		if n != from && n != first {
			to = n
		}
	}
	for number := range first.Map().Groups() {
		if f.leaderOf(number) == to { // the change would wait for it
			ctx, cancel := context.WithTimeout(f.t.Context(), patience)
			defer cancel()
			if err := to.Group(number).HandOver(ctx, "a test", from.Name()); err != nil {
				return err
			}
		}
	}
	to.adopting.Lock() // it takes over no map
	hears := func() { to.adopting.Unlock() }
	defer func() { hears() }()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
	defer cancel()
	missing, _, err := first.ChangePolicies(ctx, func(definitions map[string]string) bool {
		definitions[name] = "SLIDE 5 1m"
		return true
	})
	if err != nil || len(missing) > 0 {
		return fmt.Errorf("groups %v do not have it: %w", missing, err)
	}
	if err := from.Group(1).HandOver(ctx, "a test", to.Name()); err != nil {
		return err
	}
	var p *group.Partition
	for end := time.Now().Add(patience); p == nil; time.Sleep(time.Millisecond) {
		if p, err = to.Group(1).Leading(); err != nil && (err != slot.ErrNoLeader || time.Now().After(end)) {
			return err
		}
	}
	require.Equal(f.t, engine.ErrOldPolicies, checkPolicy(p, name))
	hears()
	hears = func() {}
	f.eventually("it hears of it", func() error { return checkPolicy(p, name) })
	return nil
}

// checkPolicy makes a call against a policy.
func checkPolicy(p *group.Partition, name string) error {
	tx, k := p.Engine.NewTx(), p.Engine.Key([]byte(name+":{ann}"))
	tx.Begin(p.Clock.Now(), 0, []engine.Key{k}, true)
	_, err := tx.Check(engine.CheckCall{Names: [][]byte{[]byte(name)}, Keys: []engine.Key{k}, Costs: []int64{1}})
	pos := tx.End()
	if err != nil {
		return err
	}
	return p.Wait(pos)
}

// As in a rolling upgrade, when a policy has an option that this node does not know.
func TestANodeThatDoesNotKnowAPolicyKeepsItsOverrides(t *testing.T) {
	shared := new(policy.Shared)
	e := engine.New(engine.Options{Policies: shared})
	n := &Node{
		options: Options{Engine: engine.Options{Policies: shared}}, warned: make(map[string]time.Time),
		log: slog.New(slog.DiscardHandler),
	}
	n.takePolicies(&Map{PoliciesVersion: 1, Policies: map[string]string{"p": "SLIDE 1 1h"}})
	d, err := rule.ParsePolicy([]byte("p"), bytes.Fields([]byte("SLIDE 2 1h")))
	require.NoError(t, err)
	require.NoError(t, overrides.Set(e, 1, e.Key([]byte("p:{7}")), []byte("7"), d, 10))
	sweep := func() {
		for s := overrides.NewSweeper(e); s.Step(1); {
		}
	}
	n.takePolicies(&Map{PoliciesVersion: 2, Policies: map[string]string{"p": "SLIDE 1 1h OF-A-LATER-VERSION"}})
	sweep()
	assert.EqualValues(t, 1, e.Overrides().N)
	n.takePolicies(&Map{PoliciesVersion: 3})
	sweep()
	assert.Zero(t, e.Overrides().N)
}
