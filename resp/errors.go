package resp

import "rlserver/engine"

const (
	errNoAuth         = engine.Error("NOAUTH Authentication required.")
	errLoading        = engine.Error("LOADING Redis is loading the dataset in memory")
	errTooManyWindows = engine.Error("ERR too many windows: RL.MULTI takes at most 128")
	errEmptyID        = engine.Error("ERR ID must not be empty")
	errZoneOfDuration = engine.Error("ERR TZ goes with a window of the calendar: minute, hour, day, week, month or year")
)
