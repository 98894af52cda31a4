package command

import (
	"math"
	"math/big"
	"slices"

	"rlserver/engine"
	"rlserver/internal/grammar"
)

// Args is a cursor over the arguments of a call. It keeps the first error, which End returns;
// arguments taken after it are zero values. It allocates nothing.
type Args struct {
	List [][]byte // without the command's name
	Keys []engine.Key
	Wait int64 // ms, from the option WAIT; 0: there was none
	Err  error
}

// More reports whether an argument is left and nothing has failed.
func (a *Args) More() bool { return a.Err == nil && len(a.List) > 0 }

// Left returns how many arguments have not been taken yet.
func (a *Args) Left() int { return len(a.List) }

// Fail records an error, if it is the first.
func (a *Args) Fail(err error) {
	if a.Err == nil {
		a.Err = err
	}
}

// Next takes an argument. Its bytes are valid until the call ends.
func (a *Args) Next() []byte {
	if a.Err != nil {
		return nil
	}
	if len(a.List) == 0 {
		a.Fail(engine.ErrSyntax)
		return nil
	}
	b := a.List[0]
	a.List = a.List[1:]
	return b
}

// Key takes an argument that the command's key specification names as a key: only those are locked.
func (a *Args) Key() engine.Key {
	a.Next()
	if a.Err != nil {
		return engine.Key{}
	}
	if len(a.Keys) == 0 {
		a.Fail(engine.ErrSyntax)
		return engine.Key{}
	}
	k := a.Keys[0]
	a.Keys = a.Keys[1:]
	return k
}

// Integer takes a 64-bit integer.
func (a *Args) Integer() int64 { return a.IntegerOr(engine.ErrNotInteger) }

// IntegerOr takes a 64-bit integer. A malformed one fails with err, a missing one is a syntax
// error.
func (a *Args) IntegerOr(err engine.Error) int64 {
	b := a.Next()
	if a.Err != nil {
		return 0
	}
	n, ok := grammar.ParseInt(b)
	if !ok {
		a.Fail(err)
	}
	return n
}

// Rest takes all remaining arguments.
func (a *Args) Rest() [][]byte {
	if a.Err != nil {
		return nil
	}
	all := a.List
	a.List = nil
	return all
}

// Strings takes all remaining arguments.
func (a *Args) Strings() (list []string) {
	for a.More() {
		list = append(list, string(a.Next()))
	}
	return list
}

// Float takes a floating point number that is not NaN.
func (a *Args) Float() float64 { return a.FloatOr(engine.ErrNotFloat) }

// FloatOr takes a floating point number that is not NaN. A malformed one fails with err.
func (a *Args) FloatOr(err engine.Error) float64 {
	b := a.Next()
	if a.Err != nil {
		return 0
	}
	f, ok := grammar.ParseFloat(b)
	if !ok {
		a.Fail(err)
	}
	return f
}

// Word takes the next argument if it is w, in any case, and reports whether it was. w is in upper
// case.
func (a *Args) Word(w string) bool {
	if !a.More() || !grammar.EqualFold(a.List[0], w) {
		return false
	}
	a.List = a.List[1:]
	return true
}

// Either takes one of two words, and reports whether it is the first.
func (a *Args) Either(first, second string) bool {
	if a.Word(first) {
		return true
	}
	if !a.Word(second) {
		a.Fail(engine.ErrSyntax)
	}
	return false
}

// Choice takes one of some words, in any case, and returns its index. Anything else fails with err.
func (a *Args) Choice(err engine.Error, words ...string) int {
	at := slices.IndexFunc(words, a.Word)
	if at < 0 {
		a.Fail(err)
	}
	return max(at, 0)
}

// End returns the first error, which is a syntax error if an argument is left.
func (a *Args) End() error {
	if len(a.List) > 0 {
		a.Fail(engine.ErrSyntax)
	}
	return a.Err
}

// LongDoubleIn parses b, an argument that was taken before; absent is the result if b is nil.
func (a *Args) LongDoubleIn(b []byte, absent *big.Float, err engine.Error) *big.Float {
	if b == nil {
		return absent
	}
	f, ok := grammar.ParseLongDouble(b)
	if !ok {
		a.Fail(err)
	}
	return f
}

// Picks takes the arguments of ZRANDMEMBER and HRANDFIELD after the key: a count, and the option
// with (WITHSCORES or WITHVALUES), which more reports.
func (a *Args) Picks(with string) (n int64, more bool) {
	n = a.Integer()
	if n == math.MinInt64 {
		a.Fail(ErrBelowLongMin)
	}
	more = a.Left() == 1 && a.Word(with)
	if a.Left() > 0 {
		a.Fail(engine.ErrSyntax)
	}
	if n < -maxPicks || more && n > math.MaxInt64/2 {
		a.Fail(errOutOfRange)
	}
	return n, more
}

// Int32Or takes a 32-bit integer. It fails with malformed or outOfRange.
func (a *Args) Int32Or(malformed, outOfRange engine.Error) int64 {
	n := a.IntegerOr(malformed)
	if n < math.MinInt32 || n > math.MaxInt32 {
		a.Fail(outOfRange)
	}
	return n
}

// maxPicks limits the reply to a ZRANDMEMBER or HRANDFIELD that may repeat elements. Redis
// continues until it is out of memory.
const maxPicks = 1_000_000

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

// Deadline parses an amount of time of at least least, in units of unit ms, and returns the
// deadline in Unix ms. The deadline may have passed. It fails if the amount is out of range or the
// deadline does not fit in 64 bits.
func (c *Call) Deadline(amount []byte, least, unit int64, absolute bool) int64 {
	n, ok := grammar.ParseInt(amount)
	if !ok {
		c.Args.Fail(engine.ErrNotInteger)
		return 0
	}
	now := c.Tx.Now()
	if absolute {
		now = 0
	}
	if n < least || n > math.MaxInt64/unit || n < math.MinInt64/unit || n*unit > math.MaxInt64-now {
		c.Args.Fail(engine.Error("ERR invalid expire time in '" + c.Command.FullName() + "' command"))
		return 0
	}
	return now + n*unit
}
