package resp

import "rlserver/engine"

const (
	errNoAuth         = engine.Error("NOAUTH Authentication required.")
	errLoading        = engine.Error("LOADING Redis is loading the dataset in memory")
	errTooManyWindows = engine.Error("ERR too many windows: RL.MULTI takes at most 128")
	errEmptyID        = engine.Error("ERR ID must not be empty")
	errEmptyLease     = engine.Error("ERR id must not be empty: it is what a lease is renewed and released by")
	errRule           = engine.Error("ERR syntax error: a rule is a key and SLIDE limit window, TOKEN capacity refill period, FIXED limit window [TZ zone] or LEASE limit ttl id; " +
		"behind the rules may stand COST cost and WAIT timeout")
	errTooManyRules   = engine.Error("ERR too many rules: RL.ALL takes at most 128")
	errZoneOfDuration = engine.Error("ERR TZ goes with a window of the calendar: minute, hour, day, week, month or year")
)
