package dict

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hashes are functions that hash a number, from good to pathological.
var hashes = map[string]func(uint64) uint64{
	"siphash": sip,
	"equal":   func(uint64) uint64 { return 0x0123456789abcdef },
	"few":     func(k uint64) uint64 { return sip(k % 7) },
	"low":     func(k uint64) uint64 { return k },
	"high":    func(k uint64) uint64 { return k << 52 },
	"tagless": func(k uint64) uint64 { return sip(k) &^ (0xff << 24) },
	"shifted": func(k uint64) uint64 { return sip(k) << 12 },
}

func sip(k uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], k)
	return NewHasher(1, 2).Sum(b[:])
}

// item is an entry with a key and a value that distinguishes replacements.
type item struct{ key, version uint64 }

// table is a Dict of items with the hash function of a test.
type table struct {
	*Dict[item]
	hash func(uint64) uint64
}

func newTable(hash func(uint64) uint64) table {
	return table{New(func(i item) uint64 { return hash(i.key) }), hash}
}

func (t table) insert(key uint64) { t.Insert(t.hash(key), item{key: key}) }

func (t table) remove(key uint64) bool {
	_, ok := t.Remove(t.hash(key), func(i item) bool { return i.key == key })
	return ok
}

func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestDictMatchesMap(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) { againstMap(t, hash) })
	}
}

// againstMap grows and shrinks the Dict a few times, from and to empty.
func againstMap(t *testing.T, hash func(uint64) uint64) {
	r, d, model := seeded(t), newTable(hash), map[uint64]uint64{}
	const keys, rounds, steps = 1500, 6, 2500
	for round := range rounds {
		inserts := []int{85, 15}[round%2] // per cent
		for step := range steps {
			key := r.Uint64N(keys)
			is := func(i item) bool { return i.key == key }
			version, known := model[key]
			found, ok := d.Find(hash(key), is)
			if known != ok || ok && found != (item{key, version}) {
				t.Fatalf("key %d: found %v %v, should be %v %v", key, found, ok, version, known)
			}
			switch {
			case r.IntN(100) >= inserts:
				removed, ok := d.Remove(hash(key), is)
				require.Equal(t, known, ok)
				require.Equal(t, found, removed)
				delete(model, key)
			case r.IntN(2) == 0 || !known:
				replaced := d.Replace(hash(key), is, item{key, r.Uint64()})
				require.Equal(t, known, replaced)
				if replaced {
					found, _ = d.Find(hash(key), is)
				} else {
					found = item{key, r.Uint64()}
					d.Insert(hash(key), found)
				}
				model[key] = found.version
			}
			if step%50 == 0 {
				require.Equal(t, len(model), d.Len())
				require.NoError(t, d.check())
			}
		}
		require.Equal(t, model, contents(d))
	}
	for key := range model {
		require.True(t, d.remove(key))
		require.NoError(t, d.check())
	}
	require.Zero(t, d.Len())
	require.Empty(t, contents(d))
}

func contents(d table) map[uint64]uint64 {
	all := map[uint64]uint64{}
	for i := range d.All() {
		all[i.key] = i.version
	}
	return all
}

func TestAllStopsWhenAsked(t *testing.T) {
	d := newTable(sip)
	for key := range uint64(100) {
		d.insert(key)
	}
	n := 0
	for range d.All() {
		if n++; n == 3 {
			break
		}
	}
	assert.Equal(t, 3, n)
}

func TestDirectoryStaysSmall(t *testing.T) {
	for name, hash := range hashes {
		d := newTable(hash)
		for key := range uint64(20000) {
			d.insert(key)
		}
		assert.LessOrEqual(t, len(d.dir), 2*d.Len()/perSlot, name)
		assert.NoError(t, d.check(), name)
	}
}

