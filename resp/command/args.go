package command

import (
	"math"
	"math/big"
	"rlserver/engine"
	"rlserver/resp/grammar"
)

// Args is a cursor over a call's arguments. The first thing that goes wrong sticks: whatever is taken afterwards is a zero value,
// and err says at the end of the parsing what it was. It allocates nothing.
type Args struct {
	List [][]byte // without the command's name
	Keys []engine.Key
	Wait int64 // ms, from the option WAIT; 0: there was none
	Err  error
}

func (a *Args) More() bool { return a.Err == nil && len(a.List) > 0 }

// Left is how many arguments have not been taken yet.
func (a *Args) Left() int { return len(a.List) }

// Fail records what is wrong, unless something was before.
func (a *Args) Fail(err error) {
	if a.Err == nil {
		a.Err = err
	}
}

// Next takes an argument as it stands.
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

// IntegerOr takes a 64-bit integer whose absence or form is answered with an error of the command's own.
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

// Float takes a floating point number that is not NaN.
func (a *Args) Float() float64 { return a.FloatOr(engine.ErrNotFloat) }

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

// Word takes the next argument if it is this word, in any case. The word is given in upper case.
func (a *Args) Word(w string) bool {
	if !a.More() || !grammar.EqualFold(a.List[0], w) {
		return false
	}
	a.List = a.List[1:]
	return true
}

// End fails with a syntax error if anything is left, and tells what went wrong, if anything did.
func (a *Args) End() error {
	if len(a.List) > 0 {
		a.Fail(engine.ErrSyntax)
	}
	return a.Err
}

// Positive takes an integer above 0.
func (a *Args) Positive(err engine.Error) int64 {
	n := a.IntegerOr(err)
	if a.Err == nil && n <= 0 {
		a.Fail(err)
	}
	return n
}

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

// Picks takes what ZRANDMEMBER and HRANDFIELD have after the key: how many, and a word for more than the name of each.
func (a *Args) Picks(with string) (n int64, more bool) {
	n = a.Integer()
	if n == math.MinInt64 {
		a.Fail(errBelowLongMin)
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

// Int32Or takes an integer; one that is none, or needs more than 32 bits, is answered with the command's own errors.
func (a *Args) Int32Or(malformed, outOfRange engine.Error) int64 {
	n := a.IntegerOr(malformed)
	if n < math.MinInt32 || n > math.MaxInt32 {
		a.Fail(outOfRange)
	}
	return n
}

// maxPicks bounds the reply to a ZRANDMEMBER or HRANDFIELD that may repeat elements: Redis goes on
// until it has no memory left.
const maxPicks = 1_000_000
