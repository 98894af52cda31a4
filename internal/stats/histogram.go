package stats

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	subBuckets  = 4 // buckets between two powers of two
	lowestPower = 8 // the first bucket ends at 2^8 units, a quarter of a µs
	powers      = 26

	// Buckets is the number of buckets of a Histogram. The last one has no upper bound.
	Buckets = 1 + subBuckets*powers + 1
)

// bucketOf returns the bucket of a duration: the first one whose upper bound is not less. A unit is
// 1/1024 µs, so that powers of two in µs are also powers of two in units.
func bucketOf(d time.Duration) int {
	if d <= 0 {
		return 0
	}
	units := uint64(d-1) * 128 / 125
	power := bits.Len64(units) - 1
	switch {
	case power < lowestPower:
		return 0
	case power >= lowestPower+powers:
		return Buckets - 1
	}
	sub := int(units>>(power-2)) & (subBuckets - 1)
	return 1 + subBuckets*(power-lowestPower) + sub
}

// Bound returns the upper bound of a bucket, which is part of the bucket. The last bucket has no
// bound; for it, Bound returns the bound of the bucket before.
func Bound(bucket int) time.Duration {
	bucket = min(bucket, Buckets-2)
	power, sub := lowestPower+bucket/subBuckets, bucket%subBuckets
	// rounded up to whole ns
	return time.Duration((uint64(subBuckets+sub)<<(power-2)*125 + 127) / 128)
}

// Histogram counts durations in buckets. The zero value is ready to use.
type Histogram struct {
	counts [Buckets]atomic.Int64
	sum    atomic.Int64 // ns
}

// Observe counts a duration.
func (h *Histogram) Observe(d time.Duration) { h.add(bucketOf(d), 1, d) }

// add counts n durations of one bucket whose sum is given.
func (h *Histogram) add(bucket int, n int64, sum time.Duration) {
	h.counts[bucket].Add(n)
	h.sum.Add(int64(sum))
}

// Snapshot returns the current counts.
func (h *Histogram) Snapshot() (d Distribution) {
	h.addTo(&d)
	return d
}

func (h *Histogram) addTo(d *Distribution) {
	for i := range h.counts {
		n := h.counts[i].Load()
		d.Counts[i] += n
		d.Count += n
	}
	d.Sum += time.Duration(h.sum.Load())
}

// Reset sets all counts to 0. Concurrent counts may be lost.
func (h *Histogram) Reset() {
	for i := range h.counts {
		h.counts[i].Store(0)
	}
	h.sum.Store(0)
}

// Distribution is a snapshot of a Histogram.
type Distribution struct {
	Counts [Buckets]int64 // durations up to Bound(i) and above Bound(i-1)
	Count  int64          // sum of Counts
	Sum    time.Duration
}

// Percentile returns the smallest bound that at least p percent of the durations do not exceed, or
// 0 if there are no durations. p is from 0 to 100.
func (d *Distribution) Percentile(p float64) time.Duration {
	wanted := max(1, int64(p/100*float64(d.Count)+0.5))
	seen := int64(0)
	for i, n := range d.Counts {
		if seen += n; seen >= wanted {
			return Bound(i)
		}
	}
	return 0
}

// AtMost returns the number of durations of at most 2^power µs. power is from -2 to 23.
func (d *Distribution) AtMost(power int) (n int64) {
	for _, count := range d.Counts[:subBuckets*(power+10-lowestPower)+1] {
		n += count
	}
	return n
}