func TestBucketFillsSizeClass(t *testing.T) {
	assert.EqualValues(t, 288, unsafe.Sizeof(bucket[fmt.Stringer]{}), "a size class of the allocator")
	assert.LessOrEqual(t, unsafe.Sizeof(Dict[fmt.Stringer]{}), uintptr(64))

	d := newTable(sip)
	for key := range uint64(slots) {
		d.insert(key)
	}
	assert.Len(t, d.dir, 1)
	assert.Equal(t, 1, d.dir[0].length())
}

// A shard shifts out the bits of the hash that have chosen it.
func TestFindComparesFewOtherEntries(t *testing.T) {
	for _, name := range []string{"siphash", "shifted"} {
		t.Run(name, func(t *testing.T) {
			d := newTable(hashes[name])
			const n = 10_000
			for key := range uint64(n) {
				d.insert(key)
			}
			looks := 0
			for key := range uint64(n) {
				d.Find(d.hash(key), func(i item) bool {
					looks++
					return i.key == key
				})
			}
			assert.Less(t, looks, n+n/20)
		})
	}
}

// Guess finds nearly all entries that Find finds. For a missing entry it only must not panic.
func TestGuessFindsMostEntries(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			d := newTable(hash)
			assert.Zero(t, d.Guess(hash(1)))
			assert.Zero(t, d.Prefetch(hash(1)))
			const n = 5000
			right := 0
			for key := range uint64(n) {
				d.insert(key)
			}
			for key := range uint64(n) {
				d.Prefetch(hash(key))
				if d.Guess(hash(key)).key == key {
					right++
				}
				d.Guess(hash(key + n))
			}
			if name == "siphash" || name == "shifted" {
				assert.Greater(t, right, n*9/10)
			}
		})
	}
}

func TestMarkBounds(t *testing.T) {
	for _, tt := range []struct{ at, mark int64 }{
		{0, 0}, {-1, -1}, {1 << 40, 1 << 40}, {-1 << 40, -1 << 40},
		{math.MaxInt64, unset}, {math.MaxInt64 - 1, latest}, {1 << 47, latest}, {latest, latest},
		{math.MinInt64, earliest}, {earliest, earliest},
	} {
		assert.Equal(t, tt.mark, newBucket[int](0, markOf(tt.at)).mark(), "mark of %d", tt.at)
	}
}

// The expected sums are the test vectors of SipHash-2-4 (key and input are 00 01 02 …).
func TestHasherIsSipHash(t *testing.T) {
	h := NewHasher(0x0706050403020100, 0x0f0e0d0c0b0a0908)
	assert.Equal(t, uint64(0x726fdb47dd0e0e31), h.Sum(nil))
	assert.Equal(t, uint64(0xa129ca6149be45e5), h.Sum([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}))
	assert.NotEqual(t, h.Sum(nil), NewHasher(1, 2).Sum(nil))
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	d, key := newTable(sip), uint64(0)
	for key := range uint64(1000) {
		d.insert(key)
	}
	name := []byte("some:key")
	hasher := NewHasher(1, 2)
	sum := uint64(0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		key = (key + 1) % 1000
		is := func(i item) bool { return i.key == key }
		_, found := d.Find(d.hash(key), is)
		replaced := d.Replace(d.hash(key), is, item{key, 7})
		d.Mark(d.hash(key), 5)
		sum += hasher.Sum(name)
		if !found || !replaced {
			t.Errorf("key %d is gone", key)
		}
	}))
}

// InBucket visits what a split of a full bucket moves.
func TestInBucket(t *testing.T) {
	d := newTable(sip)
	assert.False(t, d.Full(1), "empty")
	for key := range uint64(1000) {
		d.insert(key)
	}
	full := 0
	for key := range uint64(1000) {
		if !d.Full(d.hash(key)) {
			continue
		}
		full++
		seen := map[uint64]bool{}
		d.InBucket(d.hash(key), func(i item) { seen[i.key] = true })
		assert.Len(t, seen, slots)
		assert.True(t, seen[key])
	}
	assert.Positive(t, full)
}
