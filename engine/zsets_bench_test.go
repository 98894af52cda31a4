package engine

import (
	"fmt"
	"strconv"
	"testing"

	"rlserver/zset"
)

// A sliding window made of sorted set commands, as many clients have: remove lapsed hits, count,
// add.
func BenchmarkSortedSetLimiter(b *testing.B) {
	const window, most = 60_000, 100
	e := New(Options{})
	tx, k := e.NewTx(), e.Key([]byte("user:1"))
	now, member := int64(epoch), make([]byte, 0, 40)
	b.ReportAllocs()
	for b.Loop() {
		now += window / most
		tx.Begin(now, 0, []Key{k}, true)
		lapsed := zset.Range{By: zset.ByScore, Scores: zset.ScoreRange{Max: float64(now - window)}}
		if _, err := tx.ZRemRange(k, &lapsed); err != nil {
			b.Fatal(err)
		}
		z, err := tx.ZSet(k)
		if err != nil || z.Len() > most {
			b.Fatal(err, z.Len())
		}
		member = strconv.AppendInt(member[:0], now, 10)
		if _, _, err := tx.ZAdd(k, 0, []zset.Member{{Member: member, Score: float64(now)}}); err != nil {
			b.Fatal(err)
		}
		tx.End()
	}
}

// The same calls on sets of different sizes.
func BenchmarkZSet(b *testing.B) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		e := New(Options{})
		tx, k := e.NewTx(), e.Key([]byte("scores"))
		tx.Begin(epoch, 0, []Key{k}, true)
		members := make([][]byte, n)
		for i := range members {
			members[i] = fmt.Appendf(nil, "player:%d", i)
			if _, _, err := tx.ZAdd(k, 0, []zset.Member{{Member: members[i], Score: float64(i)}}); err != nil {
				b.Fatal(err)
			}
		}
		middle := zset.Range{
			By:      zset.ByScore,
			Scores:  zset.ScoreRange{Max: float64(n)},
			Limited: true,
			Offset:  int64(n / 2),
			Count:   10,
		}
		for _, bench := range []struct {
			name string
			do   func(i int)
		}{
			{"Score", func(i int) { z, _ := tx.ZSet(k); z.Score(members[i]) }},
			{"Rank", func(i int) { z, _ := tx.ZSet(k); z.Rank(members[i], true) }},
			{"Count", func(i int) {
				z, _ := tx.ZSet(k)
				z.Count(&zset.Range{By: zset.ByScore, Scores: zset.ScoreRange{Min: float64(i), Max: float64(n)}})
			}},
			{"Add", func(i int) { tx.ZAdd(k, 0, []zset.Member{{Member: members[i], Score: float64(i) + 0.5}}) }},
			{"RemAndAdd", func(i int) {
				tx.ZRem(k, members[i:i+1])
				tx.ZAdd(k, 0,
					[]zset.Member{{Member: members[i], Score: float64(i)}})
			}},
			{"RangeLimit", func(int) {
				z, _ := tx.ZSet(k)
				for range z.Range(&middle).All() {
				}
			}},
		} {
			b.Run(fmt.Sprintf("%s/%d", bench.name, n), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i = (i + 7919) % n
					bench.do(i)
				}
			})
		}
		tx.End()
	}
}
