package clock

import (
	"log/slog"
	"time"
)

const (
	remindAfter = time.Hour   // time between log lines about a lasting difference
	repeatAfter = time.Minute // time between log lines about a clock that keeps jumping

	// noticeable is the smallest difference that is logged, µs.
	noticeable = int64(100 * time.Millisecond / time.Microsecond)
)

// repairHint is the advice for a difference that takes long to slew.
const repairHint = `stop the server and run "rlserver repair --clock DIR" to move the data back to the present`

// report logs differences.
type report struct {
	warned   time.Duration // when a step was last logged, elapsed time
	unlogged bool          // the current step was not logged, because it soon followed another one
	logged   time.Duration // when slewing was last logged, elapsed time
	open     bool          // the end of slewing is not logged yet
	stale    bool          // the difference has changed since it was logged
}

// farBehind reports that the data is far behind the system clock.
func (r *report) farBehind(log *slog.Logger, difference int64) {
	log.Warn(
		"the system clock is more than a week ahead of the data: server time follows if that lasts for a minute",
		"difference", round(difference))
}

func (r *report) waiting(log *slog.Logger, difference int64, elapsed time.Duration) {
	if r.unlogged = r.warned != 0 && elapsed-r.warned < repeatAfter; r.unlogged {
		return
	}
	r.warned = elapsed
	log.Warn("the system clock has jumped: server time follows if that lasts for a minute",
		"difference", round(difference))
}

func (r *report) undone(log *slog.Logger, difference int64) {
	if r.unlogged {
		return
	}
	log.Info("the system clock has jumped back: server time has not followed", "difference", round(difference))
}

func (r *report) followed(log *slog.Logger, difference int64, elapsed time.Duration) {
	if difference > 0 {
		log.Warn("the jump of the system clock has lasted for a minute: server time has jumped forward",
			"by", round(difference))
		return
	}
	r.ahead(log, difference, elapsed)
}

// ahead reports that server time is far ahead of the system clock.
func (r *report) ahead(log *slog.Logger, difference int64, elapsed time.Duration) {
	r.logged, r.open, r.stale = elapsed, true, false
	log.Warn(
		"server time is ahead of the system clock, and cannot jump backward: it is slewed. "+
			"Durations are correct; absolute times such as EXPIREAT are off",
		"difference",
		round(difference),
		"slewed_in",
		slewTime(difference).Round(time.Second),
		"to_correct_it_now",
		repairHint,
	)
}

// slewing reports a difference in µs that is being slewed: its begin, its changes, its end, and
// once an hour.
func (r *report) slewing(log *slog.Logger, difference, changed int64, elapsed time.Duration) {
	r.stale = r.stale || !near(changed, noticeable-1)
	again := remindAfter
	if r.stale {
		again = repeatAfter
	}
	switch {
	case near(difference, tolerance) && r.open:
		r.open = false
		log.Info("server time agrees with the system clock")
	case near(difference, noticeable-1) || r.open && elapsed-r.logged < again:
	case difference < -longestSlew:
		r.ahead(log, difference, elapsed)
	default:
		r.logged, r.open, r.stale = elapsed, true, false
		log.Info("server time is being slewed towards the system clock",
			"difference", round(difference), "slewed_in", slewTime(difference).Round(time.Second))
	}
}

func round(us int64) time.Duration { return duration(us).Round(time.Millisecond) }
