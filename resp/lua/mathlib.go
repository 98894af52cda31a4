package lua

import (
	"math"
	"math/bits"

	glua "github.com/yuin/gopher-lua"
)

var mathFunctions = map[string]function{
	"abs": ofOne(math.Abs), "acos": ofOne(math.Acos), "asin": ofOne(math.Asin), "atan": ofOne(math.Atan),
	"atan2": ofTwo(math.Atan2), "ceil": ofOne(math.Ceil), "cos": ofOne(math.Cos), "cosh": ofOne(math.Cosh),
	"deg": ofOne(func(x float64) float64 { return x / (math.Pi / 180) }), "exp": ofOne(math.Exp),
	"floor": ofOne(math.Floor), "fmod": ofTwo(math.Mod), "frexp": mathFrexp, "ldexp": mathLdexp,
	"log": ofOne(math.Log), "log10": ofOne(log10), "max": ofAll(greater), "min": ofAll(less),
	"mod": ofTwo(math.Mod), "modf": mathModf, "pow": ofTwo(math.Pow),
	"rad":    ofOne(func(x float64) float64 { return x * (math.Pi / 180) }),
	"random": mathRandom, "randomseed": mathRandomSeed, "sin": ofOne(math.Sin), "sinh": ofOne(math.Sinh),
	"sqrt": ofOne(math.Sqrt), "tan": ofOne(math.Tan), "tanh": ofOne(math.Tanh),
}

var mathConstants = map[string]glua.LValue{"pi": glua.LNumber(math.Pi), "huge": glua.LNumber(math.Inf(1))}

func ofOne(op func(float64) float64) function {
	return func(st *State, L *glua.LState) int {
		return st.pushNumber(L, op(checkNumber(L, 1)))
	}
}

func ofTwo(op func(a, b float64) float64) function {
	return func(st *State, L *glua.LState) int {
		return st.pushNumber(L, op(checkNumber(L, 1), checkNumber(L, 2)))
	}
}

func mathFrexp(st *State, L *glua.LState) int {
	fraction, exponent := math.Frexp(checkNumber(L, 1))
	st.pushNumber(L, fraction)
	st.pushInt(L, exponent)
	return 2
}

func mathLdexp(st *State, L *glua.LState) int {
	return st.pushNumber(L, math.Ldexp(checkNumber(L, 1), checkInt(L, 2)))
}

func mathModf(st *State, L *glua.LState) int {
	f := checkNumber(L, 1)
	whole, fraction := math.Modf(f)
	if math.IsInf(f, 0) {
		whole, fraction = f, math.Copysign(0, f)
	}
	st.pushNumber(L, whole)
	st.pushNumber(L, fraction)
	return 2
}

// log10 is exact for powers of ten, as in C.
func log10(x float64) float64 {
	f := math.Log10(x)
	if n := math.Round(f); f != n && math.Abs(f-n) < 1e-12 && math.Pow10(int(n)) == x {
		return n
	}
	return f
}

func greater(a, b float64) bool { return a > b }
func less(a, b float64) bool    { return a < b }

// ofAll returns the argument that is better than those before it.
func ofAll(better func(a, b float64) bool) function {
	return func(st *State, L *glua.LState) int {
		best := checkNumber(L, 1)
		for i := 2; i <= L.GetTop(); i++ {
			if f := checkNumber(L, i); better(f, best) {
				best = f
			}
		}
		return st.pushNumber(L, best)
	}
}

// random is the generator of Redis' scripts, drand48: each script gets the same numbers.
type random struct{ x uint64 }

func (r *random) seed(n int64) { r.x = uint64(uint32(n))<<16 | 0x330e }

func (r *random) next() int64 {
	r.x = (r.x*0x5deece66d + 0xb) & (1<<48 - 1)
	return int64(r.x >> 17)
}

const maxRandom = 0x7fffffff

func mathRandom(st *State, L *glua.LState) int {
	r := float64(st.random.next()%maxRandom) / maxRandom
	switch L.GetTop() {
	case 0:
		st.pushNumber(L, r)
	case 1:
		to := checkInt(L, 1)
		if to < 1 {
			return argError(L, 1, "interval is empty")
		}
		st.pushNumber(L, math.Floor(r*float64(to))+1)
	case 2:
		from, to := checkInt(L, 1), checkInt(L, 2)
		if from > to {
			return argError(L, 2, "interval is empty")
		}
		st.pushNumber(L, math.Floor(r*float64(to-from+1))+float64(from))
	default:
		return raise(L, "wrong number of arguments")
	}
	return 1
}

func mathRandomSeed(st *State, L *glua.LState) int {
	st.random.seed(int64(checkInt(L, 1)))
	return 0
}

var bitFunctions = map[string]function{
	"tobit": bitUnary(func(b uint32) uint32 { return b }), "bnot": bitUnary(func(b uint32) uint32 { return ^b }),
	"bswap":   bitUnary(bits.ReverseBytes32),
	"band":    bitMany(func(a, b uint32) uint32 { return a & b }),
	"bor":     bitMany(func(a, b uint32) uint32 { return a | b }),
	"bxor":    bitMany(func(a, b uint32) uint32 { return a ^ b }),
	"lshift":  bitShift(func(b uint32, n int) uint32 { return b << n }),
	"rshift":  bitShift(func(b uint32, n int) uint32 { return b >> n }),
	"arshift": bitShift(func(b uint32, n int) uint32 { return uint32(int32(b) >> n) }),
	"rol":     bitShift(bits.RotateLeft32),
	"ror":     bitShift(func(b uint32, n int) uint32 { return bits.RotateLeft32(b, -n) }),
	"tohex":   bitHex,
}

// checkBits converts an argument as BitOp does: by adding 2^52 + 2^51, modulo 2^32.
func checkBits(L *glua.LState, n int) uint32 {
	return uint32(math.Float64bits(checkNumber(L, n) + 6755399441055744))
}

func (st *State) pushBits(L *glua.LState, b uint32) int { return st.pushInt(L, int(int32(b))) }

func bitUnary(op func(uint32) uint32) function {
	return func(st *State, L *glua.LState) int { return st.pushBits(L, op(checkBits(L, 1))) }
}

func bitMany(op func(a, b uint32) uint32) function {
	return func(st *State, L *glua.LState) int {
		b := checkBits(L, 1)
		for i := 2; i <= L.GetTop(); i++ {
			b = op(b, checkBits(L, i))
		}
		return st.pushBits(L, b)
	}
}

func bitShift(op func(b uint32, n int) uint32) function {
	return func(st *State, L *glua.LState) int {
		b := checkBits(L, 1)
		return st.pushBits(L, op(b, int(checkBits(L, 2)&31)))
	}
}

func bitHex(st *State, L *glua.LState) int {
	b, n := checkBits(L, 1), 8
	if L.GetTop() > 1 {
		n = int(int32(checkBits(L, 2)))
	}
	digits := "0123456789abcdef"
	if n < 0 {
		n, digits = -n, "0123456789ABCDEF"
	}
	n = min(n, 8)
	text := make([]byte, n)
	for i := n - 1; i >= 0; i-- {
		text[i] = digits[b&15]
		b >>= 4
	}
	return st.push(L, string(text))
}
