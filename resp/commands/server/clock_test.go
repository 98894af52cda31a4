package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/clock"
	"rlserver/resp/resptest"
)

const (
	hour = int64(time.Hour / time.Microsecond)
	year = 365 * 24 * hour
)

// steps are jumps of the system clock, in µs.
var steps = []int64{1e6, -1e6, hour, -hour, 10 * year, -10 * year}

// jump makes the system clock jump by us microseconds.
func jump(b *resptest.Bubble, us int64) { b.Shift.Add(us) }

// withClock is inBubble with a server that reads the system clock once a second.
func withClock(t *testing.T, test func(t *testing.T, b *resptest.Bubble)) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		stop := b.Time.Run()
		defer stop()
		test(t, b)
	})
}

// received is a reply that is expected, see commandtest.Received.
type received struct {
	at         int64
	name, text string
}

// requireReplies advances the clock to until, and compares the replies that clients got with want,
// in order. A time may differ by 1 ms per second.
func requireReplies(b *resptest.Bubble, until int64, want ...received) {
	b.T.Helper()
	b.PassUntil(until)
	got := b.SortedReplies()
	require.Len(b.T, got, len(want), "%v", got)
	for i, s := range got {
		assert.Equal(b.T, want[i].name, s.Name, "%v", got)
		assert.True(b.T, strings.HasPrefix(s.Text, want[i].text), "%v instead of %v", s, want[i])
		assert.InDelta(b.T, want[i].at, s.At, 1+float64(want[i].at)/1000, "%v", got)
	}
}

// A timeout lasts as long as requested, whatever the system clock does.
func TestTimeoutsUseTheMonotonicClock(t *testing.T) {
	for _, step := range steps {
		t.Run(fmt.Sprint(time.Duration(step)*time.Microsecond), func(t *testing.T) {
			withClock(t, func(t *testing.T, b *resptest.Bubble) {
				b.Calls("taken", "RL.SLIDE full 1 20s\nRL.SLIDE half 2 1m")
				b.Calls("pop", "BZPOPMIN nothing 5")
				b.Calls("pops", "BZMPOP 7 1 nothing MIN")
				b.Calls("large", "RL.SLIDE half 2 1m COST 2 WAIT 70s")
				// it fits, but is queued behind the large one when it times out
				b.Calls("small", "RL.SLIDE half 2 1m WAIT 30s")
				b.Calls("slide", "RL.SLIDE full 1 20s WAIT 21s")
				b.Calls("lease", "RL.LEASE one 1 10s a")
				b.Calls("next", "RL.LEASE one 1 10s b WAIT 1m")
				b.TakeReplies()
				b.PassUntil(1000)
				jump(b, step)
				requireReplies(b,
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
				c := b.Dial()
				assert.Contains(t, c.Do("RL.LEASE one 1 10s c"), "*5 :1", "the second lease has expired too")
				c.Close()
			})
		})
	}
}

// Server time follows a jump of the system clock after a minute. That ends no timeout; a call that
// the new time admits is admitted then.
func TestClockJumpEndsNoTimeout(t *testing.T) {
	for _, step := range []int64{hour, 10 * year} {
		withClock(t, func(t *testing.T, b *resptest.Bubble) {
			b.Calls("taken", "RL.SLIDE full 1 50m")
			b.Calls("pop", "BZPOPMIN nothing 100")
			b.Calls("slide", "RL.SLIDE full 1 50m WAIT 2h")
			b.TakeReplies()
			jump(b, step)
			requireReplies(b, 60500)
			requireReplies(b, 120000, received{61000, "slide", "*5 :1"}, received{100000, "pop", "*-1"})
		})
	}
}

// Limiters refill as time passes, whatever the system clock does, and INFO reports the difference.
func TestLimitersRefillWhenTheSystemClockJumps(t *testing.T) {
	for _, step := range steps {
		t.Run(fmt.Sprint(time.Duration(step)*time.Microsecond), func(t *testing.T) {
			withClock(t, func(t *testing.T, b *resptest.Bubble) {
				c := b.Dial()
				bucket := func() string { return c.Do("RL.TOKEN t 10 10 10s COST 10") }
				assert.Contains(t, bucket(), "*5 :1")
				jump(b, step)
				assert.Equal(t, fmt.Sprint(step/1000), info(c, "clock_difference_ms"))
				b.PassUntil(9000)
				assert.Contains(t, bucket(), "*5 :0 :10 :")
				b.PassUntil(10010)
				assert.Contains(t, bucket(), "*5 :1")
				jump(b, -step)
				b.PassUntil(20020)
				assert.Contains(t, bucket(), "*5 :1")
				b.PassUntil(200_000)
				assert.Contains(t, bucket(), "*5 :1")
				assert.Equal(t, "0", info(c, "clock_difference_ms"))
				c.Close()
			})
		})
	}
}

// info returns a field of INFO server.
func info(c *resptest.Client, name string) string {
	_, after, _ := strings.Cut(c.Do("INFO server"), name+":")
	value, _, _ := strings.Cut(after, "\r\n")
	return value
}

func TestInfoReportsTheClock(t *testing.T) {
	withClock(t, func(t *testing.T, b *resptest.Bubble) {
		c := b.Dial()
		show := func() string {
			return info(c, "clock_difference_ms") + " " + info(c, "clock_state") + " " +
				info(c, "clock_state_ends_in_sec")
		}
		assert.Equal(t, "0 synced 0", show())
		jump(b, 2e6)
		assert.Equal(t, "2000 slewing 4000", show())
		jump(b, -2e6-hour)
		b.PassUntil(30_000)
		assert.Equal(t, "-3600000 waiting 31", show())
		b.PassUntil(62_000)
		assert.Equal(t, "-3599999 slewing 7199999", show())
		jump(b, 2*hour)
		b.PassUntil(63_000)
		assert.Equal(t, "3600001 waiting 60", show())
		b.PassUntil(123_500)
		assert.Equal(t, "0 synced 0", show())
		c.Close()
	})
}

// The fields age and idle of CLIENT LIST are durations.
func TestAgeAndIdleUseTheMonotonicClock(t *testing.T) {
	withClock(t, func(t *testing.T, b *resptest.Bubble) {
		c, idle := b.Dial(), b.Dial()
		assert.Equal(t, "+PONG", idle.Do("PING"))
		jump(b, hour)
		b.PassUntil(100_000)
		require.Equal(t, clock.Synced, b.Time.Status().State)
		line, _, _ := strings.Cut(c.Do("CLIENT LIST ID 2"), "flags")
		assert.Contains(t, line, "age=100 idle=100 ")
		c.Close()
		idle.Close()
	})
}
