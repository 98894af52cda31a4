package resp

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/clock"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

const (
	hour = int64(time.Hour / time.Microsecond)
	year = 365 * 24 * hour
)

// steps are what a system clock may do, µs.
var steps = []int64{1e6, -1e6, hour, -hour, 10 * year, -10 * year}

// step lets the system clock jump.
func (b *bubble) step(us int64) { b.shift.Add(us) }

// withClock is inBubble with a server that looks at the system clock once a second.
func withClock(t *testing.T, test func(t *testing.T, b *bubble)) {
	inBubble(t, func(t *testing.T, b *bubble) {
		stop := b.Time.Run()
		defer stop()
		test(t, b)
	})
}

// requireHears compares the replies that clients got up to a moment, "name reply" in order, with
// when: within 1 ms a second.
func (b *bubble) requireHears(until int64, want ...received) {
	b.t.Helper()
	b.pass(until)
	said := b.sortedReplies()
	require.Len(b.t, said, len(want), "%v", said)
	for i, s := range said {
		assert.Equal(b.t, want[i].name, s.name, "%v", said)
		assert.True(b.t, strings.HasPrefix(s.text, want[i].text), "%v instead of %v", s, want[i])
		assert.InDelta(b.t, want[i].at, s.at, 1+float64(want[i].at)/1000, "%v", said)
	}
}

// A timeout takes as long as it says, whatever the system clock does meanwhile.
func TestTimeoutsGoByTheMonotonicClock(t *testing.T) {
	for _, step := range steps {
		t.Run(fmt.Sprint(time.Duration(step)*time.Microsecond), func(t *testing.T) {
			withClock(t, func(t *testing.T, b *bubble) {
				b.calls("taken", "RL.SLIDE full 1 20s\nRL.SLIDE half 2 1m")
				b.calls("pop", "BZPOPMIN nothing 5")
				b.calls("pops", "BZMPOP 7 1 nothing MIN")
				b.calls("large", "RL.SLIDE half 2 1m COST 2 WAIT 70s")
				// it fits, but is behind the large one until its time is over
				b.calls("small", "RL.SLIDE half 2 1m WAIT 30s")
				b.calls("slide", "RL.SLIDE full 1 20s WAIT 21s")
				b.calls("lease", "RL.LEASE one 1 10s a")
				b.calls("next", "RL.LEASE one 1 10s b WAIT 1m")
				b.takeReplies()
				b.pass(1000)
				b.step(step)
				b.requireHears(
					30500,
					received{5000, "pop", "*-1"},
					received{7000, "pops", "*-1"},
					received{10000, "next", "*5 :1"},
					received{
						20000,
						"slide",
						"*5 :1",
					},
					received{30000, "large", "*5 :0"},
					received{30000, "small", "*5 :1"},
				)
				c := b.dial()
				assert.Contains(t, c.do("RL.LEASE one 1 10s c"), "*5 :1", "the second has lapsed too")
				c.Close()
			})
		})
	}
}

// A long timeout does not end with the jump of server time after a minute; a call that the jump
// admits is admitted then.
func TestAJumpOfServerTimeEndsNoTimeout(t *testing.T) {
	for _, step := range []int64{hour, 10 * year} {
		withClock(t, func(t *testing.T, b *bubble) {
			b.calls("taken", "RL.SLIDE full 1 50m")
			b.calls("pop", "BZPOPMIN nothing 100")
			b.calls("slide", "RL.SLIDE full 1 50m WAIT 2h")
			b.takeReplies()
			b.step(step)
			b.requireHears(60500)
			b.requireHears(120000, received{61000, "slide", "*5 :1"}, received{100000, "pop", "*-1"})
		})
	}
}

