package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
	"rlserver/cluster/group"
	"rlserver/internal/clock"
)

// TestWhatANodeHasShownIsExpectedOfIt lets a node start again and again, with the directory that it
// had, an older one, and another one.
func TestWhatANodeHasShownIsExpectedOfIt(t *testing.T) {
	n := &Node{saveSeen: make(chan struct{}, 1), changed: make(chan struct{}), options: Options{Timeout: time.Hour}}
	order := uint64(0)
	report := func(instance, starts uint64, history []uint64, replica, applied, last uint64) *Report {
		order++
		return &Report{
			Node: "c", Member: Member{Name: "c", Instance: instance}, Starts: starts, History: history,
			Start: history[len(history)-1], Order: order,
			Replicas: map[int]Replica{3: {Instance: replica, Applied: applied, Last: last}},
		}
	}
	for _, c := range []struct {
		what string
		r    *Report
		why  string // "": it is accepted
	}{
		{"first", report(7, 1, []uint64{11}, 5, 100, 104), ""},
		{"it was rebuilt", report(7, 1, []uint64{11}, 5, 0, 100), ""},
		{"it was set back while it ran", report(7, 1, []uint64{11}, 5, 0, 99), "its log of group 3 ends at entry 99"},
		{"its log was put back", report(7, 1, []uint64{11}, 5, 101, 104), ""},
		{"it has started", report(7, 2, []uint64{11, 12}, 5, 0, 101), ""},
		{"with an older directory", report(7, 2, []uint64{11, 13}, 5, 0, 104), "it does not know of its start 2"},
		{"and again", report(7, 3, []uint64{11, 13, 14}, 5, 0, 104), "it does not know of its start 2"},
		{"an older one", report(7, 1, []uint64{15}, 5, 0, 104), "started 1 times, and was seen at its start 2"},
		{"with a shorter log", report(7, 3, []uint64{11, 12, 16}, 5, 0, 100), "and it was seen at entry 101"},
		{"another replica", report(7, 4, []uint64{11, 12, 16, 17}, 6, 0, 0), ""},
		{"long after", report(7, 900, []uint64{20, 21}, 6, 0, 0), ""},
		{"an empty directory", report(8, 1, []uint64{31}, 9, 0, 0), ""},
	} {
		assert.Equal(t, c.why == "", n.judge(c.r, "x"), c.what)
		accepts, refuses := n.verdicts()
		assert.Empty(t, accepts, "before it is stored")
		if c.why != "" {
			assert.Contains(t, refuses["c"].Why, c.why, c.what)
			assert.Equal(t, c.r.Start, refuses["c"].Start)
		} else {
			assert.Empty(t, refuses, c.what)
		}
	}

	// what has been overtaken does not count, and what repeats itself later does
	late := report(8, 1, []uint64{31}, 9, 0, 5)
	require.True(t, n.judge(report(8, 1, []uint64{31}, 9, 10, 10), "x"))
	assert.False(t, n.judge(late, "x"))
	_, refuses := n.verdicts()
	assert.Empty(t, refuses)
	n.options.Timeout = 0
	for i := range maxOvertaken {
		assert.False(t, n.judge(late, "x"))
		_, refuses = n.verdicts()
		assert.Equal(t, i == maxOvertaken-1, len(refuses) == 1, i)
	}
	assert.Contains(t, refuses["c"].Why, "its machine was set back while it was running")

	// in another cluster, as after a restore, everything is new
	assert.True(t, n.judge(report(8, 1, []uint64{40}, 9, 0, 0), "y"))
}

// Two reports of a node may be handled at the same time. The later one counts.
func TestALateReportReplacesNoLaterOne(t *testing.T) {
	n := &Node{
		saveSeen: make(chan struct{}, 1), changed: make(chan struct{}), options: Options{Clock: clock.System()},
		others: make(map[string]other), leaders: make([]leader, 1),
	}
	report := func(order uint64, leads map[int]uint64) Report {
		return Report{Node: "c", Start: 11, Starts: 1, History: []uint64{11}, Order: order, Leads: leads}
	}
	before, after := report(1, map[int]uint64{0: 5}), report(2, nil)
	require.True(t, n.judge(&before, "x"))
	require.True(t, n.judge(&after, "x"))
	n.noteReport(after)
	n.noteReport(before)
	assert.EqualValues(t, 2, n.others["c"].report.Order)
	assert.Empty(t, n.leaders[0].name, "it leads no more")
}

