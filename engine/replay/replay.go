// Package replay divides effects that are applied again into parts, on different shards, which are
// applied at the same time: a start reads many effects of many keys.
package replay

import (
	"runtime"
	"sync"

	"rlserver/engine/effect"
)

const (
	minEffects = 512 // which take much longer to apply than goroutines take to begin
	maxParts   = 4
)

// Parts returns in how many parts effects may be applied: in one if they are few, or if one of them
// has to come after all that are before it, as it changes several keys.
func Parts(effects []effect.Effect, shards int) int {
	if len(effects) < minEffects {
		return 1
	}
	for i := range effects {
		if k := effects[i].Kind; k.HasTo() || !k.ChangesKey() {
			return 1
		}
	}
	return min(runtime.GOMAXPROCS(0), shards, maxParts)
}

// MaxGroup is how many effects are applied together, see engine.Tx.Prefetch.
const MaxGroup = 16

// Apply applies effects in so many parts at the same time, each in order: a part has those whose
// shards, of which shard returns the number, have the same remainder. apply applies some of them,
// at most MaxGroup, and returns how many come before one that does not fit, with an error, or the
// length of the group. Apply returns the first such error of all effects, and how many are before
// it.
func Apply(
	effects []effect.Effect, parts int, shard func(*effect.Effect) int,
	apply func(group []*effect.Effect) (applied int, err error),
) (applied int, err error) {
	if parts == 1 {
		return applyPart(effects, func(*effect.Effect) bool { return true }, apply)
	}
	applied = len(effects)
	var mu sync.Mutex
	var all sync.WaitGroup
	for part := range parts {
		all.Go(func() {
			n, failed := applyPart(effects, func(f *effect.Effect) bool { return shard(f)%parts == part }, apply)
			mu.Lock()
			defer mu.Unlock()
			if n < applied {
				applied, err = n, failed
			}
		})
	}
	all.Wait()
	return applied, err
}

// applyPart applies the effects for which has returns true. It returns the number of all effects
// before one that does not fit, or of all.
func applyPart(
	effects []effect.Effect, has func(*effect.Effect) bool, apply func([]*effect.Effect) (int, error),
) (applied int, err error) {
	var group [MaxGroup]*effect.Effect
	var at [MaxGroup]int
	for next := 0; next < len(effects); {
		n := 0
		for ; next < len(effects) && n < MaxGroup; next++ {
			if f := &effects[next]; has(f) {
				group[n], at[n] = f, next
				n++
			}
		}
		if done, err := apply(group[:n]); err != nil {
			return at[done], err
		}
	}
	return len(effects), nil
}