// Whatever the system clock does, limiters refill as time passes, and INFO reports the difference.
func TestLimitersGoOnAsTheSystemClockJumps(t *testing.T) {
	for _, step := range steps {
		t.Run(fmt.Sprint(time.Duration(step)*time.Microsecond), func(t *testing.T) {
			withClock(t, func(t *testing.T, b *bubble) {
				c := b.dial()
				bucket := func() string { return c.do("RL.TOKEN t 10 10 10s COST 10") }
				assert.Contains(t, bucket(), "*5 :1")
				b.step(step)
				assert.Equal(t, fmt.Sprint(step/1000), c.info("clock_difference_ms"))
				b.pass(9000)
				assert.Contains(t, bucket(), "*5 :0 :10 :")
				b.pass(10010)
				assert.Contains(t, bucket(), "*5 :1")
				b.step(-step)
				b.pass(20020)
				assert.Contains(t, bucket(), "*5 :1")
				b.pass(200_000)
				assert.Contains(t, bucket(), "*5 :1")
				assert.Equal(t, "0", c.info("clock_difference_ms"))
				c.Close()
			})
		})
	}
}

// info is a field of INFO.
func (c *testClient) info(name string) string {
	_, after, _ := strings.Cut(c.do("INFO server"), name+":")
	value, _, _ := strings.Cut(after, "\r\n")
	return value
}

func TestInfoReportsTheClock(t *testing.T) {
	withClock(t, func(t *testing.T, b *bubble) {
		c := b.dial()
		show := func() string {
			return c.info("clock_difference_ms") + " " + c.info("clock_state") + " " + c.info("clock_state_ends_in_sec")
		}
		assert.Equal(t, "0 synced 0", show())
		b.step(2e6)
		assert.Equal(t, "2000 slewing 4000", show())
		b.step(-2e6 - hour)
		b.pass(30_000)
		assert.Equal(t, "-3600000 waiting 31", show())
		b.pass(62_000)
		assert.Equal(t, "-3599999 slewing 7199999", show())
		b.step(2 * hour)
		b.pass(63_000)
		assert.Equal(t, "3600001 waiting 60", show())
		b.pass(123_500)
		assert.Equal(t, "0 synced 0", show())
		c.Close()
	})
}

// The fields age and idle of CLIENT LIST are durations.
func TestAgeAndIdleGoByTheMonotonicClock(t *testing.T) {
	withClock(t, func(t *testing.T, b *bubble) {
		c, idle := b.dial(), b.dial()
		assert.Equal(t, "+PONG", idle.do("PING"))
		b.step(hour)
		b.pass(100_000)
		require.Equal(t, clock.Synced, b.Time.Status().State)
		line, _, _ := strings.Cut(c.do("CLIENT LIST ID 2"), "flags")
		assert.Contains(t, line, "age=100 idle=100 ")
		c.Close()
		idle.Close()
	})
}

// A client that has closed its half of the connection gets the replies of calls that take no longer
// than a second.
func TestOnlyLongCallsEndWithTheirClient(t *testing.T) {
	now := int64(testStart)
	server := newBenchSession(func() int64 { return now }).server
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	conn, err := ln.Accept()
	require.NoError(t, err)
	defer conn.Close()
	s := server.newSession(wire.NewGuard(conn, server.limits, server.Settings.Timeout))
	client.Close()
	require.Eventually(t, s.guard.Gone, 10*time.Second, time.Millisecond)
	now += 10_000
	s.updateProfile(nil, server.Time.Elapsed())
	now += 999
	assert.NoError(t, s.Call.Unwanted())
	now++
	assert.ErrorIs(t, s.Call.Unwanted(), command.ErrGone)
}

func TestThrottleCountsWhatItSkips(t *testing.T) {
	var l throttle
	for _, step := range []struct {
		now, missed int64
		ok          bool
	}{{0, 0, true}, {1, 0, false}, {999, 0, false}, {1000, 2, true}, {1500, 0, false}, {5000, 1, true}} {
		missed, ok := l.allow(step.now, time.Second)
		assert.Equal(t, step.missed, missed)
		assert.Equal(t, step.ok, ok)
	}
}