// Two reports may be made at the same time. The one with the higher number must not have less.
func TestALaterReportSaysNotLess(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 1)
	system := clock.System()
	begun, goOn := make(chan struct{}), make(chan struct{})
	var read atomic.Bool
	n := &Node{ // with the groups of another one, and a clock that is read slowly once
		self: f.nodes[0].self, wanted: f.nodes[0].wanted, nonce: 7, saved: saved{Starts: 1, History: []uint64{7}},
		options: Options{Clock: clock.Source{Elapsed: system.Elapsed, Read: func() (int64, time.Duration) {
			if read.CompareAndSwap(false, true) {
				close(begun)
				<-goOn
			}
			return system.Read()
		}}},
	}
	n.opened.Store(f.nodes[0].opened.Load())
	var reports [2]Report
	var work sync.WaitGroup
	work.Go(func() { reports[0] = n.report("b") })
	<-begun
	second := make(chan struct{})
	work.Go(func() {
		reports[1] = n.report("b")
		close(second)
	})
	select {
	case <-second: // it waits for the first one
	case <-time.After(50 * time.Millisecond):
	}
	g := f.nodes[0].Group(0)
	f.eventually("an entry is applied", func() error {
		note := g.Note()
		if note == nil {
			return errors.New("the cluster is not founded yet")
		}
		return g.SetNote(group.Note{Version: note.Version + 1, Data: note.Data})
	})
	close(goOn)
	work.Wait()
	slices.SortFunc(reports[:], func(a, b Report) int { return cmp.Compare(a.Order, b.Order) })
	of := &seenNode{Entries: make(map[int]seenEntry)}
	of.show(&reports[0])
	assert.Empty(t, of.less(&reports[1]))
}

// TestADirectoryThatWasSetBackIsRefused lets one of three nodes come back with what it had earlier,
// while another one is behind and the third is away: both would be a majority that has forgotten.
func TestADirectoryThatWasSetBackIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		keep bool // the latest cluster.json: the starts are right, and the logs are not
		why  string
	}{
		{"starts", false, "it does not know of its start 2"}, {"entries", true, "and it was seen at entry"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 3, func(_ int, o *Options) { o.Sync = true })
			f.startAll()
			f.stable()
			f.stop(2)
			old := filepath.Join(f.dir, "old")
			require.NoError(t, os.CopyFS(old, os.DirFS(f.options[2].Dir)))
			require.NoError(t, f.start(2))
			f.stable()
			l := f.load()
			l.goesOn()
			l.end()
			f.caughtUp(2)
			nonce := f.nodes[2].nonce
			f.eventually("b has seen that", func() error {
				f.nodes[1].mu.Lock()
				defer f.nodes[1].mu.Unlock()
				of := f.nodes[1].seen.Nodes["c"]
				if of == nil || of.saved != nonce || of.Entries[0].Entry < f.nodes[2].Group(0).Status().Applied-1 {
					return errors.New("not yet")
				}
				return nil
			})
			for _, i := range []int{1, 0, 2} {
				f.stop(i)
			}
			dir := f.options[2].Dir
			if c.keep {
				require.NoError(t, os.Rename(filepath.Join(dir, mapFile), filepath.Join(old, mapFile)))
			}
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.Rename(old, dir))

			require.NoError(t, f.start(2))
			require.NoError(t, f.start(1))
			select {
			case <-f.nodes[2].Dismissed():
			case <-time.After(patience):
				t.Fatal("it is not refused")
			}
			err := f.nodes[2].Why()
			require.ErrorContains(t, err, "node b refuses this one, c: ")
			require.ErrorContains(t, err, c.why)
			require.ErrorContains(t, err, "Remove it, and the node joins as a new one")
			testLogged(f, "node c is refused: ")
			for number := range f.nodes[1].Map().Groups() {
				assert.Nil(t, f.nodes[1].Leader(number), "group %d", number)
			}

			// with the third node and an empty directory all is well
			f.stop(2)
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, f.start(0))
			require.NoError(t, f.start(2))
			f.matches("a", "b", "c")
			f.stable()
		})
	}
}

