package cluster

import (
	"errors"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/clock"
	"rlserver/cluster/group"
)

// A replica that is behind its leader knows the time of the entries that it applies, which may be
// old: the system clock is not compared with that.
func TestTheSystemClockIsComparedWithTheTimeOfGroupsThatAreUpToDate(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	off := clock.Source{Elapsed: clock.System().Elapsed, Read: func() (int64, time.Duration) {
		wall, elapsed := clock.System().Read()
		return wall - time.Hour.Microseconds(), elapsed
	}}
	// warns reports whether a follower whose clock is an hour off warns, if the logs of the others
	// end at an index.
	warns := func(last uint64) (logged bool, err error) {
		var log lines
		n := &Node{
			options: Options{Clock: off, Timeout: patience}, log: slog.New(slog.NewTextHandler(&log, nil)),
			reports: make(map[string]Report), heardAt: make(map[string]time.Time),
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
			n.reports[name], n.heardAt[name] = Report{Last: ends}, time.Now()
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
