package dict

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A full round of sweeping finds exactly what is due, with any step, while entries are inserted and
// removed and get new deadlines between the calls.
func TestSweepFindsDueEntries(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) { sweepAll(t, hash) })
	}
}

func sweepAll(t *testing.T, hash func(uint64) uint64) {
	r, d, due := seeded(t), newTable(hash), map[uint64]int64{}
	for now := int64(0); now < 60; now++ {
		for range r.IntN(300) {
			key := r.Uint64N(2000)
			if _, ok := due[key]; ok && r.IntN(2) == 0 {
				require.True(t, d.remove(key))
				delete(due, key)
				continue
			} else if !ok {
				d.insert(key)
			}
			due[key] = math.MaxInt64
			if r.IntN(3) > 0 {
				due[key] = now + r.Int64N(40)
			}
			d.Mark(d.hash(key), due[key])
		}
		dropped := sweepOnce(d, now, 1+r.IntN(100), due)
		for key := range dropped {
			require.LessOrEqual(t, due[key], now)
			delete(due, key)
		}
		for key, at := range due {
			require.Greater(t, at, now, "key %d was missed", key)
		}
		require.Equal(t, len(due), d.Len())
		require.NoError(t, d.check())
	}
	sweepOnce(d, latest+1, 10, map[uint64]int64{})
	require.Zero(t, d.Len())
	require.NoError(t, d.check())
}

func sweepOnce(d table, now int64, pace int, due map[uint64]int64) (dropped map[uint64]bool) {
	dropped = map[uint64]bool{}
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		cursor, _ = d.Sweep(cursor, now, pace, func(i item) (int64, bool) {
			dropped[i.key] = dropped[i.key] || due[i.key] <= now
			return due[i.key], due[i.key] <= now
		})
	}
	for key, was := range dropped {
		if !was {
			delete(dropped, key)
		}
	}
	return dropped
}

func TestSweepSkipsBucketsThatAreNotDue(t *testing.T) {
	d := newTable(sip)
	for key := range uint64(1000) {
		d.insert(key)
	}
	d.Mark(d.hash(7), 50)
	never := func(item) (int64, bool) { return math.MaxInt64, false }

	next, visited := d.Sweep(0, 49, math.MaxInt, never)
	assert.Zero(t, next)
	assert.Zero(t, visited)

	_, visited = d.Sweep(0, 50, math.MaxInt, never)
	assert.Greater(t, visited, 0)
	assert.LessOrEqual(t, visited, slots)

	_, visited = d.Sweep(0, 50, math.MaxInt, never)
	assert.Zero(t, visited, "the mark was recomputed")
}

func TestSweepVisitsAtMostMaxBuckets(t *testing.T) {
	d := newTable(sip)
	for key := range uint64(1000) {
		d.insert(key)
	}
	steps, next := 0, uint64(0)
	for first := true; first || next != 0; first = false {
		next, _ = d.Sweep(next, 0, 1, func(item) (int64, bool) { return 0, false })
		steps++
	}
	assert.Greater(t, steps, 1000/slots)

	next, visited := d.Sweep(0, 0, 0, nil)
	assert.Zero(t, next)
	assert.Zero(t, visited)
	next, _ = d.Sweep(1<<32, 0, 10, nil)
	assert.Zero(t, next, "beyond the last cursor")
}

// Each entry of a chain is visited once, whichever of them are removed.
func TestSweepVisitsAChainOnce(t *testing.T) {
	r := seeded(t)
	for range 200 {
		d, seen := newTable(hashes["equal"]), map[uint64]int{}
		n := 1 + r.Uint64N(100)
		for key := range n {
			d.insert(key)
		}
		d.Mark(d.hash(0), 0)
		chance, left := r.IntN(101), 0
		_, visited := d.Sweep(0, 0, math.MaxInt, func(i item) (int64, bool) {
			seen[i.key]++
			drop := r.IntN(100) < chance
			if !drop {
				left++
			}
			return 1, drop
		})
		require.EqualValues(t, n, visited)
		require.Len(t, seen, int(n))
		require.Equal(t, left, d.Len())
		require.NoError(t, d.check())
	}
}
