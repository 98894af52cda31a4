package cluster

import (
	"context"
	"slices"
	"time"
)

// sharing has the leaders of groups do something, by one call to each node with all groups that it
// leads.
type sharing struct {
	leader func(number int) (node string)               // "": none is known
	set    func(node string, groups []int) (done []int) // one call to a node
}

// shareInterval is the time between attempts to reach the groups that are not done.
const shareInterval = 50 * time.Millisecond

// run returns when all groups are done, or when the context ends. It returns those that are not.
func (s *sharing) run(ctx context.Context, missing []int) []int {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type answer struct {
		node string
		done []int
	}
	answers, called := make(chan answer), make(map[string]bool)
	tries := time.NewTicker(shareInterval)
	defer tries.Stop()
	call := func() {
		led := make(map[string][]int)
		for _, number := range missing {
			if node := s.leader(number); node != "" {
				led[node] = append(led[node], number)
			}
		}
		for node, groups := range led {
			if called[node] {
				continue // it has not answered yet
			}
			called[node] = true
			go func() {
				select {
				case answers <- answer{node, s.set(node, groups)}:
				case <-ctx.Done():
				}
			}()
		}
	}
	for call(); len(missing) > 0 && ctx.Err() == nil; {
		select {
		case a := <-answers:
			called[a.node] = false
			missing = slices.DeleteFunc(missing, func(number int) bool { return slices.Contains(a.done, number) })
		case <-tries.C:
			call()
		case <-ctx.Done():
		}
	}
	return missing
}
