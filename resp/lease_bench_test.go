package resp

import (
	"fmt"
	"testing"
)

// BenchmarkLease takes the oldest of 100 leases back and takes a new one.
func BenchmarkLease(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			now := int64(testStart)
			s := newBenchSession(func() int64 { now++; return now })
			take, release := words("RL.LEASE", "jobs", "1000", "1h", ""), words("RL.RELEASE", "jobs", "")
			id := func(i int) []byte { return fmt.Appendf(nil, "%012x", uint64(i)*0x9e3779b97f4a7c15>>16) }
			for i := range n {
				take[4] = id(i)
				s.execute(take)
			}
			ids := make([][]byte, 1<<16)
			for i := range ids {
				ids[i] = id(i)
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				release[2], take[4] = ids[i%len(ids)], ids[(i+n)%len(ids)]
				s.execute(release)
				s.execute(take)
				s.flush()
				i++
			}
		})
	}
}
