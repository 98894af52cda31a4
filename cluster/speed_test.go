package cluster

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// fill replaces all that was measured.
func fill(l *latest, d time.Duration) {
	for range latestKept {
		l.add(d)
	}
}

func TestTheLatestDurations(t *testing.T) {
	var l latest
	for i := range latestKept - 1 {
		l.add(time.Duration(i+1) * time.Second)
	}
	assert.Zero(t, l.median(), "too few are known")
	assert.Zero(t, l.least())
	l.add(latestKept * time.Second)
	assert.Equal(t, time.Second, l.least())
	assert.Equal(t, (latestKept/2+1)*time.Second, l.median())
	fill(&l, time.Hour)
	assert.Equal(t, time.Hour, l.least(), "earlier ones are forgotten")
}

func TestWhichDiskIsSlower(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		own, other    time.Duration
		yields, stays bool // if the own one leads; if the own one leads, and the other one should
	}{
		{50 * ms, 5 * ms, true, false},
		{400 * ms, 5 * ms, true, false},
		{20 * ms, 5 * ms, false, false}, // the difference is small
		{60 * ms, 20 * ms, false, false},
		{50 * ms, 0, false, false}, // not known
		{5 * ms, 50 * ms, false, true},
		{20 * ms, 50 * ms, false, true}, // it was handed over, and is not handed back yet
		{30 * ms, 50 * ms, false, false},
		{0, 50 * ms, false, false},
	} {
		what := fmt.Sprint(c.own, " and ", c.other)
		assert.Equal(t, c.yields, slower(c.own, c.other), what)
		assert.Equal(t, c.stays, stays(c.own, c.other), what)
		assert.False(t, c.yields && stays(c.other, c.own) != c.yields, "it would go to and fro with %s", what)
	}
}

// A leader with a slow disk has all that is written wait: another replica leads while it is slow.
func TestAFasterDiskLeads(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	f.ledAsPlaced()
	for _, n := range f.nodes {
		fill(&n.syncTimes, time.Millisecond)
	}
	fill(&f.nodes[0].syncTimes, 60*time.Millisecond)
	f.eventually("a node with a slow disk leads nothing", func() error {
		for number := range f.nodes[1].Map().Groups() {
			if l := f.nodes[1].Leader(number); l == nil || l.Name == "a" {
				return fmt.Errorf("group %d: %v", number, l)
			}
		}
		return nil
	})
	// in which the groups would be handed back, after a tick of the group
	time.Sleep(time.Second + 2*balanceAfter*f.options[0].balanceInterval)
	for number := range f.nodes[1].Map().Groups() {
		if l := f.nodes[1].Leader(number); assert.NotNil(t, l) {
			assert.NotEqual(t, "a", l.Name)
		}
	}
	fill(&f.nodes[0].syncTimes, time.Millisecond)
	f.ledAsPlaced()
}

// A group is not handed over again at once, and what is slow for a moment is not slow.
func TestGroupsAreHandedToAFasterDiskNowAndThen(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, func(_ int, o *Options) { o.balanceInterval = time.Hour })
	f.startAll()
	f.stable()
	n := f.nodes[0]
	led := 0
	for _, g := range n.Replicas() {
		if g.Status().Leads {
			led++
		}
	}
	require.NotZero(t, led)
	for _, other := range f.nodes {
		fill(&other.syncTimes, time.Millisecond)
	}
	now := time.Now()
	for range slowFor {
		_, to := n.yield(now, 0)
		assert.Empty(t, to)
	}
	fill(&n.syncTimes, 60*time.Millisecond)
	f.eventually("the others have kept up, and said how fast their disks are", func() error {
		for number, names := range n.Map().Replicas {
			for _, name := range names { // the first of which may have lost the group already
				leads := name != "a" && n.Group(number).Status().Leads
				if leads && (!n.mayLead(number, name, 0) || n.syncTime(name) == 0) {
					return fmt.Errorf("%s has not", name)
				}
			}
		}
		return nil
	})
	for range slowFor - 1 {
		_, to := n.yield(now, 0)
		assert.Empty(t, to, "it may be slow for a moment")
	}
	for range led {
		_, to := n.yield(now, 0)
		assert.NotEmpty(t, to)
	}
	_, to := n.yield(now.Add(yieldAgain-1), 0)
	assert.Empty(t, to, "each group was handed over a short time ago")
	_, to = n.yield(now.Add(yieldAgain), 0)
	assert.NotEmpty(t, to)
}

func TestTheNeededTimeoutIsMeasured(t *testing.T) {
	t.Parallel()
	assert.Equal(t, time.Second, neededTimeout(100*time.Millisecond, 0))
	assert.Equal(t, time.Second, neededTimeout(101*time.Millisecond, time.Millisecond), "the table has this one")
	assert.Equal(t, 100*time.Millisecond, neededTimeout(time.Millisecond, 0))
	assert.Zero(t, neededTimeout(0, 0), "it is not known")
	assert.Equal(t, 2*time.Second, neededTimeout(200*time.Millisecond, 0))
	assert.Equal(t, 2*time.Second, neededTimeout(0, 500*time.Millisecond))

	f := startFleet(t, 3)
	f.stable()
	n := f.nodes[0]
	f.eventually("round trips are measured", func() error {
		for _, name := range []string{"b", "c"} {
			if n.roundTrip(name) == 0 {
				return fmt.Errorf("not to %s", name)
			}
		}
		return nil
	})
	assert.NotZero(t, n.NeededTimeout())
}

func TestATimeoutThatIsTooShortIsLogged(t *testing.T) {
	var log clustertest.Text
	n := &Node{log: slog.New(slog.NewTextHandler(&log, nil)), options: Options{Timeout: time.Second}}
	lines := 0
	for _, c := range []struct {
		sync time.Duration
		says string // "": nothing
	}{
		{50 * time.Millisecond, ""},
		{300 * time.Millisecond, "needed=1.2s"},
		{310 * time.Millisecond, ""},
		{500 * time.Millisecond, "needed=2s"},
		{300 * time.Millisecond, "needed=1.2s"},
		{200 * time.Millisecond, ""},
		{100 * time.Millisecond, "long enough again"},
		{100 * time.Millisecond, ""},
		{300 * time.Millisecond, "needed=1.2s"},
	} {
		fill(&n.syncTimes, c.sync)
		n.checkTimeout()
		text := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
		if log.String() == "" {
			text = nil
		}
		if c.says == "" {
			assert.Len(t, text, lines, c.sync)
			continue
		}
		lines++
		if assert.Len(t, text, lines, c.sync) {
			assert.Contains(t, text[lines-1], c.says)
		}
	}
}
