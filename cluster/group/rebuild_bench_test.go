package group

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const million = 1_000_000

// single is a replica that is the only one of its group.
func single(b *testing.B) *node {
	tr := newTrio(b)
	tr.timeout, tr.snapshotBytes = short, 1<<40
	n := tr.nodes[0]
	o := n.options(0)
	require.NoError(b, Bootstrap(o, []ReplicaID{o.id()}))
	n.open(o)
	return n
}

// fill makes a decision on each of a million keys, 256 to an entry.
func (n *node) fill(b *testing.B) {
	r, err := n.trio.leader().group.Leading()
	require.NoError(b, err)
	for i := range million {
		// a bucket of 4 that has given one permit is full again, and removed, after 15 minutes
		if _, err := decide(r, fmt.Sprintf("key:%07d", i), 4); err != nil {
			b.Fatal(err)
		}
		if i%256 == 255 {
			require.NoError(b, r.Wait(0))
		}
	}
	require.NoError(b, r.Wait(0))
}

// BenchmarkRebuild replaces a replica with a million buckets that is ahead of its log. s/rebuild is
// until the state of the snapshot is there, s/serves until the log is applied and calls are served,
// which contains an election of up to 0.27 s. It prints the same as processor time.
func BenchmarkRebuild(b *testing.B) {
	for _, c := range []struct {
		what          string
		before, after bool // a snapshot is taken before, and after the last fill
	}{{"snapshot", false, true}, {"log", false, false}, {"snapshot+log", true, false}} {
		b.Run(c.what, func(b *testing.B) {
			n := single(b)
			n.fill(b)
			if c.before {
				require.NoError(b, n.group.Snapshot())
				n.fill(b)
			}
			if c.after {
				require.NoError(b, n.group.Snapshot())
			}
			log, snapshot := n.group.Sizes()
			runtime.GC()
			b.ResetTimer()
			var rebuilt, served, cpu time.Duration
			for range b.N {
				before := n.group.running.Load()
				start, used := time.Now(), cpuTime()
				before.fsm.replica.Load().discard(errors.New("something was on its way"))
				for n.group.running.Load() == before {
					time.Sleep(time.Millisecond)
				}
				rebuilt += time.Since(start)
				n.trio.leader()
				served += time.Since(start)
				cpu += cpuTime() - used
			}
			b.StopTimer()
			times := float64(b.N)
			b.ReportMetric(rebuilt.Seconds()/times, "s/rebuild")
			b.ReportMetric(served.Seconds()/times, "s/serves")
			b.ReportMetric(cpu.Seconds()/times, "cpu-s/op")
			b.ReportMetric(float64(log)/1e6, "MB-log")
			b.ReportMetric(float64(snapshot)/1e6, "MB-snapshot")
			keys, _ := n.group.running.Load().fsm.replica.Load().Engine.Size(0)
			require.Equal(b, million, keys)
		})
	}
}
