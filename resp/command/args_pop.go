package command

import (
	"math"
	"math/big"

	"rlserver/engine"
)

// Errors of the arguments that the commands which pop from several keys share.
const (
	ErrNumKeys = engine.Error("ERR numkeys should be greater than 0")

	errPopCount        = engine.Error("ERR count should be greater than 0")
	errTimeoutFloat    = engine.Error("ERR timeout is not a float or out of range")
	errTimeoutNegative = engine.Error("ERR timeout is negative")
)

// IntegerFrom takes an integer of at least least; anything else is err.
func (a *Args) IntegerFrom(least int64, err engine.Error) int64 {
	n := a.IntegerOr(err)
	if n < least {
		a.Fail(err)
	}
	return n
}

// CountedKeys takes n keys. If fewer than leave arguments follow them, that is a syntax error.
func (a *Args) CountedKeys(n int64, leave int) []engine.Key {
	if n > int64(a.Left()-leave) {
		a.Fail(engine.ErrSyntax)
	}
	if a.Err != nil {
		return nil
	}
	keys := a.Keys[:n]
	for range keys {
		a.Key()
	}
	return keys
}

// Pops takes numkeys key [key ...] <one | other> [COUNT count]: the keys of a pop, from which end
// it pops, and how many elements; 1 by default.
func (a *Args) Pops(one, other string) (keys []engine.Key, isOther bool, n int64) {
	keys = a.CountedKeys(a.IntegerFrom(1, ErrNumKeys), 1)
	isOther = a.Either(other, one)
	if n = 1; a.Left() > 1 && a.Word("COUNT") {
		n = a.IntegerFrom(1, errPopCount)
	}
	return keys, isOther, n
}

// Timeout takes a timeout in decimal seconds, and returns it in ms, rounded up; Never for 0, which
// is no timeout. As in Redis, one that overflows is an error that says negative.
func (a *Args) Timeout() (ms int64) {
	seconds := a.LongDoubleIn(a.Next(), nil, errTimeoutFloat)
	if a.Err != nil {
		return 0
	}
	ms, accuracy := seconds.Mul(seconds, big.NewFloat(1000)).Int64()
	switch {
	case ms < 0 || ms == math.MaxInt64 && accuracy == big.Below:
		a.Fail(errTimeoutNegative)
	case accuracy == big.Below:
		ms++
	}
	if ms == 0 {
		return Never
	}
	return ms
}
