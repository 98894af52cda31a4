package group

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/internal/clock"
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
func nobody(int64) (int64, bool) { return 0, false }

// asks is the answer of a node.
func asks(other *timeline) func(int64) (int64, bool) {
	return func(int64) (int64, bool) { return other.estimate() }
}

const noon = int64(1_800_000_000_000)

func TestAFailoverTurnsTimeNeitherForwardNorBack(t *testing.T) {
	for _, off := range []time.Duration{0, time.Hour, -time.Hour, 100 * time.Hour} {
		m := &machine{wall: noon + off.Milliseconds(), elapsed: 5 * time.Second}
		tl := newTimeline(m.source())
		tl.saw(1, noon, true) // by the leader, whose clock is right
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

func TestTimeNeverGoesBackBehindTheLog(t *testing.T) {
	m := &machine{wall: noon - 1000}
	tl := newTimeline(m.source())
	tl.saw(1, noon, true)
	assert.Equal(t, noon, tl.begin(nobody).Now())
}

func TestTheTimeOfASnapshotIsThatOfItsRestore(t *testing.T) {
	m := &machine{wall: noon, elapsed: 1000 * time.Hour} // of a process that runs for long
	tl := newTimeline(m.source())
	tl.saw(0, noon, false)
	ms, _ := tl.estimate()
	assert.Equal(t, noon, ms)
	m.pass(time.Second)
	tl.arrive(1, 5)
	tl.saw(0, noon+1000, false)
	ms, _ = tl.estimate()
	assert.Equal(t, noon+1000, ms)
}

func TestWhenTheWholeClusterStartsTheSystemClockCounts(t *testing.T) {
	m := &machine{wall: noon}
	tl := newTimeline(m.source())
	tl.saw(1, noon-3_600_000, false) // from the own log
	assert.Equal(t, noon-Slack.Milliseconds(), tl.begin(nobody).Now())

	behind := newTimeline((&machine{wall: noon}).source())
	behind.saw(1, noon+5000, false)
	assert.Equal(t, noon+5001, behind.begin(nobody).Now(), "but never turns it back")
}

func TestALeaderThatWasRestartedAsksTheOthers(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		m := &machine{wall: noon + off.Milliseconds()}
		tl := newTimeline(m.source())
		tl.saw(1, noon-500, false) // from the own log
		c := tl.begin(func(log int64) (int64, bool) {
			assert.Equal(t, noon-500, log)
			return noon, true
		})
		assert.Equal(t, noon, c.Now(), "system clock off by %v", off)
	}
}

// The barrier of a new leader has no time: a replica that has seen nothing else does not know it.
func TestAnEntryWithoutATimeSaysNothing(t *testing.T) {
	m := &machine{wall: noon, elapsed: 5 * time.Second}
	follower, leader := newTimeline(m.source()), newTimeline(m.source())
	follower.saw(1, 0, true)
	leader.saw(1, 0, false)
	_, ok := follower.estimate()
	assert.False(t, ok)
	assert.Equal(t, noon, leader.begin(asks(follower)).Now())
}

// Another node may ask at any moment, also while the first entry since the start is applied: it
// must not get the end of the old log for the present time.
func TestWhoAsksWhileAnEntryIsAppliedDoesNotGetTheEndOfTheLog(t *testing.T) {
	for _, end := range []int64{0, noon - 72*hour} { // of the own log; 0: it is empty
		m := &machine{wall: noon, elapsed: 5 * time.Second}
		asks := func() {}
		source := m.source()
		source.Elapsed = func() time.Duration { // saw reads the clock half way
			asks()
			return m.elapsed
		}
		tl := newTimeline(source)
		tl.saw(1, end, false)
		asked := 0
		asks = func() {
			asks = func() {}
			if ms, ok := tl.estimate(); ok {
				assert.Equal(t, noon, ms)
			}
			asked++
		}
		tl.saw(2, noon, true)
		assert.Equal(t, 1, asked)
		ms, ok := tl.estimate()
		assert.True(t, ok)
		assert.Equal(t, noon, ms)
	}
}

// A leadership that ends before its first entry leaves nothing that a later one could go on from.
func TestALeadershipWithoutAnyEntrySaysNothing(t *testing.T) {
	for _, end := range []int64{0, noon - 8*hour} { // of the own log; 0: it is empty
		m := &machine{wall: noon, elapsed: 5 * time.Second}
		tl, other := newTimeline(m.source()), newTimeline(m.source())
		tl.saw(1, end, false)
		begun := Since(end, noon)
		assert.Equal(t, begun, tl.begin(nobody).Now())
		m.pass(time.Second)
		_, ok := tl.estimate()
		assert.False(t, ok)
		assert.Equal(t, begun+1000, tl.begin(nobody).Now(), "it leads again")
		assert.Equal(t, noon+1000, other.begin(asks(tl)).Now(), "another one does")
	}
}

// TestNoWindowIsShorterThanPromised changes leaders at random, and compares the time of the group,
// which runs on the clocks of three machines that differ, with what has really passed. Followers
// get entries late and apply them later. Nothing may make up for what changes of leaders lose.
func TestNoWindowIsShorterThanPromised(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		now := time.Duration(r.Int64N(int64(time.Hour))) // real time
		lines := make([]*timeline, 3)
		for i := range lines {
			started := time.Duration(r.Int64N(int64(time.Hour)))
			off := time.Duration(r.Int64N(int64(400 * time.Millisecond)))
			lines[i] = newTimeline(clock.Source{
				Elapsed: func() time.Duration { return now + started },
				Read: func() (int64, time.Duration) {
					return noon*1000 + (now + off).Microseconds(), now + started
				},
			})
		}
		wait := func(most time.Duration) { now += time.Duration(r.Int64N(int64(most))) }
		index := uint64(0)
		began, first := now, int64(0)
		for range 40 {
			leader := r.IntN(3)
			led := lines[leader].begin(nobody)
			if first == 0 {
				first, began = led.Now(), now
			}
			for range 1 + r.IntN(30) {
				index++
				stamp := led.Now()
				passed := (now - began).Microseconds()
				require.LessOrEqual(t, stamp*1000, first*1000+passed+999, "seed %d, entry %d", seed, index)
				wait(3 * time.Millisecond)
				for _, tl := range lines {
					tl.arrive(index, index)
				}
				wait(800 * time.Millisecond)
				for _, tl := range lines {
					tl.saw(index, stamp, true)
				}
				led.Check()
			}
		}
		lost := (now - began).Milliseconds() - (lines[0].begin(nobody).Now() - first)
		slewed := (now - began).Milliseconds() / 2000
		assert.LessOrEqual(t, lost, 40*4+slewed, "a change of leaders loses what an entry is on its way")
	}
}

