package dict

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

func filled(n uint64) table {
	d := newTable(sip)
	for key := range n {
		d.insert(key)
	}
	return d
}

func BenchmarkFind(b *testing.B) {
	for _, n := range []uint64{10, 1000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d, r := filled(n), rand.New(rand.NewPCG(1, 1))
			b.ReportAllocs()
			for b.Loop() {
				key := r.Uint64N(n)
				d.Find(d.hash(key), func(i item) bool { return i.key == key })
			}
		})
	}
}

func BenchmarkInsertRemove(b *testing.B) {
	for _, n := range []uint64{10, 1000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d, key := filled(n), n
			b.ReportAllocs()
			for b.Loop() {
				d.insert(key)
				d.remove(key - n)
				key++
			}
		})
	}
}

// // BenchmarkGrow measures growth from an empty table, and the longest time of a single insert.
func BenchmarkGrow(b *testing.B) {
	const n = 1_000_000
	b.ReportAllocs()
	for b.Loop() {
		d, longest := newTable(sip), time.Duration(0)
		for key := range uint64(n) {
			start := time.Now()
			d.insert(key)
			longest = max(longest, time.Since(start))
		}
		b.ReportMetric(float64(longest.Microseconds()), "max-µs/insert")
	}
}

func BenchmarkScan(b *testing.B) {
	d, cursor := filled(1_000_000), uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		cursor = d.Scan(cursor, 10, func(item) {})
	}
}

func BenchmarkRandom(b *testing.B) {
	d, r := filled(1_000_000), rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		d.Random(r)
	}
}

// // BenchmarkSweepNothingDue sweeps a million entries, none of which is due.
func BenchmarkSweepNothingDue(b *testing.B) {
	d := filled(1_000_000)
	b.ReportAllocs()
	for b.Loop() {
		d.Sweep(0, 0, 1<<32, nil)
	}
}

// // BenchmarkMemory measures live bytes per 16-byte entry.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []uint64{16, 100, 1000, 500_000, 700_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tables := make([]table, max(1, 100_000/n))
			for b.Loop() {
				clear(tables)
				before := live()
				for i := range tables {
					tables[i] = filled(n)
				}
				b.ReportMetric(float64(live()-before)/float64(n*uint64(len(tables))), "B/entry")
			}
			runtime.KeepAlive(tables)
		})
	}
}

func live() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
