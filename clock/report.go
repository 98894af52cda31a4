package clock

import (
	"log/slog"
	"time"
)

const (
	remindAfter = time.Hour                                        // how often a difference is logged that lasts
	repeatAfter = time.Minute                                      // how often a system clock that keeps jumping is
	noticeable  = int64(100 * time.Millisecond / time.Microsecond) // the least difference that is logged, µs
)

// repairHint says what to do about a difference that slewing does not end soon.
const repairHint = `stop the server and run "rlserver repair --clock DIR" to take the data back to the present`

// report writes to the log what becomes of differences.
type report struct {
	warned   time.Duration // elapsed when a step was last logged
	unlogged bool          // the one that is being waited for was not, as the one before came just before it
	told     time.Duration // elapsed when a difference that is being slewed was logged
	open     bool          // its end was not
	stale    bool          // it has changed since
}

// farBehind reports data that is much older than the system clock tells.
func (r *report) farBehind(log *slog.Logger, difference int64) {
	log.Warn("the system clock is more than a week ahead of the data: it is followed when it has stood by that for a minute",
		"difference", round(difference))
}

func (r *report) waiting(log *slog.Logger, difference int64, elapsed time.Duration) {
	if r.unlogged = r.warned != 0 && elapsed-r.warned < repeatAfter; r.unlogged {
		return
	}
	r.warned = elapsed
	log.Warn("the system clock has jumped: it is followed when it has stood by that for a minute",
		"difference", round(difference))
}

func (r *report) takenBack(log *slog.Logger, difference int64) {
	if r.unlogged {
		return
	}
	log.Info("the system clock has jumped back: there is nothing to follow", "difference", round(difference))
}

func (r *report) followed(log *slog.Logger, difference int64, elapsed time.Duration) {
	if difference > 0 {
		log.Warn("the system clock has stood by its jump for a minute: server time has jumped forward",
			"by", round(difference))
		return
	}
	r.ahead(log, difference, elapsed)
}

// ahead reports that server time is far ahead of the system clock.
func (r *report) ahead(log *slog.Logger, difference int64, elapsed time.Duration) {
	r.told, r.open, r.stale = elapsed, true, false
	log.Warn("server time is ahead of the system clock, and cannot jump backward: it is slewed. "+
		"Durations are right; absolute times such as EXPIREAT are off",
		"difference", round(difference), "slewed_in", slewTime(difference).Round(time.Second), "to_correct_it_now", repairHint)
}

// slewing reports a difference that is being slewed away, µs: when it begins, when it has changed,
// once an hour, and its end.
func (r *report) slewing(log *slog.Logger, difference, changed int64, elapsed time.Duration) {
	r.stale = r.stale || !near(changed, noticeable-1)
	again := remindAfter
	if r.stale {
		again = repeatAfter
	}
	switch {
	case near(difference, agreement) && r.open:
		r.open = false
		log.Info("server time agrees with the system clock")
	case near(difference, noticeable-1) || r.open && elapsed-r.told < again:
	case difference < -longestSlew:
		r.ahead(log, difference, elapsed)
	default:
		r.told, r.open, r.stale = elapsed, true, false
		log.Info("server time is being slewed towards the system clock",
			"difference", round(difference), "slewed_in", slewTime(difference).Round(time.Second))
	}
}

func round(us int64) time.Duration { return duration(us).Round(time.Millisecond) }
