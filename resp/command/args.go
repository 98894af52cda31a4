package command

import (
	"math"
	"math/big"

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