// TestAStartThatIsNotStoredIsNotTold has a node whose first write hangs, as on a disk that hangs,
// and which ends before it is written. Its next start has the same number.
func TestAStartThatIsNotStoredIsNotTold(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	f.stop(2)
	hung := filepath.Join(f.options[2].Dir, mapFile+".tmp")
	require.NoError(t, syscall.Mkfifo(hung, 0o600)) // to open it waits for a reader
	ended := make(chan error)
	go func() { ended <- f.start(2) }()

	p := f.nodes[0].peerNamed("c")
	defer p.close()
	f.eventually("it answers", func() error {
		var theirs Report
		err := p.call("Exchange", f.nodes[0].report("c"), &theirs, calm)
		if err == nil {
			if theirs.Starts != 2 {
				return errors.New("it has not read its directory yet")
			}
			f.nodes[0].receive(theirs)
		} else if err.Error() != errStarting.Error() {
			return err
		}
		return nil
	})
	r, err := os.OpenFile(hung, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	require.Error(t, <-ended, "a pipe cannot be synced")
	require.NoError(t, r.Close())
	require.NoError(t, os.Remove(hung))

	f.options[2].Listener = nil
	require.NoError(t, f.start(2))
	f.eventually("it is accepted", func() error {
		if !f.nodes[2].trusts("a") || !f.nodes[2].trusts("b") {
			return fmt.Errorf("it is not: %w", f.nodes[2].Why())
		}
		return nil
	})
	f.matches("a", "b", "c")
	f.stable()
}

// TestANodeWaitsForWhatOthersHaveSeen hands in the reports and the time.
func TestANodeWaitsForWhatOthersHaveSeen(t *testing.T) {
	const round, most = time.Second, 10 * time.Second
	start := func(state *saved) *Node {
		n := &Node{
			options: Options{roundInterval: round, awaitOthers: most, Timeout: most}, self: Member{Name: "c"},
			m: &Map{Members: []Member{{Name: "a"}, {Name: "b"}, {Name: "c"}}}, nonce: 20, allReported: state == nil,
			others: make(map[string]other), changed: make(chan struct{}), log: slog.New(slog.DiscardHandler),
			leave: func() {},
		}
		n.await(0)
		return n
	}
	says := func(n *Node, name string, r Report) {
		r.Node = name
		n.mu.Lock()
		defer n.mu.Unlock()
		n.receiveVerdict(&r)
	}
	accepts := func(start uint64) Report { return Report{Accepts: map[string]uint64{"c": start}} }
	refuses := func(start uint64) Report {
		return Report{Refuses: map[string]Refusal{"c": {Start: start, Why: "it is old"}}}
	}

	t.Run("a report on its way says nothing about this start", func(t *testing.T) {
		n := start(new(saved))
		says(n, "b", accepts(20))
		for _, late := range []Report{{}, accepts(19), refuses(19)} {
			says(n, "a", late)
			assert.False(t, n.trusts("b"))
		}
		says(n, "a", accepts(20))
		assert.True(t, n.trusts("a") && n.trusts("b"))
		says(n, "a", refuses(20))
		assert.False(t, n.trusts("a") || n.trusts("b"))
		assert.Contains(t, n.setBack, "node a refuses this one, c: it is old")
	})
	t.Run("a refusal that comes first", func(t *testing.T) {
		n := start(new(saved))
		says(n, "b", accepts(20))
		says(n, "a", refuses(20))
		n.await(most)
		says(n, "a", accepts(20))
		assert.False(t, n.trusts("b"))
	})
	t.Run("who is silent for long enough counts as gone", func(t *testing.T) {
		n := start(new(saved))
		says(n, "b", accepts(20))
		n.await(time.Hour) // it was suspended
		assert.False(t, n.trusts("b"))
		for range most/round - 2 - 1 {
			n.await(round)
			assert.False(t, n.trusts("b"))
		}
		n.await(round)
		assert.True(t, n.trusts("b"))
		assert.False(t, n.trusts("a"))
	})
	t.Run("an empty directory has nothing to forget", func(t *testing.T) {
		n := start(nil)
		says(n, "b", accepts(20))
		assert.True(t, n.trusts("b"))
		assert.False(t, n.trusts("a"))
	})
}

// TestANodeThatWasSetBackWaitsForWhoKnows starts it beside a node that is behind. The one that
// knows comes later.
func TestANodeThatWasSetBackWaitsForWhoKnows(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	f := newFleet(t, 3, func(_ int, o *Options) { o.Sync = true })
	f.startAll()
	f.stable()
	f.stop(2)
	f.stop(1)
	dir := f.options[2].Dir
	old := filepath.Join(f.dir, "old")
	require.NoError(t, os.CopyFS(old, os.DirFS(dir)))
	require.NoError(t, f.start(2))
	f.stable()
	l := f.load()
	l.goesOn()
	f.stop(2)
	f.stop(0)
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Rename(old, dir))

	f.options[1].awaitOthers, f.options[2].awaitOthers = time.Hour, time.Hour
	require.NoError(t, f.start(1))
	require.NoError(t, f.start(2))
	l.update()
	f.eventually("b and c accept each other", func() error {
		for i, name := range map[int]string{1: "c", 2: "b"} {
			n := f.nodes[i]
			n.mu.Lock()
			accepted := n.others[name].accepted
			n.mu.Unlock()
			if !accepted {
				return fmt.Errorf("%s is not accepted", n.Name())
			}
		}
		return nil
	})
	for range 20 { // rounds
		time.Sleep(f.options[1].roundInterval)
		for number := range f.nodes[1].Map().Groups() {
			require.Nil(t, f.nodes[1].Leader(number), "group %d", number)
		}
	}
	require.NoError(t, f.start(0))
	l.update()
	select {
	case <-f.nodes[2].Dismissed():
	case <-time.After(patience):
		t.Fatal("it is not refused")
	}
	require.ErrorContains(t, f.nodes[2].Why(), "node a refuses this one, c: it does not know of its start 2")
	f.stop(2)
	l.update()
	f.options[2].Listener = nil
	require.ErrorContains(t, f.start(2), "node a refuses this one, c: ", "it is not asked for again")
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, f.start(2))
	f.matches("a", "b", "c")
	f.stable()
	l.update()
	l.conserved()
}
