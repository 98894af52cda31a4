package group

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/internal/clock"
)

// heap returns the bytes of the heap that are in use. What has just been closed is kept by timers
// for some seconds.
func heap() float64 {
	least := math.Inf(1)
	for range 20 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		least = min(least, float64(m.HeapAlloc))
		time.Sleep(250 * time.Millisecond)
	}
	return least
}

// BenchmarkMemory prints the bytes of heap that each of a million buckets takes in an engine alone,
// on the leader of a group, there after a start from a snapshot, and on the mean of a leader and
// two followers.
func BenchmarkMemory(b *testing.B) {
	b.Run("alone", func(b *testing.B) {
		before := heap()
		e := engine.New(engine.Options{})
		p := &Partition{Replica: &Replica{Engine: e}, Clock: newTimeline(clock.System()).begin(nobody)}
		for i := range million {
			if _, err := decide(p, fmt.Sprintf("key:%07d", i), 4); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((heap()-before)/million, "B/bucket")
		e.Discard()
	})
	b.Run("leader", func(b *testing.B) {
		empty := heap()
		n := single(b)
		n.fill(b)
		b.ReportMetric((heap()-empty)/million, "B/bucket")
		require.NoError(b, n.group.Snapshot())
		n.stop()
		n.open(n.options(0))
		n.trio.leader()
		b.ReportMetric((heap()-empty)/million, "B/bucket-rebuilt")
		n.stop()
	})
	b.Run("three", func(b *testing.B) {
		empty := heap()
		tr := newTrio(b)
		tr.snapshotBytes = 1 << 40
		tr.timeout = time.Minute // no election while the machine is busy
		tr.startAll()
		n := tr.nodes[0]
		n.callElection()
		tr.leader()
		n.fill(b)
		tr.alike()
		b.ReportMetric((heap()-empty)/million/3, "B/bucket-replica")
	})
}
