package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/rule"
)

// sharingOf returns a sharing of groups with fixed leaders, and the calls that it makes, as text.
func sharingOf(leaders map[int]string, set func(node string, groups []int) []int) (*sharing, func() []string) {
	var mu sync.Mutex
	var calls []string
	s := &sharing{
		leader: func(number int) string {
			mu.Lock()
			defer mu.Unlock()
			return leaders[number]
		},
		set: func(node string, groups []int) []int {
			mu.Lock()
			calls = append(calls, fmt.Sprint(node, groups))
			mu.Unlock()
			return set(node, groups)
		},
	}
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(slices.Values(calls))
	}
}

func allOf(leaders map[int]string) []int { return slices.Sorted(maps.Keys(leaders)) }

func TestEachNodeIsCalledOnceForAllGroupsThatItLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaders := map[int]string{1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}
		s, calls := sharingOf(leaders, func(_ string, groups []int) []int {
			time.Sleep(3 * shareInterval)
			return groups
		})
		assert.Empty(t, s.run(t.Context(), allOf(leaders)))
		assert.Equal(t, []string{"a[1 4]", "b[2 5]", "c[3]"}, calls())
	})
}

func TestGroupsThatHaveNotAgreedAreTriedAgainAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaders := map[int]string{1: "a", 2: "b", 3: "b", 4: ""}
		s, calls := sharingOf(leaders, func(node string, groups []int) []int {
			if node == "b" {
				return groups[:1]
			}
			return nil
		})
		const within = 2*shareInterval + time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		start := time.Now()
		assert.Equal(t, []int{1, 4}, s.run(ctx, allOf(leaders)))
		assert.Equal(t, within, time.Since(start))
		assert.Equal(t, []string{"a[1]", "a[1]", "a[1]", "b[2 3]", "b[3]"}, calls())
	})
}

func TestANodeThatDoesNotAnswerHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaders := map[int]string{1: "a", 2: "b"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		s, calls := sharingOf(leaders, func(node string, groups []int) []int {
			if node == "a" {
				<-ctx.Done()
				return nil
			}
			return groups
		})
		defer cancel()
		start := time.Now()
		assert.Equal(t, []int{1}, s.run(ctx, allOf(leaders)))
		assert.Equal(t, time.Minute, time.Since(start))
		assert.Equal(t, []string{"a[1]", "b[2]"}, calls())
	})
}

// A list of policies that was read before a group got its present leader may arrive late: the
// former leader may have agreed on a newer one, which was acknowledged.
func TestANewLeaderTakesNoOlderPolicies(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	tries := 0
	f.eventually("a policy is shared, and the group moves", func() error {
		tries++
		return f.movesAfterSharing(fmt.Sprint("p", tries))
	})
}

func (f *fleet) movesAfterSharing(name string) error {
	first, from, to := f.leaderOf(0), f.leaderOf(1), (*Node)(nil)
	if first == nil || from == nil {
		return fmt.Errorf("no leader")
	}
	for _, n := range f.nodes {
		if n != from {
			to = n
		}
	}
	older, _ := first.ownPolicies()
	p, err := first.Group(0).Leading()
	if err != nil {
		return err
	}
	parsed, err := rule.ParsePolicy([]byte(name), [][]byte{[]byte("SLIDE"), []byte("5"), []byte("1m")})
	require.NoError(f.t, err)
	p.Engine.SetPolicies(p.Clock.Now(), []*engine.Policy{engine.NewPolicy(parsed)})
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	if missing := first.SharePolicies(ctx); len(missing) > 0 {
		return fmt.Errorf("groups %v do not have it", missing)
	}
	if err := from.Group(1).HandOver(ctx, "a test", to.Name()); err != nil {
		return err
	}
	if _, err := to.Group(1).Await(ctx); err != nil {
		return err
	}
	to.copying.Lock()
	to.copied = Order{} // it has not heard of the newer list
	to.copying.Unlock()
	to.copyPolicies(older)
	p, err = to.Group(1).Leading()
	if err != nil {
		return err
	}
	require.NotNil(f.t, p.Engine.Policy(name))
	return nil
}

// leaderOf returns the node that leads a group; nil: none does.
func (f *fleet) leaderOf(number int) *Node {
	for _, n := range f.nodes {
		if n == nil {
			continue
		}
		if g := n.Group(number); g != nil && g.Status().Leads {
			return n
		}
	}
	return nil
}
