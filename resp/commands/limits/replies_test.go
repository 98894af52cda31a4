package limits_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/command"
	"rlserver/resp/commands/limits"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestLimiterReplies(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	for _, step := range []struct {
		wait int64 // ms before the call
		call string
		want string
	}{
		{0, "RL.TOKEN t 2 1 1s", "*5 :1 :2 :1 :0 :1000"},
		{0, "rl.token t 2 1 1s COST 2", "*5 :0 :2 :1 :1000 :1000"},
		{0, "RL.TOKEN t 2 1 1s COST 3", "*5 :0 :2 :1 :-1 :1000"},
		{0, "RL.TOKEN t 2 1 1s COST 0", "*5 :1 :2 :1 :0 :1000"},
		{999, "RL.TOKEN t 2 1 1s cost 2", "*5 :0 :2 :1 :1 :1"},
		{1, "RL.TOKEN t 2 1 1s COST 2", "*5 :1 :2 :0 :0 :2000"},
		{0, "RL.FIXED f 2 1m", "*5 :1 :2 :1 :0 :59000"},
		{0, "RL.FIXED f 2 1m COST 2", "*5 :0 :2 :1 :59000 :59000"},
		{0, "RL.FIXED day 1 day TZ Europe/Berlin", "*5 :1 :1 :0 :0 :82799000"},
	} {
		ts.Advance(step.wait)
		require.Equal(t, step.want, c.Do(step.call), step.call)
	}
}

// A limitStep is a call at a given time, and its reply.
type limitStep struct {
	at   string // since midnight of the first day, in UTC
	call string
	want string
}

// requireSteps sets the clock to the time of each step, sends its call and compares the reply.
func requireSteps(t *testing.T, steps []limitStep) {
	t.Helper()
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	for _, step := range steps {
		at, err := time.ParseDuration(step.at)
		require.NoError(t, err)
		ts.Advance(resptest.StartTime + at.Milliseconds() - ts.Now.Load())
		require.Equal(t, step.want, c.Do(step.call), "%s at %s", step.call, step.at)
	}
}

// A limit of three messages an hour, and a sender that knows when the hour ends: the fixed window
// admits six within two minutes, the sliding window three.
func TestThreeMessagesAnHour(t *testing.T) {
	const fixed, slide = "RL.FIXED fixed 3 hour", "RL.SLIDE slide 3 1h"
	requireSteps(t, []limitStep{
		{"1h59m", fixed, "*5 :1 :3 :2 :0 :60000"},
		{"1h59m", fixed, "*5 :1 :3 :1 :0 :60000"},
		{"1h59m", fixed, "*5 :1 :3 :0 :0 :60000"},
		{"1h59m", fixed, "*5 :0 :3 :0 :60000 :60000"},
		{"1h59m", slide, "*5 :1 :3 :2 :0 :3600000"},
		{"1h59m", slide, "*5 :1 :3 :1 :0 :3600000"},
		{"1h59m", slide, "*5 :1 :3 :0 :0 :3600000"},
		{"1h59m", slide, "*5 :0 :3 :0 :3600000 :3600000"},

		{"2h1m", fixed, "*5 :1 :3 :2 :0 :3540000"},
		{"2h1m", fixed, "*5 :1 :3 :1 :0 :3540000"},
		{"2h1m", fixed, "*5 :1 :3 :0 :0 :3540000"},
		{"2h1m", slide, "*5 :0 :3 :0 :3480000 :3480000"},

		{"2h58m59.999s", slide, "*5 :0 :3 :0 :1 :1"},
		{"2h59m", slide, "*5 :1 :3 :2 :0 :3600000"},
	})
}

// A day of mail to one person: at most once a minute, five times an hour, ten times a day. The last
// integer of a reply is the index of the window that the reply describes.
func TestMailOnceAMinuteFiveAnHourTenADay(t *testing.T) {
	const mail = "RL.MULTI mail:ann 1 1m 5 1h 10 1d"
	const sent = "*6 :1 :1 :0 :0 :86400000 :0"
	requireSteps(t, []limitStep{
		{"0s", mail, sent},
		{"0s", mail, "*6 :0 :1 :0 :60000 :86400000 :0"},
		{"59.999s", mail, "*6 :0 :1 :0 :1 :86340001 :0"},
		{"1m", mail, sent},
		{"2m", mail, sent},
		{"3m", mail, sent},
		{"4m", mail, sent},
		// the minute alone would admit it after 30 s
		{"4m30s", mail, "*6 :0 :5 :0 :3330000 :86370000 :1"},
		{"5m", mail, "*6 :0 :5 :0 :3300000 :86340000 :1"},
		{"59m59.999s", mail, "*6 :0 :5 :0 :1 :83040001 :1"},

		{"1h", mail, sent},
		{"1h30s", mail, "*6 :0 :1 :0 :30000 :86370000 :0"},
		{"1h1m", mail, sent},
		{"1h2m", mail, sent},
		{"1h3m", mail, sent},
		{"1h4m", mail, sent},
		{"1h5m", mail, "*6 :0 :10 :0 :82500000 :86340000 :2"},
		{"12h", mail, "*6 :0 :10 :0 :43200000 :47040000 :2"},
		{"23h59m59.999s", mail, "*6 :0 :10 :0 :1 :3840001 :2"},

		{"24h", "ZCARD mail:ann", ":10"}, // denied calls do not count
		{"24h", mail, sent},
		// the wait for the day is as long; the first window is reported
		{"24h30s", mail, "*6 :0 :1 :0 :30000 :86370000 :0"},
		{"24h1m", mail, sent},
	})
}