// The entry of a leader that was deposed, and does not count, has a time of its own.
func TestAFencedEntryDoesNotSayTheTime(t *testing.T) {
	m := &machine{wall: noon, elapsed: time.Hour}
	f := &fsm{time: newTimeline(m.source()), follows: func(uint64) bool { return true }, digested: func(Digest) {}}
	f.replica.Store(newReplica(engine.Options{}))
	apply := func(index, term uint64, at int64) any {
		entry := make([]byte, headerSize)
		header{kind: entryBatch, proposer: 1, term: term, first: 1, last: 0, at: at}.put(entry)
		return f.Apply(&raft.Log{Index: index, Term: 3, Data: entry})
	}
	assert.Nil(t, apply(1, 3, noon))
	assert.Equal(t, errFenced, apply(2, 2, noon+700))
	assert.Equal(t, noon, f.time.latest())
	assert.Equal(t, noon, f.latest)
}

// Entries that are applied long after they have arrived, as after an election, say how long that
// was.
func TestWhatAnElectionTakesHasPassed(t *testing.T) {
	m := &machine{wall: noon, elapsed: time.Hour}
	tl := newTimeline(m.source())
	tl.arrive(7, 8)
	m.pass(time.Second)
	tl.arrive(9, 9) // the barrier
	tl.saw(7, noon-5, true)
	tl.saw(8, noon-2, true)
	assert.Equal(t, noon-2+1000, tl.begin(nobody).Now())
}

// TestALeaderFollowsTheClocksOfMostNodes leads on a node whose own clock is an hour ahead.
func TestALeaderFollowsTheClocksOfMostNodes(t *testing.T) {
	m := &machine{wall: noon, elapsed: 5 * time.Second}
	for _, c := range []struct{ clocks, want time.Duration }{
		{0, 0}, {Slack, 0}, {-100 * time.Millisecond, -100 * time.Millisecond},
		{Slack + 200*time.Millisecond, 200 * time.Millisecond}, {time.Hour, 500 * time.Millisecond},
	} {
		tl := newTimeline(m.source())
		start := m.wall
		tl.saw(1, start, true)
		tl.clocks = func(own, _ int64) int64 { return own + c.clocks.Microseconds() }
		led := tl.begin(nobody)
		for range 1000 {
			m.pass(time.Second)
			led.Check()
		}
		assert.InDelta(t, (c.want + 1000*time.Second).Milliseconds(), led.Now()-start, 2, "%v", c.clocks)
	}
}
