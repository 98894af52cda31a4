package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
	"rlserver/cluster/group"
	"rlserver/internal/clock"
)

// clockThatIsOff is the machine's clocks, but for the system clock, which is ahead.
func clockThatIsOff(by time.Duration) clock.Source {
	system := clock.System() // both read the same monotonic clock
	return clock.Source{Elapsed: system.Elapsed, Read: func() (int64, time.Duration) {
		wall, elapsed := system.Read()
		return wall + by.Microseconds(), elapsed
	}}
}

// A replica that is behind its leader knows the time of the entries that it applies, which may be
// old: the system clock is not compared with that.
func TestTheSystemClockIsComparedWithTheTimeOfGroupsThatAreUpToDate(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	off := clockThatIsOff(-time.Hour)
	// warns reports whether a follower whose clock is an hour off warns, if the logs of the others
	// end at an index.
	warns := func(last uint64) (logged bool, err error) {
		var log lines
		n := &Node{
			options: Options{Clock: off, Timeout: patience}, log: slog.New(slog.NewTextHandler(&log, nil)),
			others: make(map[string]other),
		}
		of := f.nodes[2]
		groups := slices.Clone(of.groups())
		ends := make(map[int]uint64)
		for number, g := range groups {
			ends[number] = last
			if g.Status().Leads {
				groups[number] = nil
			}
		}
		for _, name := range []string{"a", "b"} {
			n.others[name] = other{report: Report{Committed: ends}, at: time.Now()}
		}
		n.opened.Store(&opened{of.Map(), groups})
		n.compareClocks()
		if slices.ContainsFunc(groups, func(g *group.Group) bool { return g != nil && g.Status().Leads }) {
			return false, errors.New("the node leads a further group")
		}
		return log.get() != "", nil
	}
	for _, c := range []struct {
		last uint64
		want bool
	}{{0, true}, {math.MaxUint64, false}} {
		f.eventually("the clock is compared", func() error {
			logged, err := warns(c.last)
			if err == nil && !logged && c.want {
				err = errors.New("it does not warn")
			}
			if err == nil {
				require.Equal(t, c.want, logged)
			}
			return err
		})
	}
}

// TestTheMiddleOfTheClocksCounts starts a whole cluster with clocks that differ from the right one,
// and a log that ended some time ago.
func TestTheMiddleOfTheClocksCounts(t *testing.T) {
	const h, day = time.Hour, 24 * time.Hour
	for _, c := range []struct {
		away   time.Duration // for which the cluster was away
		clocks []time.Duration
		want   time.Duration
	}{
		{time.Minute, []time.Duration{0}, 0},
		{3 * day, []time.Duration{0}, 0},
		{time.Minute, []time.Duration{0, h}, 0},
		{time.Minute, []time.Duration{0, -h}, -time.Minute},
		{3 * day, []time.Duration{0, h}, 0},
		{3 * day, []time.Duration{0, -h}, -h}, // nothing says which one is wrong
		{time.Minute, []time.Duration{0, 0, h}, 0},
		{time.Minute, []time.Duration{0, 0, -h}, 0},
		{time.Minute, []time.Duration{0, h, -h}, 0},
		{3 * day, []time.Duration{0, 0, h}, 0},
		{3 * day, []time.Duration{0, h, -h}, 0},
		{time.Minute, []time.Duration{0, h, h}, h}, // two of three agree
		{time.Minute, []time.Duration{0, 0, h, 2 * h}, 0},
		{time.Minute, []time.Duration{0, 0, 0, h, 2 * h}, 0},
		{time.Minute, []time.Duration{0, 0, 0, h, -h}, 0},
	} {
		now := time.UnixMilli(1_800_000_000_000)
		var clocks []int64
		for _, off := range c.clocks {
			clocks = append(clocks, now.Add(off).UnixMilli())
		}
		log := now.Add(-c.away).UnixMilli()
		least := max(log+1, now.Add(c.want-group.Slack).UnixMilli())
		assert.Equal(t, least, group.Since(log, middle(clocks, log)), "%v", c)
		assert.Equal(t, now.Add(c.want).UnixMilli(), middle(clocks, log), "%v", c)
	}
}