func TestMultiWindowsAreLimited(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	most := "RL.MULTI k" + strings.Repeat(" 1 1s", limits.MaxWindows)
	assert.Equal(t, "-ERR too many windows: RL.MULTI takes at most 128", c.Do(most+" 1 1s"))
	assert.Equal(t, "+none", c.Do("TYPE k"))
	assert.Equal(t, "*6 :1 :1 :0 :0 :1000 :0", c.Do(most))
	assert.Equal(t, "-ERR syntax error", c.Do("RL.MULTI k 1 1s FOO 3"))
	assert.Equal(t, "-ERR syntax error", c.Do("RL.MULTI k 1 1s COST 1 COST 1"))
	assert.Equal(t, "-ERR limit must be from 1 to 9007199254740991", c.Do("RL.MULTI k 1 1s 0 1s"))
}

// Only names of the IANA database are time zones: not other files in its directories, nor the
// machine's own zone.
func TestZones(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "EST5EDT",
		"GMT", "W-SU"} {
		assert.Regexp(t, `^\*5 :1 `, c.Do("RL.FIXED "+zone+" 5 day TZ "+zone), zone)
	}
	for _, zone := range []string{"Local", "localtime", "posix/UTC", "right/Europe/Berlin", "Europe//Berlin",
		"./Europe/Berlin", "Europe/./Berlin",
		"../../etc/passwd", "/etc/localtime", "Europe/Berlin/", "Mars/Olympus", "europe/berlin", "Europe",
		strings.Repeat("A", command.MaxWordLen)} {
		assert.Regexp(
			t,
			`^-ERR unknown time zone '.*': TZ takes an IANA name such as UTC or Europe/Berlin$`,
			c.Send("RL.FIXED", "k", "5", "day", "TZ", zone),
		)
	}
	assert.Regexp(t, `^-ERR unknown time zone`, c.Send("RL.FIXED", "k", "5", "day", "TZ", ""))
	assert.Equal(
		t,
		"-ERR TZ goes with a window of the calendar: minute, hour, day, week, month or year",
		c.Do("RL.FIXED k 5 1d TZ UTC"),
	)
	assert.Equal(t, ":0", c.Do("EXISTS k"))
}

// The sliding window counter alone, with a refund, in RL.ALL and as a policy.
func TestCounter(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	start := ts.Now.Load()
	ts.Advance((start/10_000+1)*10_000 - start) // to the beginning of a window
	for _, step := range []struct {
		wait int64 // ms before the call
		call string
		want string
	}{
		{0, "RL.COUNTER k 10 10s COST 8", "*5 :1 :10 :2 :0 :20000"},
		{0, "TYPE k", "+rl.counter"},
		{0, "PTTL k", ":20000"},
		{0, "rl.counter k 10 10s cost 3", "*5 :0 :10 :2 :11250 :20000"},
		{11249, "RL.COUNTER k 10 10s COST 3", "*5 :0 :10 :2 :1 :8751"},
		{1, "RL.COUNTER k 10 10s COST 3", "*5 :1 :10 :0 :0 :18750"},
		{0, "RL.COUNTER k 10 10s COST 11", "*5 :0 :10 :0 :-1 :18750"},
		{0, "RL.REFUND k 1", ":1"},
		{0, "RL.REFUND k 1 ID x", "-ERR ID goes with a sliding window: no other limiter knows its hits by name"},
		{0, "RL.COUNTER k 10 10s COST 0", "*5 :1 :10 :1 :0 :18750"},
		{0, "RL.COUNTER k 10 1x", "-ERR invalid duration '1x': use seconds, or a number with ms, s, m, h, d or w"},
		{0, "RL.ALL k COUNTER 10 10s t TOKEN 5 1 1s COST 2", "*6 :0 :10 :1 :1250 :18750 :0"},
		{0, "RL.ALL t TOKEN 5 1 1s k COUNTER 10 10s", "*6 :1 :10 :0 :0 :18750 :1"},
		{0, "RL.POLICY SET p COUNTER 10 10", "+OK"},
		{0, "RL.POLICY GET p", "$14 COUNTER 10 10s"},
		{0, "RL.CHECK ann p COST 10", "*6 :1 :10 :0 :0 :18750 :0"},
		{0, "RL.CHECK ann p", "*6 :0 :10 :0 :9750 :18750 :0"},
	} {
		ts.Advance(step.wait)
		require.Equal(t, step.want, c.Do(step.call), step.call)
	}
}
