package resp

import "rlserver/engine"

const (
	errNoAuth         = engine.Error("NOAUTH Authentication required.")
	errLoading        = engine.Error("LOADING Redis is loading the dataset in memory")
	errTooManyWindows = engine.Error("ERR too many windows: RL.MULTI takes at most 128")
	errEmptyID        = engine.Error("ERR ID must not be empty")
	errEmptyLease     = engine.Error("ERR id must not be empty: it is what a lease is renewed and released by")
	errTooManyRules   = engine.Error("ERR too many rules: RL.ALL takes at most 128")
	errNoSuchDB       = engine.Error("ERR DB index is out of range")
	errNotPositive    = engine.Error("ERR value is out of range, must be positive")
)