// TestAWrongClockAtATotalRestartIsNotFollowed starts a cluster again and again, with all nodes or a
// majority, and clocks that are an hour off.
func TestAWrongClockAtATotalRestartIsNotFollowed(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	// a node that hears no other for five timeouts follows its own clock
	f := newFleet(t, 3, func(_ int, o *Options) { o.Timeout = 3 * calm })
	f.startAll()
	f.stable()
	off := func(i int, by time.Duration) { f.options[i].Clock = clockThatIsOff(by) }
	for round, c := range []struct{ away, a, b, c time.Duration }{
		{0, time.Hour, 0, 0}, {0, 0, -time.Hour, time.Hour}, {72 * time.Hour, -time.Hour, 0, -1},
	} {
		for i := range f.nodes {
			f.stop(i)
		}
		off(0, c.away+c.a)
		off(1, c.away+c.b)
		off(2, c.away+c.c)
		for i := range f.nodes {
			if c.c >= 0 || i < 2 {
				require.NoError(t, f.start(i))
			}
		}
		f.stable()
		for number := range f.nodes[0].Map().Groups() {
			leader := f.nodes[0].Leader(number)
			p, err := f.nodes[leader.Name[0]-'a'].Group(number).Leading()
			require.NoError(t, err)
			want := time.Now().Add(c.away)
			if c.c < 0 { // nothing says which of two is wrong after so long
				want = want.Add(c.a)
			}
			now := time.UnixMilli(p.Clock.Now())
			assert.WithinDuration(t, want, now, time.Minute, "round %d, group %d", round, number)
		}
		f.eventually("the wrong clock is named", func() error {
			if c.a != 0 && f.nodes[1].ClockOff("a") == (c.c < 0) {
				return fmt.Errorf("round %d: of a", round)
			}
			return nil
		})
	}
	testLogged(f, "clock=a ahead=") // by about an hour: a report takes its time
}

// Nodes that are slow to answer, as when a whole cluster starts on busy machines, are waited for
// longer and longer: the own clock alone does not decide before.
func TestSlowClocksCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Second
		now := time.Now().UnixMilli()
		n := &Node{options: Options{Timeout: timeout, Clock: clock.System()}, others: make(map[string]other),
			warned: make(map[string]time.Time), log: slog.New(slog.DiscardHandler),
			m: &Map{Replicas: [][]string{{"a", "b", "c"}}}}
		for _, c := range []struct{ takes, wantAhead time.Duration }{
			{0, 0}, {timeout / 2, 0}, {timeout, 0}, {longestAsking * timeout, time.Hour},
		} {
			ask := func(_ *Map, _ int, wait time.Duration) map[string]Time {
				time.Sleep(min(c.takes, wait))
				answers := map[string]Time{"a": {Clock: now + time.Hour.Milliseconds()}}
				if c.takes <= wait {
					answers["b"], answers["c"] = Time{Clock: now}, Time{Clock: now}
				}
				return answers
			}
			ms := n.askTime(ask, 0, 0, func() bool { return true })
			assert.Equal(t, c.wantAhead.Milliseconds(), ms-now, "answers take %v", c.takes)
		}
	})
}

// A node that is cut off is not waited for if a majority of the replicas has answered, and one of
// them knows the time.
func TestAMajorityDecidesTheTime(t *testing.T) {
	replicas := []string{"a", "b", "c"}
	for _, c := range []struct {
		answers map[string]Time
		want    bool
	}{
		{map[string]Time{"a": {}}, false},
		{map[string]Time{"a": {Group: 5}}, false},
		{map[string]Time{"a": {}, "b": {Clock: 5, Any: 5}}, false},
		{map[string]Time{"a": {}, "d": {Group: 5}}, false},
		{map[string]Time{"a": {}, "b": {Group: 5}}, true},
	} {
		assert.Equal(t, c.want, enough(replicas, c.answers), "%v", c.answers)
	}
}
