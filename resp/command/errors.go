package command

import "rlserver/engine"

const (
	ErrNoAuth = engine.Error("NOAUTH Authentication required.")
	// ErrBusy refuses a call on the keys of a script that takes too long.
	ErrBusy = engine.ErrBusy

	ErrLoading        = engine.Error("LOADING Redis is loading the dataset in memory")
	ErrTooManyWindows = engine.Error("ERR too many windows: RL.MULTI takes at most 128")
	ErrEmptyID        = engine.Error("ERR ID must not be empty")
	ErrEmptyLease     = engine.Error("ERR id must not be empty: a lease is renewed and released by its id")
	ErrTooManyRules   = engine.Error("ERR too many rules: RL.ALL takes at most 128")
	ErrNoSuchDB       = engine.Error("ERR DB index is out of range")
	ErrNotPositive    = engine.Error("ERR value is out of range, must be positive")
	errNotInt32       = engine.Error("ERR value is out of range, value must between -2147483648 and 2147483647")
	// ErrBelowLongMin refuses the one integer that cannot be negated.
	ErrBelowLongMin = engine.Error(
		"ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
	)
	// ErrNoShardInExec refuses SSUBSCRIBE within EXEC.
	ErrNoShardInExec = engine.Error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")

	errOutOfRange = engine.Error("ERR value is out of range")
)
