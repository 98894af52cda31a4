package resp

import (
	"rlserver/engine"
)

// args is a cursor over a call's arguments. The first thing that goes wrong sticks: whatever is taken afterwards is a zero value,
// and err says at the end of the parsing what it was. It allocates nothing.
type args struct {
	list [][]byte // without the command's name
	keys []engine.Key
	wait int64 // ms, from the option WAIT; 0: there was none
	err  error
}

func (a *args) more() bool { return a.err == nil && len(a.list) > 0 }

// left is how many arguments have not been taken yet.
func (a *args) left() int { return len(a.list) }

// fail records what is wrong, unless something was before.
func (a *args) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// next takes an argument as it stands.
func (a *args) next() []byte {
	if a.err != nil {
		return nil
	}
	if len(a.list) == 0 {
		a.fail(engine.ErrSyntax)
		return nil
	}
	b := a.list[0]
	a.list = a.list[1:]
	return b
}

// key takes an argument that the command's key specification names as a key: only those are locked.
func (a *args) key() engine.Key {
	a.next()
	if a.err != nil {
		return engine.Key{}
	}
	if len(a.keys) == 0 {
		a.fail(engine.ErrSyntax)
		return engine.Key{}
	}
	k := a.keys[0]
	a.keys = a.keys[1:]
	return k
}

// integer takes a 64-bit integer.
func (a *args) integer() int64 { return a.integerOr(engine.ErrNotInteger) }

// integerOr takes a 64-bit integer whose absence or form is answered with an error of the command's own.
func (a *args) integerOr(err engine.Error) int64 {
	b := a.next()
	if a.err != nil {
		return 0
	}
	n, ok := parseInt(b)
	if !ok {
		a.fail(err)
	}
	return n
}

// float takes a floating point number that is not NaN.
func (a *args) float() float64 { return a.floatOr(engine.ErrNotFloat) }

func (a *args) floatOr(err engine.Error) float64 {
	b := a.next()
	if a.err != nil {
		return 0
	}
	f, ok := parseFloat(b)
	if !ok {
		a.fail(err)
	}
	return f
}

// word takes the next argument if it is this word, in any case. The word is given in upper case.
func (a *args) word(w string) bool {
	if !a.more() || !equalFold(a.list[0], w) {
		return false
	}
	a.list = a.list[1:]
	return true
}

// end fails with a syntax error if anything is left, and tells what went wrong, if anything did.
func (a *args) end() error {
	if len(a.list) > 0 {
		a.fail(engine.ErrSyntax)
	}
	return a.err
}
