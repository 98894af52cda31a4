package zset

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
)

const million = 1_000_000

var (
	// Functions that append the member of rank i of the sets below.
	logMember = func(buf []byte, i int) []byte {
		return append(strconv.AppendInt(buf, 1700000000000+int64(i), 10), "-0"...)
	}
	otherMember = func(buf []byte, i int) []byte { return strconv.AppendInt(append(buf, "user:"...), int64(i), 10) }
)

// eachMillion benchmarks a log that is filled in order, and a set of other members that is filled
// in random order, with a million members each.
func eachMillion(b *testing.B, bench func(b *testing.B, s *Set, member func(buf []byte, i int) []byte, base float64)) {
	b.Run("log", func(b *testing.B) {
		bench(
			b,
			filled(
				million,
				func(i int) (string, float64) { return string(logMember(nil, i)), 1700000000000 + float64(i) },
			),
			logMember,
			1700000000000,
		)
	})
	b.Run("others", func(b *testing.B) {
		order := rand.New(rand.NewPCG(1, 1)).Perm(million)
		bench(
			b,
			filled(
				million,
				func(i int) (string, float64) { return string(otherMember(nil, order[i])), float64(order[i]) },
			),
			otherMember,
			0,
		)
	})
}

func BenchmarkScore(b *testing.B) {
	eachMillion(b, func(b *testing.B, s *Set, member func([]byte, int) []byte, _ float64) {
		r, buf := rand.New(rand.NewPCG(1, 1)), make([]byte, 0, 32)
		b.ReportAllocs()
		for b.Loop() {
			s.Score(member(buf, r.IntN(million)))
		}
	})
}

func BenchmarkRank(b *testing.B) {
	eachMillion(b, func(b *testing.B, s *Set, member func([]byte, int) []byte, _ float64) {
		r, buf := rand.New(rand.NewPCG(1, 1)), make([]byte, 0, 32)
		b.ReportAllocs()
		for b.Loop() {
			s.Rank(member(buf, r.IntN(million)))
		}
	})
}

func BenchmarkScoreSpan(b *testing.B) {
	eachMillion(b, func(b *testing.B, s *Set, _ func([]byte, int) []byte, base float64) {
		r := rand.New(rand.NewPCG(1, 1))
		b.ReportAllocs()
		for b.Loop() {
			from := base + float64(r.IntN(million/2))
			s.ScoreSpan(ScoreRange{Min: from, Max: from + million/2})
		}
	})
}

func BenchmarkAscend10(b *testing.B) {
	eachMillion(b, func(b *testing.B, s *Set, _ func([]byte, int) []byte, _ float64) {
		r := rand.New(rand.NewPCG(1, 1))
		b.ReportAllocs()
		for b.Loop() {
			lo := r.IntN(million)
			for range s.Ascend(lo, lo+10) {
			}
		}
	})
}

func BenchmarkAscendAll(b *testing.B) {
	eachMillion(b, func(b *testing.B, s *Set, _ func([]byte, int) []byte, _ float64) {
		b.ReportAllocs()
		for b.Loop() {
			for range s.Ascend(0, s.Len()) {
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*million), "ns/element")
	})
}

// // BenchmarkRemoveAdd removes a member and adds it again.
func BenchmarkRemoveAdd(b *testing.B) {
	eachMillion(b, func(b *testing.B, s *Set, member func([]byte, int) []byte, base float64) {
		r, buf := rand.New(rand.NewPCG(1, 1)), make([]byte, 0, 32)
		b.ReportAllocs()
		for b.Loop() {
			i := r.IntN(million)
			m := member(buf, i)
			s.Remove(m)
			s.Add(m, base+float64(i))
		}
	})
}

func BenchmarkMove(b *testing.B) {
	eachMillion(b, func(b *testing.B, s *Set, member func([]byte, int) []byte, base float64) {
		r, buf := rand.New(rand.NewPCG(1, 1)), make([]byte, 0, 32)
		b.ReportAllocs()
		for b.Loop() {
			s.Add(member(buf, r.IntN(million)), base+float64(r.IntN(million))+0.5)
		}
	})
}

func BenchmarkScan10(b *testing.B) {
	eachMillion(b, func(b *testing.B, s *Set, _ func([]byte, int) []byte, _ float64) {
		cursor := uint64(0)
		b.ReportAllocs()
		for b.Loop() {
			cursor = s.Scan(cursor, 10, func([]byte, float64) {})
		}
	})
}

func BenchmarkClone(b *testing.B) {
	eachMillion(b, func(b *testing.B, s *Set, _ func([]byte, int) []byte, _ float64) {
		b.ReportAllocs()
		for b.Loop() {
			s.Clone()
		}
	})
}

// // BenchmarkAppendLog does what a sliding window at its limit does for a hit: drop the oldest
// hits, count, record.
func BenchmarkAppendLog(b *testing.B) {
	for _, window := range []int{1, 10, 100, 200, 1000, 100_000} {
		b.Run(strconv.Itoa(window), func(b *testing.B) {
			s, buf, now := New(&hasher), make([]byte, 0, 32), 0
			b.ReportAllocs()
			for b.Loop() {
				s.RemoveSpan(0, s.FirstAfter(float64(1700000000000+now-window)))
				s.Add(logMember(buf, now), float64(1700000000000+now))
				now++
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	s, buf, now := New(&hasher), make([]byte, 0, 32), 0
	b.ReportAllocs()
	for b.Loop() {
		s.Add(logMember(buf, now), float64(1700000000000+now))
		now++
	}
}

// // BenchmarkMemory measures live bytes per hit of logs that have been trimmed for a while, each
// to a different extent, and per member of a set of a million others.
func BenchmarkMemory(b *testing.B) {
	for _, window := range []int{1, 5, 10, 100, 200, 300, 500, 1000, 10_000} {
		b.Run(fmt.Sprintf("log of %d", window), func(b *testing.B) {
			sets := make([]*Set, 200_000/window)
			for b.Loop() {
				clear(sets)
				before, buf := live(), make([]byte, 0, 32)
				for i := range sets {
					sets[i] = New(&hasher)
					for now := range 2*window + i%min(2*window, 1000) {
						sets[i].RemoveSpan(0, sets[i].Len()-window+1)
						sets[i].Add(logMember(buf, now), float64(1700000000000+now))
					}
				}
				b.ReportMetric(float64(live()-before)/float64(window*len(sets)), "B/hit")
			}
			runtime.KeepAlive(sets)
		})
	}
	b.Run("others", func(b *testing.B) {
		order := rand.New(rand.NewPCG(1, 1)).Perm(million)
		for b.Loop() {
			before := live()
			s := filled(
				million,
				func(i int) (string, float64) { return string(otherMember(nil, order[i])), float64(order[i]) },
			)
			b.ReportMetric(float64(live()-before)/million, "B/member")
			runtime.KeepAlive(s)
		}
	})
}

func live() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
