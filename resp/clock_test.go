package resp

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/clock"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

const (
	hour = int64(time.Hour / time.Microsecond)
	year = 365 * 24 * hour
)

// steps are jumps of the system clock, in µs.
var steps = []int64{1e6, -1e6, hour, -hour, 10 * year, -10 * year}

// step makes the system clock jump by us microseconds.
func (b *bubble) step(us int64) { b.shift.Add(us) }

// withClock is inBubble with a server that reads the system clock once a second.
func withClock(t *testing.T, test func(t *testing.T, b *bubble)) {
	inBubble(t, func(t *testing.T, b *bubble) {
		stop := b.Time.Run()
		defer stop()
		test(t, b)
	})
}

// requireReplies advances the clock to until, and compares the replies that clients got with want,
// in order. A time may differ by 1 ms per second.
func (b *bubble) requireReplies(until int64, want ...received) {
	b.t.Helper()
	b.passUntil(until)
	got := b.sortedReplies()
	require.Len(b.t, got, len(want), "%v", got)
	for i, s := range got {
		assert.Equal(b.t, want[i].name, s.name, "%v", got)
		assert.True(b.t, strings.HasPrefix(s.text, want[i].text), "%v instead of %v", s, want[i])
		assert.InDelta(b.t, want[i].at, s.at, 1+float64(want[i].at)/1000, "%v", got)
	}
}

// A timeout lasts as long as requested, whatever the system clock does.
func TestTimeoutsUseTheMonotonicClock(t *testing.T) {
	for _, step := range steps {
		t.Run(fmt.Sprint(time.Duration(step)*time.Microsecond), func(t *testing.T) {
			withClock(t, func(t *testing.T, b *bubble) {
				b.calls("taken", "RL.SLIDE full 1 20s\nRL.SLIDE half 2 1m")
				b.calls("pop", "BZPOPMIN nothing 5")
				b.calls("pops", "BZMPOP 7 1 nothing MIN")
				b.calls("large", "RL.SLIDE half 2 1m COST 2 WAIT 70s")
				// it fits, but is queued behind the large one when it times out
				b.calls("small", "RL.SLIDE half 2 1m WAIT 30s")
				b.calls("slide", "RL.SLIDE full 1 20s WAIT 21s")
				b.calls("lease", "RL.LEASE one 1 10s a")
				b.calls("next", "RL.LEASE one 1 10s b WAIT 1m")
				b.takeReplies()
				b.passUntil(1000)
				b.step(step)
				b.requireReplies(
					30500,
					received{5000, "pop", "*-1"},
					received{7000, "pops", "*-1"},
					received{10000, "next", "*5 :1"},
					received{
						20000,
						"slide",
						"*5 :1",
					},
					received{30000, "small", "*5 :0"},
				)
				c := b.dial()
				assert.Contains(t, c.do("RL.LEASE one 1 10s c"), "*5 :1", "the second lease has expired too")
				c.Close()
			})
		})
	}
}

// Server time follows a jump of the system clock after a minute. That ends no timeout; a call that
// the new time admits is admitted then.
func TestClockJumpEndsNoTimeout(t *testing.T) {
	for _, step := range []int64{hour, 10 * year} {
		withClock(t, func(t *testing.T, b *bubble) {
			b.calls("taken", "RL.SLIDE full 1 50m")
			b.calls("pop", "BZPOPMIN nothing 100")
			b.calls("slide", "RL.SLIDE full 1 50m WAIT 2h")
			b.takeReplies()
			b.step(step)
			b.requireReplies(60500)
			b.requireReplies(120000, received{61000, "slide", "*5 :1"}, received{100000, "pop", "*-1"})
		})
	}
}

// Limiters refill as time passes, whatever the system clock does, and INFO reports the difference.
func TestLimitersRefillWhenTheSystemClockJumps(t *testing.T) {
	for _, step := range steps {
		t.Run(fmt.Sprint(time.Duration(step)*time.Microsecond), func(t *testing.T) {
			withClock(t, func(t *testing.T, b *bubble) {
				c := b.dial()
				bucket := func() string { return c.do("RL.TOKEN t 10 10 10s COST 10") }
				assert.Contains(t, bucket(), "*5 :1")
				b.step(step)
				assert.Equal(t, fmt.Sprint(step/1000), c.info("clock_difference_ms"))
				b.passUntil(9000)
				assert.Contains(t, bucket(), "*5 :0 :10 :")
				b.passUntil(10010)
				assert.Contains(t, bucket(), "*5 :1")
				b.step(-step)
				b.passUntil(20020)
				assert.Contains(t, bucket(), "*5 :1")
				b.passUntil(200_000)
				assert.Contains(t, bucket(), "*5 :1")
				assert.Equal(t, "0", c.info("clock_difference_ms"))
				c.Close()
			})
		})
	}
}

// info returns a field of INFO server.
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
		b.passUntil(30_000)
		assert.Equal(t, "-3600000 waiting 31", show())
		b.passUntil(62_000)
		assert.Equal(t, "-3599999 slewing 7199999", show())
		b.step(2 * hour)
		b.passUntil(63_000)
		assert.Equal(t, "3600001 waiting 60", show())
		b.passUntil(123_500)
		assert.Equal(t, "0 synced 0", show())
		c.Close()
	})
}

// The fields age and idle of CLIENT LIST are durations.
func TestAgeAndIdleUseTheMonotonicClock(t *testing.T) {
	withClock(t, func(t *testing.T, b *bubble) {
		c, idle := b.dial(), b.dial()
		assert.Equal(t, "+PONG", idle.do("PING"))
		b.step(hour)
		b.passUntil(100_000)
		require.Equal(t, clock.Synced, b.Time.Status().State)
		line, _, _ := strings.Cut(c.do("CLIENT LIST ID 2"), "flags")
		assert.Contains(t, line, "age=100 idle=100 ")
		c.Close()
		idle.Close()
	})
}

// A client that has closed its side of the connection still gets the replies of calls that take at
// most a second.
func TestDisconnectEndsOnlyLongCalls(t *testing.T) {
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
	require.Eventually(t, s.guard.Gone, time.Minute, time.Millisecond)
	now += 10_000
	s.updateProfile(nil, server.Time.Elapsed())
	now += 999
	assert.NoError(t, s.Call.Unwanted())
	now++
	assert.ErrorIs(t, s.Call.Unwanted(), command.ErrGone)
}
