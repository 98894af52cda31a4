package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
	"rlserver/cluster/overview"
	"rlserver/engine"
	"rlserver/engine/limit"
)

func (f *fleet) overview(i int) *overview.Cluster {
	return f.nodes[i].Overview(f.options[i].Timeout)
}

// ready waits until a node says that the next one may be stopped.
func (f *fleet) ready(i int) {
	f.t.Helper()
	f.eventually("it is ready", func() error { return f.overview(i).Ready() })
}

// admitOn makes a call against a limit that is never reached, and returns how many were admitted.
func admitOn(n *Node, number int) (count int64, err error) {
	g := n.Group(number)
	if g == nil {
		return 0, errNotMade
	}
	p, err := g.Leading()
	if err != nil {
		return 0, err
	}
	tx := p.Engine.NewTx()
	k := p.Engine.Key([]byte("k"))
	tx.Begin(p.Clock.Now(), 0, []engine.Key{k}, true)
	d, err := tx.Slide(k, []limit.Window{{Limit: 1 << 40, Length: time.Hour.Milliseconds()}}, 1, nil)
	position := tx.End()
	if err != nil {
		return 0, err
	}
	return 1<<40 - d.Remaining, p.Wait(position)
}

// Disks are replaced in a row, each as soon as the node before is ready. Nothing is lost.
func TestDisksAreReplacedByReadinessAlone(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	f := newFleet(t, 3, func(_ int, o *Options) { o.Timeout = brisk })
	f.startAll()
	f.stable()
	var mu sync.Mutex // held while nodes are stopped and started
	admitted := make([]int64, f.nodes[0].Map().Groups())
	round := func() {
		mu.Lock()
		defer mu.Unlock()
		for _, n := range f.nodes {
			for number := range admitted {
				if n == nil {
					continue
				}
				if count, err := admitOn(n, number); err == nil {
					assert.Greater(t, count, admitted[number], "a permit that was acknowledged is lost")
					admitted[number]++
				}
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := sync.WaitGroup{}
	calls.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(time.Millisecond)
			round()
		}
	})
	end := func() { cancel(); calls.Wait() }
	t.Cleanup(end) // before the nodes are stopped, if the test fails
	replace := func(i int) {
		mu.Lock()
		defer mu.Unlock()
		f.stop(i)
		require.NoError(t, os.RemoveAll(f.options[i].Dir))
		require.NoError(t, f.start(i))
	}
	for i := range f.nodes {
		f.ready(i)
		replace(i)
		f.ready(i)
	}
	end()
	before := append([]int64(nil), admitted...)
	f.stable()
	f.eventually("each group serves", func() error {
		round()
		for number := range admitted {
			if admitted[number] == before[number] {
				return fmt.Errorf("group %d admits nothing", number)
			}
		}
		return nil
	})
	for i := range f.nodes {
		f.ready(i)
		assert.Zero(t, f.overview(i).Moves)
	}
}

// A node is ready for traffic while another one is down, and not for the loss of a further one.
func TestReadyMeansThatTheNextNodeMayBeLost(t *testing.T) {
	t.Parallel()
	f, hangs := newHangingFleet(t)
	for i := range f.nodes {
		f.ready(i)
	}
	f.stop(2)
	f.eventually("the others know", func() error {
		for i := range 2 {
			if err := f.overview(i).Ready(); err == nil || !strings.Contains(err.Error(), "one more loss") {
				return fmt.Errorf("node %d: %v", i, err)
			}
		}
		return nil
	})
	f.stable()
	for i := range 2 {
		assert.NoError(t, f.overview(i).ReadyForTraffic())
		assert.ErrorContains(t, f.overview(i).Ready(), "one more loss would stop it")
		assert.ErrorContains(t, f.overview(i).Ready(), "down, lag or leave: c")
	}
	require.NoError(t, f.start(2))
	for i := range f.nodes {
		f.ready(i)
	}

	hangs[2].Lock() // it answers, and stores nothing
	f.eventually("the others know", func() error {
		if f.overview(0).Ready() == nil || f.overview(1).Ready() == nil || f.overview(2).Ready() == nil {
			return fmt.Errorf("a node is ready")
		}
		return nil
	})
	hangs[2].Unlock()
	for i := range f.nodes {
		f.ready(i)
	}
	f.nodes[2].leaving.Store(true) // SIGTERM
	f.eventually("the others hear it", func() error {
		if f.overview(0).Ready() == nil {
			return fmt.Errorf("it is ready")
		}
		return nil
	})
}

// One or two nodes cannot be spared: they are ready when all their replicas take part.
func TestFewNodesBecomeReady(t *testing.T) {
	t.Parallel()
	for size := range 2 {
		f := newFleet(t, size+1, func(_ int, o *Options) { o.Timeout = brisk })
		f.startAll()
		f.stable()
		for i := range f.nodes {
			f.ready(i)
		}
		if size == 1 {
			f.stop(1)
			f.eventually("the other one knows", func() error {
				if f.overview(0).Ready() == nil {
					return fmt.Errorf("it is ready")
				}
				return nil
			})
		}
	}
}
