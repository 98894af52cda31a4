package dict

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An entry that exists throughout a scan is visited exactly once, and no entry is visited that
// never existed, although the Dict grows and shrinks between the calls.
func TestScanVisitsEachEntryOnceDuringChanges(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			r := seeded(t)
			for range 40 {
				scanUnderChange(t, r, hash)
			}
		})
	}
}

func scanUnderChange(t *testing.T, r *rand.Rand, hash func(uint64) uint64) {
	const stay, passing = 300, 3000 // keys below stay are not changed
	d, there := newTable(hash), map[uint64]bool{}
	for key := range uint64(stay) {
		d.insert(key)
	}
	everThere, seen := map[uint64]bool{}, map[uint64]int{}
	change := func() {
		drain := r.IntN(2) == 0
		for range r.IntN(600) {
			key := stay + r.Uint64N(passing)
			switch {
			case there[key]:
				require.True(t, d.remove(key))
				delete(there, key)
			case !drain:
				d.insert(key)
				there[key], everThere[key] = true, true
			}
		}
		if drain {
			for key := range there {
				require.True(t, d.remove(key))
			}
			clear(there)
		}
	}
	change()
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		cursor = d.Scan(cursor, r.IntN(40), func(i item) { seen[i.key]++ })
		require.Less(t, cursor, uint64(prefixes))
		change()
		require.NoError(t, d.check())
	}
	for key := range uint64(stay) {
		require.Equal(t, 1, seen[key], "key %d", key)
	}
	for key := range seen {
		require.True(t, key < stay || everThere[key], "key %d was never there", key)
	}
}

func TestScanOfEmptyDictAndInvalidCursor(t *testing.T) {
	d := newTable(sip)
	none := func(item) { t.Error("visited an entry") }
	assert.Zero(t, d.Scan(0, 10, none), "empty")
	for key := range uint64(100) {
		d.insert(key)
	}
	assert.Zero(t, d.Scan(1<<32, 10, none), "beyond the last cursor")
	assert.Zero(t, d.Scan(^uint64(0), 10, none))

	n := 0
	assert.Zero(t, d.Scan(0, 100, func(item) { n++ }))
	assert.Equal(t, 100, n)

	n = 0
	next := d.Scan(0, 0, func(item) { n++ })
	assert.NotZero(t, next)
	assert.NotZero(t, n, "no less than a bucket")
}

// All entries have the same probability. With a fixed seed the statistic is a fixed number; the
// bound is its 99.9th percentile if they have.
func TestRandomIsUniform(t *testing.T) {
	for name, hash := range hashes {
		d := newTable(hash)
		const kept, draws = 200, 100 * 200
		for key := range uint64(2 * kept) {
			d.insert(key)
		}
		for key := uint64(kept); key < 2*kept; key++ {
			d.remove(key)
		}
		r, seen := rand.New(rand.NewPCG(4, 2)), [kept]float64{}
		for range draws {
			i, _ := d.Random(r)
			seen[i.key]++
		}
		chi2, expected := 0.0, float64(draws)/kept
		for _, n := range seen {
			chi2 += (n - expected) * (n - expected) / expected
		}
		assert.Less(t, chi2, 267.6, "%s: 199 degrees of freedom", name)
	}
}

func TestRandomOfEmptyDict(t *testing.T) {
	_, ok := newTable(sip).Random(rand.New(rand.NewPCG(1, 1)))
	assert.False(t, ok)
}
