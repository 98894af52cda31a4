package hitlog

import (
	"fmt"
	"testing"
)

// The calls of a window of a second that has 1000, each with an id, and a hit without in every so
// many.
func BenchmarkCalls(b *testing.B) {
	for _, others := range []int{0, 10} {
		b.Run(fmt.Sprint(others, "percent without"), func(b *testing.B) {
			var l Log
			id := []byte("request-000000000")
			for i := 0; b.Loop(); i++ {
				id = fmt.Append(id[:8], i)
				if n := l.After(int64(i - 1000)); n > 0 {
					l.RemoveSpan(0, n)
				}
				if _, ok := l.Named(id); ok {
					b.Fatal("it was there")
				}
				if i%100 < others {
					l.Add(int64(i), 0, 1)
				} else {
					l.AddCall(&hasher, int64(i), id, 1, 4001)
				}
			}
			b.ReportMetric(float64(l.Weight())/1000, "bytes/call")
		})
	}
}
