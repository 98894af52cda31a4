package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"rlserver/clock"
)

// machine is a machine's clocks, handed in.
type machine struct {
	wall    int64 // Unix ms
	elapsed time.Duration
}

func (m *machine) source() clock.Source {
	return clock.Source{
		Read:    func() (int64, time.Duration) { return m.wall * 1000, m.elapsed },
		Elapsed: func() time.Duration { return m.elapsed },
	}
}

func (m *machine) pass(d time.Duration) {
	m.wall += d.Milliseconds()
	m.elapsed += d
}

// nobody is the answer of other nodes that know nothing, or are not there.
func nobody() (int64, bool) { return 0, false }

const noon = int64(1_800_000_000_000)

func TestAFailoverTurnsTimeNeitherForwardNorBack(t *testing.T) {
	for _, off := range []time.Duration{0, time.Hour, -time.Hour, 100 * time.Hour} {
		m := &machine{wall: noon + off.Milliseconds(), elapsed: 5 * time.Second}
		tl := newTimeline(m.source())
		tl.saw(noon, true) // by the leader, whose clock is right
		m.pass(700 * time.Millisecond)
		c := tl.begin(nobody)
		assert.Equal(t, noon+700, c.Now(), "system clock off by %v", off)
		for range 1000 {
			m.pass(time.Second)
			c.Check()
		}
		want := noon + 700 + 1_000_000
		assert.InDelta(t, want, c.Now(), 501, "slewed by 500 ppm at most, system clock off by %v", off)
	}
}

func TestTimeGoesOnStrictlyAfterTheLog(t *testing.T) {
	m := &machine{wall: noon - 1000}
	tl := newTimeline(m.source())
	tl.saw(noon, true)
	assert.Equal(t, noon+1, tl.begin(nobody).Now())
}

func TestWhenTheWholeClusterStartsTheSystemClockCounts(t *testing.T) {
	m := &machine{wall: noon}
	tl := newTimeline(m.source())
	tl.saw(noon-3_600_000, false) // from the own log
	assert.Equal(t, noon, tl.begin(nobody).Now())

	behind := newTimeline((&machine{wall: noon}).source())
	behind.saw(noon+5000, false)
	assert.Equal(t, noon+5001, behind.begin(nobody).Now(), "but never turns it back")
}

func TestALeaderThatWasRestartedAsksTheOthers(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		m := &machine{wall: noon + off.Milliseconds()}
		tl := newTimeline(m.source())
		tl.saw(noon-500, false) // from the own log
		c := tl.begin(func() (int64, bool) { return noon, true })
		assert.Equal(t, noon+1, c.Now(), "system clock off by %v", off)
	}
}

// The claim of a new leader has no time: a replica that has seen nothing else does not know it.
func TestAnEntryWithoutATimeSaysNothing(t *testing.T) {
	m := &machine{wall: noon, elapsed: 5 * time.Second}
	follower, leader := newTimeline(m.source()), newTimeline(m.source())
	follower.saw(0, true)
	leader.saw(0, false)
	_, ok := follower.estimate()
	assert.False(t, ok)
	assert.Equal(t, noon, leader.begin(follower.estimate).Now())
}

// A leadership that ends before its first entry leaves nothing that a later one could go on from.
func TestALeadershipWithoutAnyEntrySaysNothing(t *testing.T) {
	for _, end := range []int64{0, noon - 8*hour} { // of the own log; 0: it is empty
		m := &machine{wall: noon, elapsed: 5 * time.Second}
		tl, other := newTimeline(m.source()), newTimeline(m.source())
		tl.saw(end, false)
		assert.Equal(t, noon, tl.begin(nobody).Now())
		m.pass(time.Second)
		_, ok := tl.estimate()
		assert.False(t, ok)
		assert.Equal(t, noon+1000, tl.begin(nobody).Now(), "it leads again")
		assert.Equal(t, noon+1000, other.begin(tl.estimate).Now(), "another one does")
	}
}
