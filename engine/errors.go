package engine

import "rlserver/engine/rule"

// Error is a failure that is told to the client as it stands: the first word is its code, the rest says what is wrong.
// Everything else that fails is a fault of ours and reaches the client as an internal error.
type Error = rule.Error

// The errors an operation on the keyspace can give, in Redis' words where Redis has them.
const (
	ErrWrongType      = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
	ErrSyntax         = Error("ERR syntax error")
	ErrNotInteger     = Error("ERR value is not an integer or out of range")
	ErrNotFloat       = Error("ERR value is not a valid float")
	ErrHashNotInteger = Error("ERR hash value is not an integer")
	ErrHashNotFloat   = Error("ERR hash value is not a float")
	ErrOverflow       = Error("ERR increment or decrement would overflow")
	ErrNaNOrInfinity  = Error("ERR increment would produce NaN or Infinity")
	ErrScoreNaN       = Error("ERR resulting score is not a number (NaN)")
	ErrNoSuchKey      = Error("ERR no such key")
	ErrSameObject     = Error("ERR source and destination objects are the same")
	ErrStringTooLong  = Error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
	ErrOutOfMemory    = Error("OOM command not allowed when used memory > 'maxmemory'.")
	ErrTooManyHits    = Error("ERR COST must be at most 1000000 for a sliding window, which keeps a member per hit: use RL.TOKEN or RL.FIXED for larger costs")
	ErrManyHits       = Error("ERR COST times the number of sliding windows' keys must be at most 1000000: each keeps a member per hit")
	ErrNoIDs          = Error("ERR ID goes with a sliding window: no other limiter knows its hits by name")
)
