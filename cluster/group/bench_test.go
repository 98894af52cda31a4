package group

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDecisions has 256 clients make 16 decisions at a time on a group of three replicas in
// this process.
func BenchmarkDecisions(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("sync=%v", sync), func(b *testing.B) { benchmarkDecisions(b, sync) })
	}
}

func benchmarkDecisions(b *testing.B, synced bool) {
	tr := newTrio(b)
	tr.sync = synced
	tr.startAll()
	r, err := tr.leader().group.Leading()
	if err != nil {
		b.Fatal(err)
	}
	before := cpuTime()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var clients sync.WaitGroup
	for c := range 256 {
		clients.Go(func() {
			for left.Add(-16) > -16 {
				for i := range 16 {
					if _, err := decide(r, fmt.Sprint("k", c, "-", i), 1<<40); err != nil {
						b.Error(err)
						return
					}
				}
				if err := r.Wait(0); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}
