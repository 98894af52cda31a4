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

func TestGroupsThatHaveNotDoneItAreTriedAgainAfterAPause(t *testing.T) {
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
