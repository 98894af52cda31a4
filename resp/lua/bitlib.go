package lua

import (
	"math"
	"math/bits"

	glua "github.com/yuin/gopher-lua"
)

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
